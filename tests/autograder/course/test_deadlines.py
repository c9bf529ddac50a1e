"""A section's or group's deadlines are its members', and a student's own take precedence."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from autograder.course.course_file import course_file_path, read_course_file
from autograder.errors import CourseError

CHAPTER = "07_decoding"
PEOPLE = {
    "ada": {"section": "Lab A", "group": ""},
    "bo": {"section": "Lab B", "group": "Team 1"},
    "cy": {"section": "Lab A and Lab B", "group": "Team 1, Team 2"},
    "dee": {"section": "", "group": ""},
}


def day(number: int) -> datetime:
    return datetime(2027, 3, number, tzinfo=UTC)


def dues(root: Path, text: str) -> dict[str, int]:
    """Return the day of March on which each student's work is due."""
    (root / "students.json").write_text(json.dumps(PEOPLE), encoding="utf-8")
    course_file_path(root).write_text(f"[chapters.{CHAPTER}]\ndue = 2027-03-10T00:00:00\n{text}", encoding="utf-8")
    plan = read_course_file(root)
    return {student: due.day for student in PEOPLE if (due := plan.due(CHAPTER, student))}


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({"extensions.'lab  b'": 12}, {"ada": 10, "bo": 12, "cy": 12, "dee": 10}),
        # A group may have an earlier deadline, and a student an own one.
        ({"deadlines.'Team 1'": 5, "deadlines.bo": 7}, {"ada": 10, "bo": 7, "cy": 5, "dee": 10}),
        # Of two sections the later deadline counts, and extensions come on top.
        (
            {"deadlines.'Lab A'": 5, "deadlines.'Lab B'": 6, "extensions.cy": 8},
            {"ada": 5, "bo": 6, "cy": 8, "dee": 10},
        ),
    ],
)
def test_deadlines_of_sections_and_groups_are_their_members(
    tmp_path: Path, table: dict[str, int], expected: dict[str, int]
) -> None:
    text = "".join(f"[{name}]\n{CHAPTER} = 2027-03-{number:02}T00:00:00\n" for name, number in table.items())
    assert dues(tmp_path, text) == expected


def test_a_student_who_is_called_like_a_section_is_a_student(tmp_path: Path) -> None:
    PEOPLE_BY_ID = {**PEOPLE, "Lab A": {"section": ""}}
    (tmp_path / "students.json").write_text(json.dumps(PEOPLE_BY_ID), encoding="utf-8")
    text = f"[chapters.{CHAPTER}]\ndue = 2027-03-10T00:00:00\n[extensions.'Lab A']\n{CHAPTER} = 2027-03-12T00:00:00\n"
    course_file_path(tmp_path).write_text(text, encoding="utf-8")
    plan = read_course_file(tmp_path)
    assert (plan.due(CHAPTER, "Lab A"), plan.due(CHAPTER, "ada")) == (day(12), day(10))


def test_a_deadline_needs_one_that_it_differs_from(tmp_path: Path) -> None:
    course_file_path(tmp_path).write_text("[deadlines.ada]\n07_decoding = 2027-03-05T00:00:00\n", encoding="utf-8")
    with pytest.raises(CourseError, match="the chapter has no deadline of its own"):
        read_course_file(tmp_path)


@pytest.mark.parametrize("text", ["[", "[1]", '{"ada": 1}'])
def test_a_damaged_list_of_students_is_left_to_the_commands_that_need_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "students.json").write_text(text, encoding="utf-8")
    course_file_path(tmp_path).write_text(
        f"[chapters.{CHAPTER}]\ndue = 2027-03-10T00:00:00\n[extensions.ada]\n{CHAPTER} = 2027-03-12T00:00:00\n"
    )
    assert read_course_file(tmp_path).due(CHAPTER, "ada") == day(12)
