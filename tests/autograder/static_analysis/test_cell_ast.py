"""A student's cells are read outside the sandbox: no text of theirs may stop that, or take long."""

from __future__ import annotations

import ast
import warnings
from contextlib import suppress

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from autograder.static_analysis import cell_ast
from autograder.static_analysis.cell_ast import DEEPEST, LONGEST, UnreadableCellError, parse_cell, syntax_error
from autograder.static_analysis.suspicious_code import find_suspicious

TOO_DEEP = {
    "a sum of 2,500 numbers": "x = " + " + ".join("1" for _ in range(2_500)),
    "a sum of 20,000 numbers": "x = " + " + ".join("1" for _ in range(20_000)),
    "signs": "x = " + "-" * 50_000 + "1",
    "attributes": "a" + ".b" * 5_000,
    "calls": "f" + "()" * 3_000,
    "alternatives": "if a: pass\n" + "elif a: pass\n" * 1_500,
    "functions": "x = " + "lambda: " * 1_000 + "1",
}
FAULTY = {
    "parentheses": "x = " + "(" * 20 + "a b" + ")" * 20,
    "a null byte": "x = 1\0",
}
UNREADABLE = {
    "parentheses": "x = " + "(" * 300 + ")" * 300,
    "half a character": "x = '\ud800'",
    "a long cell": "x = 1\n" * (LONGEST // 5),
}
IPYTHON = [
    "!ls\nx = 1",
    "%matplotlib inline\nimport torch",
    "files = !ls *.py\nprint(files)",
    "now = %time 1 + 1",
    "torch.Tensor?\nx = (1 +\n     2)",
    "x = '''\n!ls\n'''\n!ls",
    "def f():\n    !ls\n    if 1:\n        %time g()\n    return 2\n\nf()",
    "!echo a \\\n  b\nx = 1",
    "x = (9\n  % 4)\n!ls",
    "!echo it's\nx = 'y'",
    "!echo (\nx = (1)",
    "for i in range(3):\n    # a comment\n\n    !ls {i}\nelse:\n    ?x",
    ">>> x = 1\n>>> !ls",
    "    !ls\n    x = 1",
    "%%bash\nls",
    "x = [\n  1,\n  2]\n%%time",
    ",f a b\n/f a b",
    "x = 1; y = 2\n!ls 'a b' \"c\"  # not a comment\n",
]


@pytest.mark.parametrize("source", [*TOO_DEEP.values(), *UNREADABLE.values()], ids=[*TOO_DEEP, *UNREADABLE])
def test_what_nobody_can_follow_is_told_as_unread(source: str) -> None:
    parse_cell.cache_clear()
    with pytest.raises(UnreadableCellError):
        parse_cell(source)
    assert find_suspicious([source])
    assert syntax_error(source) == ""


@pytest.mark.parametrize("source", FAULTY.values(), ids=FAULTY)
def test_what_python_refuses_is_a_syntax_error(source: str) -> None:
    assert parse_cell(source) is None
    assert syntax_error(source) or "\0" in source


def test_what_people_write_is_not_too_deep() -> None:
    chain = "y = x" + ".view(1)" * (DEEPEST // 2 - 5)
    assert parse_cell(chain) is not None


@pytest.mark.parametrize("source", IPYTHON)
def test_magics_become_what_ipython_makes_of_them(source: str) -> None:
    assert cell_ast._translate_magics(source) == TransformerManager().transform_cell(source)


def test_magics_of_code_stand_before_it() -> None:
    cell = parse_cell("%%time\n%%capture out\nx = 1\n!ls")
    assert cell is not None
    assert [ast.unparse(statement) for statement in cell.body] == [
        "get_ipython().run_line_magic('time', '')",
        "get_ipython().run_line_magic('capture', 'out')",
        "x = 1",
        "get_ipython().system('ls')",
    ]


def lines_tokenized(source: str, monkeypatch: pytest.MonkeyPatch) -> int:
    count = 0
    real = cell_ast._next_statement

    def counted(waiting: list[str]) -> list[str]:
        nonlocal count
        taken = real(waiting)
        count += len(taken)
        return taken

    monkeypatch.setattr(cell_ast, "_next_statement", counted)
    parse_cell.cache_clear()
    with suppress(UnreadableCellError):
        parse_cell(source)
    return count


@pytest.mark.parametrize("line", ["!ls", "%time f(x)", "x = !ls", "torch?", "%%time", "    !ls"])
def test_a_page_of_magics_is_read_in_proportion(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lines_tokenized(f"{line}\n" * 500, monkeypatch) <= 2 * 500


@pytest.mark.parametrize("line", ["!echo (", "x = !echo ["])
def test_magics_that_nothing_closes_have_a_budget(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = f"{line}\n" * 20 + "!ls\n" * 400
    assert 200 < lines_tokenized(cell, monkeypatch) <= 6 * 420 + 200
    assert len(find_suspicious([cell])) == 1


def test_nothing_is_said_about_escapes() -> None:
    parse_cell.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert parse_cell("x = '\\d'") is not None
