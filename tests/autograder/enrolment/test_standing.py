"""A chapter counts for a student unless the student withdrew, is excused, or joined after it was due."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from autograder.course.course_file import ChapterPlan, CourseFile
from autograder.enrolment.standing import counts_for, is_excused
from autograder.roster.roster import Student

CHAPTER, OTHER = "03_scaled_dot_product", "04_multi_head"
DUE = datetime(2026, 11, 1, 20, tzinfo=UTC)
PLAN = CourseFile(chapters={CHAPTER: ChapterPlan(due=DUE)})


@pytest.mark.parametrize(
    ("joined", "handed_in", "excused"),
    [
        ("2026-11-01", False, False),
        ("2026-11-02", False, True),
        ("2026-11-02", True, False),
        ("", False, False),
    ],
)
def test_what_was_due_before_somebody_joined_does_not_count_unless_handed_in(
    joined: str, handed_in: bool, excused: bool
) -> None:
    student = Student("ada", enrolled=True, joined=joined)
    assert is_excused(student, CHAPTER, DUE, handed_in=handed_in) is excused
    assert not is_excused(student, CHAPTER, None)


def test_work_of_an_excused_student_does_not_count() -> None:
    student = Student("ada", enrolled=True, excused=(CHAPTER,))
    assert is_excused(student, CHAPTER, DUE, handed_in=True)
    assert not is_excused(student, OTHER, None)


@pytest.mark.parametrize(
    ("student", "counts"),
    [
        (Student("ada", enrolled=True), True),
        (Student("ada", enrolled=True, state="withdrawn"), False),
        (Student("ada", state="ignored"), False),
        (Student("ada"), False),
        (Student("ada", enrolled=True, excused=(CHAPTER,)), False),
    ],
)
def test_with_a_class_list_only_its_students_count(student: Student, counts: bool) -> None:
    roster = {"ada": student, "bo": Student("bo", enrolled=True)}
    assert counts_for(roster, "ada", CHAPTER, PLAN, handed_in=True) is counts


def test_without_a_class_list_everybody_counts() -> None:
    assert counts_for({"bo": Student("bo")}, "ada", CHAPTER, PLAN, handed_in=False)
    assert not counts_for({"ada": Student("ada", state="ignored")}, "ada", CHAPTER, PLAN, handed_in=True)
