"""A page's total is counted by the course's rules, and each exercise says how it counts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from autograder.course.course_file import ChapterPlan, CourseFile, LateRule
from autograder.course.course_rules import ExerciseRule
from autograder.course.folder import Course
from autograder.grading.feedback.counted_page import apply_rules
from autograder.grading.feedback.page import Page, Part
from autograder.grading.feedback.page_html import page_html
from autograder.intake.notebook.problem import Problem
from autograder.intake.roster import Student, write_roster

CHAPTER = "03_scaled_dot_product"
PARTS = (
    Part("test_mask", "exercise", "Mask", 4.0, 6.0, name="mask"),
    Part("test_attend", "exercise", "Attend", 0.0, 4.0, name="attend"),
    Part("question_why", "question", "Why", 0.0, 5.0, pending=True),
)


def page(late_penalty: float = 0.0, score: float = 4.0) -> Page:
    return Page(
        CHAPTER, "Title", "ada", "Ada", score, 15.0, late_penalty, PARTS, (), 100_000.0 if late_penalty else 0.0
    )


def plan(**rules: ExerciseRule) -> CourseFile:
    due = datetime(2026, 10, 24, tzinfo=UTC)
    return CourseFile(late=LateRule(per_day=0.25), chapters={CHAPTER: ChapterPlan(due=due, exercises={**rules})})


@pytest.mark.parametrize(
    ("rules", "total"),
    [
        ({}, (4.0, 15.0)),
        ({"mask": ExerciseRule(points=12)}, (8.0, 21.0)),
        ({"mask": ExerciseRule(count="drop")}, (0.0, 9.0)),
        ({"attend": ExerciseRule(count="full")}, (8.0, 15.0)),
        ({"mask": ExerciseRule(count="bonus")}, (4.0, 9.0)),
        ({"question_why": ExerciseRule(count="full", points=2)}, (6.0, 12.0)),
    ],
)
def test_the_total_is_counted_by_the_rules(rules: dict[str, ExerciseRule], total: tuple[float, float]) -> None:
    counted = apply_rules(page(), plan(**rules))
    assert (counted.score, counted.max_score) == total
    assert {part.name or part.anchor for part in counted.parts if part.counts_as} == set(rules)


def test_a_dropped_answer_does_not_wait() -> None:
    assert (page().pending, apply_rules(page(), plan(question_why=ExerciseRule(count="drop"))).pending) == (1, 0)


def test_lateness_takes_the_same_share_of_the_new_points() -> None:
    late = page(late_penalty=2.0, score=2.0)
    counted = apply_rules(late, plan(mask=ExerciseRule(points=12)))
    assert (counted.late_penalty, counted.score) == (4.0, 4.0)
    nothing_before = Page(CHAPTER, "Title", "ada", "Ada", 0.0, 15.0, 0.0, PARTS[1:], (), 100_000.0)
    # 100,000 seconds are two begun days: half of the 4 points.
    counted = apply_rules(nothing_before, plan(attend=ExerciseRule(count="full")))
    assert (counted.late_penalty, counted.score) == (2.0, 2.0)


def test_a_late_day_on_which_clocks_go_back_has_25_hours() -> None:
    rules = ChapterPlan(due=datetime(2026, 10, 24, 20), exercises={"attend": ExerciseRule(count="full")})
    course = CourseFile(time_zone="Europe/Warsaw", late=LateRule(per_day=0.25), chapters={CHAPTER: rules})
    late = timedelta(hours=24, minutes=50).total_seconds()
    nothing_before = replace(page(score=0.0), parts=PARTS[1:], seconds_late=late)
    assert apply_rules(nothing_before, course).late_penalty == 1.0


def test_points_so_far_are_those_of_the_course_without_what_waits() -> None:
    marked_before = (*PARTS[:2], replace(PARTS[2], score=5.0))
    late = replace(page(late_penalty=2.25, score=6.75), parts=marked_before)
    assert (late.settled_score, late.settled_max) == (3.0, 10.0)
    counted = apply_rules(late, plan(question_why=ExerciseRule(points=2)))
    assert (counted.score, counted.max_score) == (4.5, 12.0)
    assert (counted.settled_score, counted.settled_max) == (3.0, 10.0)
    bonus = apply_rules(late, plan(question_why=ExerciseRule(count="bonus")))
    assert (bonus.settled_score, bonus.settled_max) == (3.0, 10.0)


def test_points_that_a_person_gave_are_on_the_page_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = replace(page(score=0.0), parts=(), problems=(Problem("no notebook", "A PDF.", fatal=True),))
    monkeypatch.setattr(
        "autograder.grading.feedback.page_html.build_feedback_page", lambda *arguments, **options: refused
    )
    course = Course.open(tmp_path, create=True)
    write_roster(course, {"ada": Student("ada")})
    assert "not graded" in page_html({}, {}, "", str(tmp_path))
    write_roster(course, {"ada": Student("ada", decided={CHAPTER: (5.0, "Half of it is <right>.")})})
    html = page_html({}, {}, "", str(tmp_path))
    assert ("<strong>5</strong> of 15 points" in html, "Half of it is &lt;right&gt;." in html) == (True, True)
    assert "not graded" not in html
