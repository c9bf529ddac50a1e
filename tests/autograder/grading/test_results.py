"""Results are written whole and read back as they were."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autograder.checking.verdict import Diagnosis, Finding, Verdict
from autograder.course.folder import Course
from autograder.record.provenance import Provenance
from autograder.record.results import (
    ExerciseResult,
    GradeResult,
    QuestionResult,
    read_result,
    read_results,
    result_path,
    waiting,
    write_result,
)
from autograder.submission.problem import Problem

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


def test_results_are_ordered_by_student(empty: Course) -> None:
    for student in ("zoe", "ann", "mia"):
        write_result(empty, replace(RESULT, student=student))
    assert [result.student for result in read_results(empty, "03")] == ["ann", "mia", "zoe"]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"student": "ann"}'])
def test_half_a_result_is_no_result(empty: Course, content: str) -> None:
    path = result_path(empty, "03", "ann")
    path.parent.mkdir(parents=True)
    path.write_text(content)
    assert read_result(empty, "03", "ann") is None
    assert read_results(empty, "03") == []


def test_what_waits_is_said_with_answers_and_students() -> None:
    assert (
        waiting([("ann", 2), ("ben", 1), ("ann", 3), ("cem", 0)]) == "6 answers of 2 students wait for manual grading"
    )
    assert waiting([("ann", 1)]) == "1 answer of 1 student waits for manual grading"
    assert waiting([("ann", 0)]) == ""
