"""The report lists who is in no average, and why."""

from __future__ import annotations

from datetime import date

from autograder.course.folder import Course
from autograder.enrolment.decisions import excuse, ignore, join, withdraw
from autograder.enrolment.not_counted import NotCounted, not_counted
from autograder.reports.report_page import render

from .conftest import Enrol

CHAPTER, OTHER = "03_scaled_dot_product", "04_multi_head"
DUE = "2026-10-24T20:00:00"


def hand_in(course: Course, *students: str) -> None:
    """Make folders of submissions."""
    for student in students:
        course.folder("submitted", student, CHAPTER).mkdir(parents=True)


def test_everybody_who_does_not_count_is_listed_with_the_reason(course: Course, enrolled: Enrol) -> None:
    enrolled("id,name\nada,Ada\nbo,Bo\ncy,Cy\ndee,Dee Eck\neve,Eve\n")
    (course.root / "course.toml").write_text(f"[chapters.{CHAPTER}]\ndue = {DUE}\n", encoding="utf-8")
    hand_in(course, "ada", "bo", "kim", "robot", "eve")
    withdraw(course, "bo")
    excuse(course, "cy", OTHER)
    join(course, "dee", date(2026, 11, 2))
    join(course, "eve", date(2026, 11, 2))
    ignore(course, "robot")
    assert not_counted(course, [OTHER, CHAPTER]) == [
        NotCounted("bo", "Bo", (CHAPTER, OTHER), "withdrawn"),
        NotCounted("cy", "Cy", (OTHER,), "excused"),
        NotCounted("dee", "Dee Eck", (CHAPTER,), "joined on 2026-11-02, after the deadline"),
        NotCounted("kim", "kim", (CHAPTER,), "not on the class list", is_decided=False),
        NotCounted("robot", "robot", (CHAPTER,), "ignored: not a student"),
    ]
    assert not_counted(course, [OTHER])[-1].student == "cy"


def test_without_a_class_list_nobody_is_a_stranger(course: Course) -> None:
    hand_in(course, "ada")
    assert not_counted(course, [CHAPTER]) == []


def test_report_lists_them(course: Course) -> None:
    outside = [
        NotCounted("dee", "Dee <Eck>", (CHAPTER, OTHER), "withdrawn"),
        NotCounted("kim", "kim", (CHAPTER,), "not on the class list", is_decided=False),
    ]
    page = render([], title="Class", folder=course.root, outside=outside)
    assert 'Dee &lt;Eck&gt; <span class="note">dee</span></th><td>withdrawn</td>' in page
    assert page.count('<span class="pill bad">to decide</span>') == 1
    assert "Who is not counted?" not in render([], title="Class", folder=course.root)
