"""Results are written whole and read back as they were."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.nbgraderformat.common import ValidationError

from autograder.checking.verdict import Diagnosis, Finding, Verdict
from autograder.course.folder import Course
from autograder.grading.plugin import OthersMetadata
from autograder.grading.record.provenance import Provenance
from autograder.grading.record.results import (
    ExerciseResult,
    GradeResult,
    QuestionResult,
    describe_waiting,
    dumps_by_line,
    read_result,
    read_results,
    result_path,
    write_result,
)
from autograder.intake.notebook.problem import LEFT_OUT, LONGEST, MOST, Problem, add_problems, read_problems, shorten

from .conftest import mark

VERDICT = Verdict(
    "f",
    "03",
    (Finding("a", "A.", 2.0, False, "no", Diagnosis("d", "why", "where")), Finding("b", "B.", 1.0, True, "ok")),
)
RESULT = GradeResult(
    student="ann",
    chapter="03",
    status="graded",
    exercises=(ExerciseResult("f", 1.0, 3.0, VERDICT, "", 0.5), ExerciseResult("g", 0.0, 2.0, None, "NameError: g")),
    questions=(QuestionResult("question_q", 4.0, answered=True),),
    problems=(Problem("timeout", "It was stopped.", where="test_g"),),
    late_penalty=0.5,
    device="cpu",
    seed=3,
    seconds=2.25,
    submission="abc",
    source="def",
    provenance=Provenance("abc", "wheel", {"torch": "2.11"}, {"memory_mb": 512}, "sandbox", ("landlock", "seccomp")),
)


@pytest.fixture
def empty(tmp_path: object) -> Course:
    return Course(tmp_path)  # type: ignore[arg-type]


def test_a_result_comes_back_as_it_was(empty: Course) -> None:
    write_result(empty, RESULT)
    assert read_result(empty, "03", "ann") == replace(RESULT, unchanged=True)
    assert (RESULT.score, RESULT.max_score) == (1.0, 5.0)


def test_how_long_it_took_is_kept_and_makes_no_other_file(empty: Course) -> None:
    path = write_result(empty, RESULT)
    first = path.read_bytes()
    assert b"seconds" not in first
    slower = replace(RESULT, seconds=9.5, exercises=tuple(replace(each, seconds=4.5) for each in RESULT.exercises))
    assert write_result(empty, slower).read_bytes() == first
    assert read_result(empty, "03", "ann") == replace(slower, unchanged=True)


def test_a_folder_whose_name_is_no_text_has_a_result_too(empty: Course) -> None:
    write_result(empty, replace(RESULT, student="\udce9ve"))
    assert [result.student for result in read_results(empty, "03")] == ["\udce9ve"]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"student": "ann"}'])
def test_half_a_result_is_no_result(empty: Course, content: str) -> None:
    path = result_path(empty, "03", "ann")
    path.parent.mkdir(parents=True)
    path.write_text(content)
    assert read_result(empty, "03", "ann") is None
    assert read_results(empty, "03") == []


def test_what_waits_is_said_with_answers_and_students() -> None:
    assert describe_waiting([("ann", 2), ("ben", 1), ("ann", 3), ("cem", 0)]).startswith("6 answers of 2 students ")
    assert describe_waiting([("ann", 1)]).startswith("1 answer of 1 student ")
    assert describe_waiting([("ann", 0)]) == ""


@pytest.mark.parametrize(
    "data",
    [
        {"cells": []},
        {"cells": [1, {"b": [2, "ł\n"], "a": None}]},
        {"nbformat": 4, "cells": [{"z": 1, "a": 2}], "metadata": {"b": 1, "a": "\ud800"}},
    ],
)
@pytest.mark.parametrize("sort_keys", [False, True])
def test_it_says_what_any_other_json_of_it_says(data: dict[str, object], sort_keys: bool) -> None:
    text = dumps_by_line(data, "cells", sort_keys=sort_keys)
    assert json.loads(text) == data
    assert list(json.loads(text)) == (sorted(data) if sort_keys else list(data))


def test_each_member_and_each_item_has_a_line() -> None:
    text = dumps_by_line({"score": 2.5, "exercises": [{"b": 1, "a": 2}, {}], "pending": 0}, "exercises")
    assert text == '{"score": 2.5,\n"exercises": [\n{"b": 1, "a": 2},\n{}\n],\n"pending": 0}\n'


def test_names_are_sorted_at_every_depth_where_that_is_asked_for() -> None:
    text = dumps_by_line({"b": {"d": 1, "c": 2}, "a": [{"f": 1, "e": 2}]}, "a", sort_keys=True)
    assert text == '{"a": [\n{"e": 2, "f": 1}\n],\n"b": {"c": 2, "d": 1}}\n'


@pytest.mark.parametrize("part", ["what", "where", "do"])
def test_a_problem_of_eight_thousand_names_is_cut(part: str) -> None:
    names = ", ".join(f"a_name_{i}" for i in range(8_000))
    told = Problem(**{"kind": "worth a look", "what": "It uses names.", part: f"Names: {names}."})
    assert len(str(told)) < LONGEST + 100
    assert f"… ({len(names) + 8:,} characters in all)." in str(told)
    assert Problem.from_dict(told.to_dict()) == told


def test_short_texts_stay_as_they_are() -> None:
    assert shorten("a" * LONGEST) == "a" * LONGEST
    assert len(shorten("a" * (LONGEST + 1))) == LONGEST


def test_of_many_problems_the_worst_are_kept() -> None:
    notebook = new_notebook()
    for i in range(300):
        add_problems(
            notebook, [Problem(f"remark {i}", "It is so.", remark=True), Problem(f"problem {i}", "It is bad.")]
        )
    add_problems(notebook, [Problem("the worst", "It cannot be graded.", fatal=True)])
    problems = read_problems(notebook)
    assert len(problems) == MOST
    assert [problem.kind for problem in problems[:2]] == ["problem 0", "problem 1"]
    assert [problem.kind for problem in problems[-2:]] == ["the worst", LEFT_OUT]


def notebook_with_a_name_twice() -> Any:
    test = mark("test_one", grade=True, locked=True, points=2)
    return new_notebook(cells=[new_code_cell("1", metadata=test), new_code_cell("2", metadata=test)])


def test_broken_metadata_of_another_notebook_are_refused() -> None:
    with pytest.raises(ValidationError, match="metadata may be corrupted"):
        OthersMetadata()(notebook_with_a_name_twice(), {"nbgrader": {"notebook": "extra", "assignment": "04"}})


def test_the_chapters_own_notebook_is_not_checked_again() -> None:
    notebook = notebook_with_a_name_twice()
    assert OthersMetadata()(notebook, {"nbgrader": {"notebook": "04", "assignment": "04"}})[0] is notebook
