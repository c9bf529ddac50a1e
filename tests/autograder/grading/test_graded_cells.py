"""A test cell's score is its verdict and nothing else; where there is none it is said why, for nbgrader would give all points."""

from __future__ import annotations

from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from nbgrader.utils import determine_grade

from autograder.checking.verdict import VERDICT_MIME
from autograder.intake.notebook.test_cells import (
    OUT_OF_RANGE,
    cell_label,
    differing_totals,
    enforce_verdict,
    error_output,
    is_locked,
    is_test,
)
from autograder.static_analysis.cell_names import (
    cell_magic,
    checked_names,
    defined_names,
    ends_in_check,
    find_only_check,
    imports_check,
    strip_invisible_characters,
    summarise_cell,
)

from .conftest import mark

TEXT = "text/plain"
PRINTED = new_output("stream", name="stdout", text="ok\n")


def result(score: Any = 2, *, exercise: str = "f", verdict: Any = None, **data: Any) -> Any:
    """The output of a check."""
    told = {"exercise": exercise, "score": score, "max_score": 4} if verdict is None else verdict
    return new_output("execute_result", data={TEXT: str(score), VERDICT_MIME: told} | data)


def cell(*outputs: Any, source: str = "check(f)", points: float = 4.0) -> Any:
    made = new_code_cell(source, metadata=mark("test_f", grade=True, locked=True, points=points))
    made.outputs = list(outputs)
    return made


@pytest.mark.parametrize("score", [0, 2, 2.5, 4])
def test_a_verdict_with_its_score_is_a_score(score: float) -> None:
    made = cell(PRINTED, result(score))
    assert enforce_verdict(made) is None
    assert determine_grade(made) == (score, 4.0)


def without(mime: str) -> Any:
    made = result()
    del made.data[mime]
    return made


NO_SCORE: dict[str, tuple[Any, str]] = {
    "no output": (cell(), "should leave one result, it left 0"),
    "only something printed": (cell(PRINTED), "it left 0"),
    "a score that is printed": (cell(new_output("stream", text="4")), "it left 0"),
    "two results": (cell(result(), result()), "it left 2"),
    "a result that is displayed": (cell(new_output("display_data", data=result().data)), "it left 0"),
    "no text": (cell(without(TEXT)), "is not a score"),
    "text that is no number": (cell(result("full marks")), "is not a score"),
    "no text but a list": (cell(result(**{TEXT: ["4"]})), "is not a score"),
    "no verdict": (cell(without(VERDICT_MIME)), "carries no verdict"),
    "a verdict that is text": (cell(result(verdict="4")), "carries no verdict"),
    "another function's verdict": (cell(result(exercise="g")), "was given g in the place of f"),
    "nobody's verdict": (cell(result(verdict={"score": 2})), "was given None in the place of f"),
    "text and verdict that differ": (cell(result(**{TEXT: "4"})), "shows 4 points, its verdict says 2"),
    "a verdict without score": (cell(result(verdict={"exercise": "f"})), "its verdict says None"),
}
# A score that the test gave and its cell cannot have: the test is wrong, and no student loses points for it.
IMPOSSIBLE: dict[str, tuple[Any, str]] = {
    "less than nothing": (cell(result(-1)), "gave -1 points, of at most 4"),
    "more than the cell is worth": (cell(result(5)), "gave 5 points, of at most 4"),
    "a hair more than the cell is worth": (cell(result(4.0001)), "of at most 4"),
    "infinitely many": (cell(result(float("inf"))), "gave inf points"),
    "no number at all": (cell(result(float("nan"))), "gave nan points"),
    "more, of a test without check": (cell(result(99), source="f(1)"), "gave 99 points, of at most 4"),
    "less than nothing, of a test without check": (cell(result(-1), source="f(1)"), "gave -1 points"),
    "no number, of a test without check": (cell(result(float("nan")), source="f(1)"), "gave nan points"),
}


@pytest.mark.parametrize("name", NO_SCORE | IMPOSSIBLE)
def test_it_is_said_why_there_is_no_score_and_an_impossible_one_is_a_problem_of_the_test(name: str) -> None:
    made, why = (NO_SCORE | IMPOSSIBLE)[name]
    kind, problem = enforce_verdict(made) or ("", "")
    assert (kind, why in problem) == (OUT_OF_RANGE if name in IMPOSSIBLE else "no verdict", True)
    made.outputs = [error_output("no verdict", problem)]
    assert determine_grade(made) == (0, 4.0)


