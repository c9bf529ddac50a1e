"""Docstrings reach the reference pages as they were meant."""

import pytest
from sphinx.ext.napoleon import Config, GoogleDocstring

from autograder.site.extension import prepare_docstring

DOCSTRING = """Check an exercise.

Args:
    candidate: your function: a callable.

Returns:
    A verdict: its text form
    is its score.
"""


def _prepared(lines: list[str], what: str = "function") -> list[str]:
    prepared = list(lines)
    prepare_docstring(None, what, "flops", None, None, prepared)
    return prepared


def _rendered(lines: list[str], what: str = "function") -> str:
    return str(GoogleDocstring(lines, Config(), what=what, name="flops"))


def test_a_colon_in_what_a_function_returns_makes_no_type_of_the_words_before_it() -> None:
    lines = DOCSTRING.splitlines()
    assert ":rtype: A verdict" in _rendered(lines), "napoleon has changed, and this module is no longer needed"
    prepared = _rendered(_prepared(lines))
    assert ":rtype:" not in prepared
    assert "verdict: its" in prepared, "a word of the sentence was lost"
    assert ":param candidate: your function: a callable." in prepared


@pytest.mark.parametrize(
    "text", ["Returns:\n    The mask, (T, T).", "Args:\n    T: the length: a number.", "No sections: none."]
)
def test_other_docstrings_stay_as_they_are(text: str) -> None:
    assert _prepared(text.splitlines()) == text.splitlines()


def test_a_colon_in_an_attributes_docstring_makes_no_type_of_the_words_before_it() -> None:
    lines = ["Words: and more words after them."]
    assert ":type: Words" in _rendered(lines, "attribute"), "napoleon has changed"
    prepared = _rendered(_prepared(lines, "attribute"), "attribute")
    assert ":type:" not in prepared
    assert prepared.split() == lines[0].split()
