"""What a person decides about a student stays, and only students of the class list can be withdrawn or excused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import pytest

from autograder.course.folder import Course
from autograder.enrolment.decisions import add, excuse, ignore, join, withdraw
from autograder.enrolment.enrol import Enrolment, nothing_handed_in
from autograder.errors import CourseError
from autograder.roster.roster import read_roster

CHAPTER, OTHER = "03_scaled_dot_product", "04_multi_head"


@pytest.fixture(autouse=True)
def class_of_two(enrolled: Callable[..., Enrolment]) -> None:
    """A class of two students."""
    enrolled("id,name\nada,Ada\nbo,Bo\n")


def test_a_withdrawn_student_is_not_missed_and_can_come_back(course: Course) -> None:
    withdraw(course, "bo")
    assert nothing_handed_in(course, CHAPTER) == ["ada"]
    assert read_roster(course)["bo"].enrolled
    add(course, "bo")
    assert nothing_handed_in(course, CHAPTER) == ["ada", "bo"]


def test_an_excused_student_is_missed_only_in_other_chapters(course: Course) -> None:
    excuse(course, "bo", CHAPTER)
    excuse(course, "bo", OTHER)
    assert read_roster(course)["bo"].excused == (CHAPTER, OTHER)
    excuse(course, "bo", OTHER, excused=False)
    assert (nothing_handed_in(course, CHAPTER), nothing_handed_in(course, OTHER)) == (["ada"], ["ada", "bo"])


def test_a_student_who_joined_later_is_not_missed_before(course: Course) -> None:
    due = f"[chapters.{CHAPTER}]\ndue = 2026-11-01T20:00:00\n[chapters.{OTHER}]\ndue = 2026-11-02T20:00:00\n"
    (course.root / "course.toml").write_text(due, encoding="utf-8")
    join(course, "bo", date(2026, 11, 2))
    assert (nothing_handed_in(course, CHAPTER), nothing_handed_in(course, OTHER)) == (["ada"], ["ada", "bo"])
    join(course, "bo", None)
    assert nothing_handed_in(course, CHAPTER) == ["ada", "bo"]


def test_a_decision_survives_the_next_class_list(course: Course, enrolled: Callable[..., Enrolment]) -> None:
    withdraw(course, "bo")
    excuse(course, "ada", CHAPTER)
    assert enrolled("id,name\nada,Ada\nbo,Bo\n").unchanged == ("ada", "bo")
    roster = read_roster(course)
    assert (roster["bo"].state, roster["ada"].excused) == ("withdrawn", (CHAPTER,))


def test_decisions_that_have_no_meaning_are_refused(course: Course) -> None:
    for decide in (withdraw, lambda course, student: excuse(course, student, CHAPTER)):
        with pytest.raises(CourseError, match="eve is not on the class list"):
            decide(course, "eve")
    with pytest.raises(CourseError, match="ada is on the class list"):
        ignore(course, "ada")