def test_a_check_whose_total_is_not_the_cells_points_is_named_whatever_was_scored() -> None:
    more, less = cell(result(6, verdict={"exercise": "f", "score": 6, "max_score": 6})), cell(result(2), points=6)
    assert (enforce_verdict(more), enforce_verdict(less)) == (None, None)
    assert differing_totals(new_notebook(cells=[more])) == {"test_f": (6.0, 4.0)}
    assert differing_totals(new_notebook(cells=[less])) == {"test_f": (4.0, 6.0)}
    silent = cell(error_output("timeout", "It was stopped."), points=6)
    assert differing_totals(new_notebook(cells=[cell(result(2)), silent, new_code_cell("f")])) == {}


def test_of_two_checks_either_ones_verdict_is_the_cells_own() -> None:
    source = "check(f)\ncheck(g)"
    assert enforce_verdict(cell(result(exercise="g"), source=source)) is None
    problem = enforce_verdict(cell(result(exercise="h"), source=source))
    assert problem == ("no verdict", "The check was given h in the place of f or g.")


def test_a_warning_on_stderr_costs_nothing() -> None:
    warned = new_output("stream", name="stderr", text="careful")
    made = cell(warned, result(4))
    assert determine_grade(made)[0] == 0  # what nbgrader would make of it
    assert enforce_verdict(made) is None
    assert determine_grade(made) == (4, 4.0)
    assert made.outputs[0].text == "careful"


def test_a_cell_that_ends_in_no_check_is_left_to_nbgrader() -> None:
    assert enforce_verdict(cell(source="assert f(1) == 2")) is None
    assert enforce_verdict(cell(result(3), source="f(1)")) is None


def test_an_error_is_an_answer_and_stays_as_it_is() -> None:
    made = cell(PRINTED, error_output("timeout", "It was stopped."))
    assert enforce_verdict(made) is None
    assert [output.output_type for output in made.outputs] == ["stream", "error"]
    assert determine_grade(made) == (0, 4.0)


def test_an_error_costs_the_points_also_where_a_result_stands_before_it() -> None:
    made = cell(result(4), error_output("timeout", "It was stopped."))
    assert determine_grade(made) == (4, 4.0)  # what nbgrader would make of it
    assert enforce_verdict(made) is None
    assert determine_grade(made) == (0, 4.0)


@pytest.mark.parametrize(
    ("flags", "test", "locked"),
    [
        ({"grade": True, "locked": True}, True, True),
        ({"grade": True, "locked": False}, True, False),
        ({"grade": True, "solution": True}, False, False),
        ({"grade": True, "solution": True, "locked": True}, False, False),
        ({"locked": True}, False, True),
        ({"solution": True}, False, False),
        ({}, False, False),
    ],
)
def test_a_mark_says_what_a_cell_is(flags: dict[str, bool], test: bool, locked: bool) -> None:
    made = new_code_cell("x", metadata=mark("name", **flags))
    assert (is_test(made), is_locked(made)) == (test, locked)


def test_text_and_cells_without_a_mark_are_no_tests() -> None:
    assert not is_test(new_markdown_cell("x", metadata=mark("name", grade=True, locked=True)))
    assert not is_test(new_code_cell("x"))
    assert not is_locked(new_code_cell("x"))


def test_a_cell_is_called_by_its_name_or_its_place() -> None:
    assert cell_label(new_code_cell("x", metadata=mark("setup")), 4) == "setup"
    assert cell_label(new_code_cell("x"), 4) == "cell 5"
    assert cell_label(new_code_cell("x", metadata={"nbgrader": {}}), 0) == "cell 1"


