"""Every member of a group reads their own name, points and lateness, whoever of them handed in."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autograder.checks import exercise
from autograder.course.folder import Course
from autograder.engine.settings import GradingSettings
from autograder.enrolment.enrol import enrol
from autograder.feedback.pages import write_feedback
from autograder.grading.autograde import autograde
from autograder.grading.plugin import configured
from autograder.reports.member_pages import member_pages

from .conftest import CHAPTER
from .scripted import Scripted

PLAN = f"""
time_zone = "Europe/Warsaw"
[late]
per_day = 0.5
[chapters.{CHAPTER}]
groups = true
due = 2026-03-20T12:00:00
[extensions.EXTENDED]
{CHAPTER} = 2026-03-28T12:00:00
"""


def shown(page: str) -> tuple[str, float, float | None]:
    """Name, points, and cost of lateness as a reader of the page sees them."""
    name = re.search(r"Feedback for ([^<]*)<", page)
    points = re.search(r'<p class="total"><strong>([\d.]+)</strong>', page)
    cost = re.search(r"which cost ([\d.]+) of", page)
    assert name is not None
    assert points is not None
    return name[1].strip(), float(points[1]), float(cost[1]) if cost else None


@pytest.mark.parametrize(("extended", "late"), [("ada", {"bo", "cy"}), ("bo", {"ada", "cy"})])
def test_a_page_is_its_readers(
    course: Course,
    filled: Callable[..., Any],
    hand_in: Callable[..., Path],
    tmp_path: Path,
    extended: str,
    late: set[str],
) -> None:
    (tmp_path / "class.csv").write_text("id,name,group\nada,Ada Ames,T\nbo,Bo Beck,T\ncy,Cy Cox,T\ndee,Dee Dow,U\n")
    enrol(course, tmp_path / "class.csv")
    (course.root / "course.toml").write_text(PLAN.replace("EXTENDED", extended), encoding="utf-8")
    hand_in("ada", filled()).with_name("timestamp.txt").write_text("2026-03-21 11:00")
    autograde(course, CHAPTER, device="cpu", settings=GradingSettings(seed=7), make_executor=Scripted())
    (page,) = write_feedback(course, CHAPTER, configured(course))
    pages = {
        student: content.decode() for student, content in member_pages(course, CHAPTER, ["bo", "cy", "dee"]).items()
    }
    assert sorted(pages) == ["bo", "cy"], "nobody has handed in for Dee"
    pages["ada"] = page.read_text(encoding="utf-8")
    # Three exercises give a point each; a day costs half of them.
    for student, name in (("ada", "Ada Ames (ada)"), ("bo", "Bo Beck (bo)"), ("cy", "Cy Cox (cy)")):
        assert shown(pages[student]) == (name, 1.5 if student in late else 3.0, 1.5 if student in late else None)
        others = {"Ada Ames", "Bo Beck", "Cy Cox"} - {name.partition(" (")[0]}
        assert not any(other in pages[student] for other in others)
    assert member_pages(course, CHAPTER, []) == {}
    # Of three points, the rules make four: the penalty is still half of them.
    twice = 2 * exercise("causal_mask").points
    with (course.root / "course.toml").open("a", encoding="utf-8") as file:
        file.write(f"[chapters.{CHAPTER}.exercises.causal_mask]\npoints = {twice}\n")
    for student, content in member_pages(course, CHAPTER, ["bo", "cy"]).items():
        cost = 2.0 if student in late else None
        assert shown(content.decode())[1:] == (2.0 if student in late else 4.0, cost)
