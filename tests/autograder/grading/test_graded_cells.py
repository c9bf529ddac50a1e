"""A test cell's score is its verdict and nothing else; where there is none it is said why, for nbgrader would give all points."""

from __future__ import annotations

from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from nbgrader.utils import determine_grade

from autograder.checking.verdict import VERDICT_MIME
from autograder.submission.test_cells import (
    OUT_OF_RANGE,
    differing_totals,
    error_output,
    is_locked,
    is_test,
    name_of,
    settle,
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
    assert settle(made) is None
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


@pytest.mark.parametrize(("made", "why"), NO_SCORE.values(), ids=NO_SCORE.keys())
def test_it_is_said_why_there_is_no_score(made: Any, why: str) -> None:
    kind, problem = settle(made) or ("", "")
    assert kind == "no verdict"
    assert why in problem
    made.outputs = [error_output("no verdict", problem)]
    assert determine_grade(made) == (0, 4.0)


@pytest.mark.parametrize(("made", "why"), IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys())
def test_an_impossible_score_is_a_problem_of_the_test(made: Any, why: str) -> None:
    kind, problem = settle(made) or ("", "")
    assert kind == OUT_OF_RANGE
    assert why in problem


def test_a_check_whose_total_is_not_the_cells_points_is_named_whatever_was_scored() -> None:
    more, less = cell(result(6, verdict={"exercise": "f", "score": 6, "max_score": 6})), cell(result(2), points=6)
    assert (settle(more), settle(less)) == (None, None)
    assert differing_totals(new_notebook(cells=[more])) == {"test_f": (6.0, 4.0)}
    assert differing_totals(new_notebook(cells=[less])) == {"test_f": (4.0, 6.0)}
    silent = cell(error_output("timeout", "It was stopped."), points=6)
    assert differing_totals(new_notebook(cells=[cell(result(2)), silent, new_code_cell("f")])) == {}


def test_of_two_checks_either_ones_verdict_is_the_cells_own() -> None:
    source = "check(f)\ncheck(g)"
    assert settle(cell(result(exercise="g"), source=source)) is None
    problem = settle(cell(result(exercise="h"), source=source))
    assert problem == ("no verdict", "The check was given h in the place of f or g.")


def test_a_warning_on_stderr_costs_nothing() -> None:
    warned = new_output("stream", name="stderr", text="careful")
    made = cell(warned, result(4))
    assert determine_grade(made)[0] == 0  # what nbgrader would make of it
    assert settle(made) is None
    assert determine_grade(made) == (4, 4.0)
    assert made.outputs[0].text == "careful"


def test_a_cell_that_ends_in_no_check_is_left_to_nbgrader() -> None:
    assert settle(cell(source="assert f(1) == 2")) is None
    assert settle(cell(result(3), source="f(1)")) is None


def test_an_error_is_an_answer_and_stays_as_it_is() -> None:
    made = cell(PRINTED, error_output("timeout", "It was stopped."))
    assert settle(made) is None
    assert [output.output_type for output in made.outputs] == ["stream", "error"]
    assert determine_grade(made) == (0, 4.0)


def test_an_error_costs_the_points_also_where_a_result_stands_before_it() -> None:
    made = cell(result(4), error_output("timeout", "It was stopped."))
    assert determine_grade(made) == (4, 4.0)  # what nbgrader would make of it
    assert settle(made) is None
    assert determine_grade(made) == (0, 4.0)


def test_an_error_of_the_graders_is_named_by_its_words() -> None:
    made = error_output("kernel died", "The process ended.")
    assert (made.ename, made.evalue) == ("KernelDied", "The process ended.")
    assert made.traceback == ["KernelDied: The process ended."]


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
    assert name_of(new_code_cell("x", metadata=mark("setup")), 4) == "setup"
    assert name_of(new_code_cell("x"), 4) == "cell 5"
    assert name_of(new_code_cell("x", metadata={"nbgrader": {}}), 0) == "cell 1"
