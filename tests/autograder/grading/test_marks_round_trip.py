"""A mark for code goes round once: marking, undo, a second grading, feedback and export agree on the points."""

from __future__ import annotations

import csv
import html
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook

from autograder.course.folder import Course
from autograder.engine.settings import GradingSettings
from autograder.feedback.pages import write_feedback
from autograder.grading.autograde import autograde
from autograder.grading.plugin import configured
from autograder.grading.regrade import regrade, to_regrade
from autograder.marking.marks import Marks
from autograder.marking.questions import MarkState
from autograder.reports.export import export
from autograder.reports.grades import read_grades

from .conftest import CHAPTER
from .scripted import Scripted

SETTINGS = GradingSettings(seed=7)
CHECK = Scripted({student: {"causal_mask": 0, "soft_lookup": 0} for student in ("ann", "ben")})
CODE = {"ann": "def causal_mask(T, device=None):\n    return None", "ben": "def causal_mask(T, device=None):\n    pass"}


def gradebook_points(course: Course) -> dict[str, float]:
    """Return each student's points in the gradebook."""
    with Gradebook(course.gradebook_url) as book:
        return {student: book.find_submission(CHAPTER, student).score for student in CODE}


def feedback_texts(course: Course) -> dict[str, str]:
    """Write the feedback pages, and return their text by student."""
    pages = write_feedback(course, CHAPTER, configured(course))
    return {page.parents[1].name: plain_text(page) for page in pages}


def plain_text(page: Path) -> str:
    """Return a page's words, each separated by one space."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page.read_text(encoding="utf-8"))).split())


def exported_points(course: Course, folder: Path) -> dict[str, float]:
    """Export the grades as CSV, and return each student's points there."""
    (exported,) = export(read_grades(course, [CHAPTER]), "csv", folder)
    with exported.path.open(encoding="utf-8", newline="") as file:
        return {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}


def agree(course: Course, folder: Path, points: float) -> dict[str, str]:
    """Assert that gradebook, feedback and export give everybody these points; return the feedback's texts."""
    assert gradebook_points(course) == exported_points(course, folder) == dict.fromkeys(CODE, points)
    texts = feedback_texts(course)
    assert all(f"{points:g} of 18 points" in text for text in texts.values())
    return texts


@pytest.fixture
def graded(course: Course, filled: Callable[..., Any], hand_in: Callable[..., Path]) -> Course:
    """A course in which two students get 1 point for one of three exercises, and nothing else."""
    for student, code in CODE.items():
        hand_in(student, filled(causal_mask=code))
    autograde(course, CHAPTER, device="cpu", settings=SETTINGS, make_executor=CHECK)
    return course


def test_mark_for_code_survives_undo_regrade_feedback_export(
    graded: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = Marks(graded, CHAPTER, "a marker")
    (group,) = marks.reader.question("causal_mask").groups
    assert [member.student for member in group.members] == ["ann", "ben"]

    def give(points: float) -> Any:
        answers = marks.reader.question("causal_mask").answers
        return marks.give("causal_mask", {answer.student: answer.version for answer in answers}, points, "Almost.")

    assert "set by your grader" not in agree(graded, tmp_path / "before", 1)["ann"]
    entry = give(2.5)
    agree(graded, tmp_path / "marked", 3.5)
    marks.undo(entry.id)
    assert "set by your grader" not in agree(graded, tmp_path / "undone", 1)["ben"]
    give(2.5)

    monkeypatch.setattr("autograder.grading.course_settings.checks_hash", lambda: "another")
    regrade(graded, to_regrade(graded, CHAPTER, None, SETTINGS), SETTINGS, dry_run=False, make_executor=CHECK)
    text = agree(graded, tmp_path / "regraded", 3.5)["ann"]
    assert "2.5 of 4, set by your grader; the check gave 0." in text
    assert "From your grader Almost." in text
    states = {answer.student: answer.state for answer in marks.reader.question("causal_mask").answers}
    assert states == dict.fromkeys(CODE, MarkState(2.5, False, "Almost."))
