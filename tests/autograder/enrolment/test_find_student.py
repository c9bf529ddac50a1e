"""A student is found as a person types the name, and only where it means one."""

from __future__ import annotations

import pytest

from autograder.course.folder import Course
from autograder.enrolment.find_student import find_student, matching_students
from autograder.errors import CourseError
from autograder.roster.roster import Student, write_roster

PEOPLE = {
    student.id: student
    for student in (
        Student("anna-schmidt-s1", "Anna Schmidt", number="s1", enrolled=True),
        Student("as2", "Anna Schmidt", number="s2", email="as2@uni.example", enrolled=True),
        Student("jm", "Jörg Müller", login="mueller", surname="Müller", enrolled=True),
        Student("ada", "Ada Berg", enrolled=True),
        Student("ada-lovelace", "Ada Lovelace", user="901", enrolled=True),
        Student("stranger"),
    )
}


@pytest.mark.parametrize(
    ("typed", "ids"),
    [
        ("ada", ["ada"]),
        ("ADA", ["ada"]),
        ("s2", ["as2"]),
        ("901", ["ada-lovelace"]),
        ("as2@uni.example", ["as2"]),
        ("Jörg Müller", ["jm"]),
        ("jorg muller", ["jm"]),
        ("Müller, Jörg", ["jm"]),
        ("Mül", ["jm"]),
        ("mueller", ["jm"]),
        ("Ada L", ["ada-lovelace"]),
        ("L Ada", ["ada-lovelace"]),
        ("Anna Schmidt", ["anna-schmidt-s1", "as2"]),
        ("strang", ["stranger"]),
        ("Eve", []),
        ("", []),
    ],
)
def test_what_was_typed_means(typed: str, ids: list[str]) -> None:
    assert matching_students(typed, PEOPLE) == ids


def test_several_students_are_named(course: Course) -> None:
    write_roster(course, PEOPLE)
    with pytest.raises(CourseError, match=r"Anna Schmidt \(anna-schmidt-s1\), Anna Schmidt \(as2\)"):
        find_student(course, "Anna Schmidt")


def test_a_misspelling_gets_a_suggestion(course: Course) -> None:
    write_roster(course, PEOPLE)
    with pytest.raises(CourseError, match=r"Did you mean Jörg Müller \(jm\)\?"):
        find_student(course, "Jorg Mueler")
    assert find_student(course, "stranger") == "stranger"