def body_of(source: str) -> str:
    return summarise_cell(source, frozenset({"f"})).bodies.get("f", "")


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("def f(x):\n    g = 1\n", {"f"}),
        ("class Layer(nn.Module):\n    def forward(self): ...", {"Layer"}),
        ("f = lambda x: x\na, b = 1, 2", {"f", "a", "b"}),
        ("if True:\n    def f(): ...\nelse:\n    g = 1", {"f", "g"}),
        ("try:\n    import a.b as c\nfinally:\n    pass", {"c"}),
        ("%matplotlib inline\n!pip install x\ndef f(): ...", {"f"}),
        ("def f(x):\n  return (x\n\nh = 3", {"f", "h"}),
        ("try:\n    import a\nexcept ImportError:\n    def f(): ...", {"a", "f"}),
        ("match x:\n    case 1:\n        def f(): ...", {"f"}),
        ("def f():\n    !ls\n    return 1\nfiles = !ls\nf?", {"f", "files"}),
        ("x = (9\n  % 4)\ndef f(): ...", {"x", "f"}),
        ("%%time\ndef f(): ...", {"f"}),
        ("%%writefile a.py\ndef f(): ...", set()),
        ("%%bash\nf=3", set()),
        ("if a:\n    f = 1\n" + "elif b:\n    g = 1\n" * 900, {"f", "g"}),
        ("def f(): ...\nx = y" + ".a" * 30_000, {"f", "x"}),
        ("def f(): ...\n" + "#" * 300_000, {"f"}),
        ("print(f)", set()),
    ],
)
def test_names_are_found_in_whatever_way_they_are_bound(source: str, names: set[str]) -> None:
    assert defined_names(source) == names


def test_imports_count_only_where_they_should() -> None:
    assert defined_names("from tfcourse.attention import causal_mask", imports=False) == set()


def test_checks_are_recognised() -> None:
    source = "check(f)\n### BEGIN HIDDEN TESTS\ncheck(f, hidden=True)\n### END HIDDEN TESTS"
    assert checked_names(source) == {"f"}
    assert ends_in_check(source)
    assert not ends_in_check("check(f)\nassert f")
    assert not ends_in_check("")
    assert checked_names("check(f) +") == {"f"}


def test_the_setup_cell_is_recognised_by_its_import() -> None:
    assert imports_check("import torch\nfrom tfcourse import check\nimport os")
    assert not imports_check("check = None")


def test_what_a_definition_does_is_the_same_in_any_layout() -> None:
    plain = "def f(x):\n    return x + 1"
    other = 'def f(x):\n    """Says more."""\n    # and more\n    return (x\n            + 1)\n\ny = 3'
    assert body_of(plain) == body_of(other) != ""
    assert body_of(plain) != body_of("def f(x):\n    return x + 2")
    assert body_of("def g(x):\n    return x") == body_of("def f(") == ""


def test_what_is_defined_inside_others_is_found_with_them() -> None:
    source = "class A:\n    def f(self): ...\ndef g():\n    def h(): ..."
    assert summarise_cell(source).buried == {"f": "class A", "h": "function g"}
    assert summarise_cell("def f(").buried == {}


def test_magics_that_take_a_cell_away_from_python_are_named() -> None:
    assert cell_magic("\n%%bash -x\nls") == "%%bash"
    assert cell_magic("%%time\nx = 1") == cell_magic("%time x") == cell_magic("x = 1") == ""


def test_characters_that_nobody_sees_go_only_where_python_needs_it() -> None:
    assert strip_invisible_characters("x\u200b =\u00a01") == "x = 1"
    for kept in ("x = '\u200b'", "x = 1", "x\u200b = = 1"):
        assert strip_invisible_characters(kept) == kept


def test_a_warning_about_a_cell_is_not_the_graders(recwarn: pytest.WarningsRecorder) -> None:
    assert defined_names("f = '\\d'  # an escape that Python does not know") == {"f"}
    assert not recwarn.list


def test_a_cell_that_only_checks_tells_what() -> None:
    source = "from tfcourse import check\ncheck(f)\n### BEGIN HIDDEN TESTS\ncheck(f, hidden=True)\n### END HIDDEN TESTS"
    assert find_only_check("check(f)  # visible") == ("f", False)
    assert find_only_check(source) == ("f", True)


@pytest.mark.parametrize(
    "source",
    [
        "",
        "# nothing",
        "from tfcourse import check",
        "from elsewhere import check\ncheck(f)",
        "assert f(1) == 2",
        "check(f)\nprint(1)",
        "X = 1\ncheck(f)",
        "check(f)\ncheck(g)",
        "check(f(1))",
        "check(f, seed=1)",
        "check(f, hidden=g())",
        "with a: check(f)",
        "%time check(f)",
        "def (",
        "a.check(f)",
    ],
)
def test_a_cell_that_does_more_or_less(source: str) -> None:
    assert find_only_check(source) is None
