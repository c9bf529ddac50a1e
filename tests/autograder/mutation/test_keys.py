"""What changes a key, and so has an exercise measured again: code, and nothing that is only read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.checks import exercise
from tools.quality import keys

CODE = 'def f(x):\n    """Twice x."""\n    # a comment\n    if x < 0:\n        raise ValueError("x is negative")\n    return 2 * x\n'
LOCALS = """def f(x):
    total, rest = 0, [item for item in x]
    try:
        total += sum(rest)
    except ValueError as error:
        raise error
    return total
"""
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


def _text(folder: Path, code: str) -> str:
    return keys._text_digest(code)


def _file(folder: Path, code: str) -> str:
    file = folder / f"code_{abs(hash(code))}.py"
    file.write_text(code)
    return keys._file_digest(file)


@pytest.mark.parametrize(
    ("digest", "code", "old", "new", "same"),
    [
        *((_text, CODE, old, new, True) for old, new in (
            ("Twice x.", "Two times x."), ("# a comment", ""), ("x is negative", "give me more"), ("2 * x", "(2*x)"),
        )),
        *((_text, CODE, old, new, False) for old, new in (("2 * x", "3 * x"), ("<", "<="), ("ValueError", "TypeError"))),
        # Names of local variables and private ones do not count, except in a reference.
        *((_file, LOCALS, old, new, True) for old, new in (
            ("total", "amount"), ("rest", "numbers"), ("item", "one"), ("error", "problem"),
        )),
        *((_file, LOCALS, old, new, False) for old, new in (
            ("return total", "return rest"), ("f(x)", "f(y)"), ("sum(rest)", "min(rest)"), ("sum(rest)", "sum(x)"),
        )),
        (_text, LOCALS, "total", "amount", False),
        *((_file, PRIVATE, old, new, True) for old, new in (
            ("_Pair", "_Two"), ("_first", "_one"), ("_helper", "_add_difference"), ("_second", "_a"),
        )),
        (_file, PRIVATE, "public", "open", False),
        (_file, PRIVATE, "self._first - self._second", "self._second - self._first", False),
    ],
)  # fmt: skip
def test_code_changes_a_key_and_what_is_only_read_does_not(
    digest: Callable[[Path, str], str], code: str, old: str, new: str, same: bool, tmp_path: Path
) -> None:
    assert code.replace(old, new) != code
    assert (digest(tmp_path, code.replace(old, new)) == digest(tmp_path, code)) is same


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
