"""The TOML file beside a declaration: read late, and refused with a sentence where it is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from autograder.errors import CourseError
from autograder.mistakes.mistake_file import MistakeFile
from tfcourse.attention import causal_mask

GOOD = '''
[[mistake]]
name = "strictly below"
class = "wrong"
read = "causal-mask"
told = """The diagonal is left out,
so no position sees itself."""
edits = [{ find = ".tril()", replace = ".tril(-1)" }]
'''


def written(folder: Path, text: str) -> MistakeFile:
    """The mistakes in a file with this text."""
    path = folder / "causal_mask.toml"
    path.write_text(text, encoding="utf-8")
    return MistakeFile(path, causal_mask)


def test_a_mistake_is_read_with_its_words_on_one_line_and_made_when_it_is_asked_for(tmp_path: Path) -> None:
    (mistake,) = written(tmp_path, GOOD)
    assert (mistake.name, mistake.kind, mistake.read) == ("strictly below", "wrong", "causal-mask")
    assert mistake.explanation == "The diagonal is left out, so no position sees itself."
    assert mistake.code == (".tril(-1)",)
    assert torch.equal(mistake.implementation(2), torch.tensor([[False, False], [True, False]]))
    assert mistake.implementation is mistake.implementation


def test_a_file_is_not_read_before_somebody_asks(tmp_path: Path) -> None:
    late = MistakeFile(tmp_path / "not_there.toml", causal_mask)
    with pytest.raises(CourseError, match="read"):
        len(late)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('class = "wrong"', 'class = "grave"', "class = 'grave' is none of nothing, wrong, option"),
        ('class = "wrong"', "", r"lacks the keys \['class'\]"),
        ('class = "wrong"', 'class = "wrong"\nkind = "x"', r"unknown keys \['kind'\]"),
        ("edits = [{ find", "edit = [{ find", r"unknown keys \['edit'\]"),
        ('edits = [{ find = ".tril()", replace = ".tril(-1)" }]', "", "body"),
        ("find =", "search =", "edit"),
        ("[[mistake]]", "[[mistake]", "read"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_place(tmp_path: Path, old: str, new: str, told: str) -> None:
    assert old in GOOD
    with pytest.raises(CourseError, match=told) as caught:
        len(written(tmp_path, GOOD.replace(old, new)))
    assert str(tmp_path / "causal_mask.toml") in str(caught.value)


def test_an_edit_that_does_not_fit_is_found_when_the_mistake_is_made(tmp_path: Path) -> None:
    (mistake,) = written(tmp_path, GOOD.replace(".tril()", ".triu()"))
    with pytest.raises(CourseError, match="stands 0 times"):
        _ = mistake.implementation
