"""What changes a key, and so has an exercise measured again: code, and nothing that is only read."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.checks import exercise
from autograder.mutation import keys

CODE = 'def f(x):\n    """Twice x."""\n    # a comment\n    if x < 0:\n        raise ValueError("x is negative")\n    return 2 * x\n'


@pytest.mark.parametrize(
    ("old", "new"),
    [("Twice x.", "Two times x."), ("# a comment", ""), ("x is negative", "give me more"), ("2 * x", "(2*x)")],
)
def test_what_is_only_read_changes_no_key(old: str, new: str) -> None:
    assert keys._text_digest(CODE.replace(old, new)) == keys._text_digest(CODE)


@pytest.mark.parametrize(("old", "new"), [("2 * x", "3 * x"), ("<", "<="), ("ValueError", "TypeError")])
def test_code_changes_the_key(old: str, new: str) -> None:
    assert keys._text_digest(CODE.replace(old, new)) != keys._text_digest(CODE)


LOCALS = """def f(x):
    total, rest = 0, [item for item in x]
    try:
        total += sum(rest)
    except ValueError as error:
        raise error
    return total
"""


def _file_digest(folder: Path, code: str) -> str:
    file = folder / f"code_{abs(hash(code))}.py"
    file.write_text(code)
    return keys._file_digest(file)


@pytest.mark.parametrize(
    ("old", "new"), [("total", "amount"), ("rest", "numbers"), ("item", "one"), ("error", "problem")]
)
def test_names_of_local_variables_change_no_key(old: str, new: str, tmp_path: Path) -> None:
    assert LOCALS.replace(old, new) != LOCALS
    assert _file_digest(tmp_path, LOCALS.replace(old, new)) == _file_digest(tmp_path, LOCALS)


@pytest.mark.parametrize(
    ("old", "new"),
    [("return total", "return rest"), ("f(x)", "f(y)"), ("sum(rest)", "min(rest)"), ("sum(rest)", "sum(x)")],
)
def test_another_variable_changes_the_key(old: str, new: str, tmp_path: Path) -> None:
    assert _file_digest(tmp_path, LOCALS.replace(old, new)) != _file_digest(tmp_path, LOCALS)


PRIVATE = """class _Pair:
    def __init__(self):
        self._first, self._second = 1, 2

    def value(self):
        return self._first - self._second

def _helper(x):
    return _Pair().value() + x

def public(x):
    return _helper(x)
"""


@pytest.mark.parametrize(
    ("old", "new"), [("_Pair", "_Two"), ("_first", "_one"), ("_helper", "_add_difference"), ("_second", "_a")]
)
def test_private_names_change_no_key(old: str, new: str, tmp_path: Path) -> None:
    assert PRIVATE.replace(old, new) != PRIVATE
    assert _file_digest(tmp_path, PRIVATE.replace(old, new)) == _file_digest(tmp_path, PRIVATE)


@pytest.mark.parametrize(
    ("old", "new"), [("public", "open"), ("self._first - self._second", "self._second - self._first")]
)
def test_public_names_and_another_private_one_change_the_key(old: str, new: str, tmp_path: Path) -> None:
    assert _file_digest(tmp_path, PRIVATE.replace(old, new)) != _file_digest(tmp_path, PRIVATE)


def test_names_in_a_reference_count() -> None:
    assert keys._text_digest(LOCALS.replace("total", "amount")) != keys._text_digest(LOCALS)


def test_a_key_looks_at_the_check_and_not_at_its_wording() -> None:
    files = {path.name for path in keys.files_of_the_check(exercise("top_k"))}
    assert {"top_k.py", "filters.py", "rows.py", "judges.py", "sheet.py"} <= files
    assert not files & {"verdict.py", "example.py", "min_p.py", "top_k.toml"}


def test_a_key_looks_at_definitions_that_are_reached() -> None:
    names = {name for _, name in keys._definitions(exercise("top_k"))}
    assert {"top_k", "_keep"} <= names
    assert "min_p" not in names


def test_a_definition_that_a_case_uses_counts(tmp_path: Path) -> None:
    declaration = tmp_path / "declaration.py"
    declaration.write_text("from tfcourse import sampling\nfrom tfcourse.sampling import min_p\nsampling.top_k\n")
    assert keys._named(declaration) == {("tfcourse.sampling", "top_k"), ("tfcourse.sampling", "min_p")}
