"""Students read when an assignment is due and what late work costs, as the grader charges it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from autograder.course.assignment_text import assignment_sentences, due_sentence, late_sentence
from autograder.course.course_file import ChapterPlan, CourseFile, LateRule

CHAPTER = "03_scaled_dot_product"


def test_a_deadline_is_in_the_courses_time_zone() -> None:
    plan = CourseFile(
        time_zone="Europe/Warsaw", chapters={CHAPTER: ChapterPlan(due=datetime(2026, 10, 24, 18, tzinfo=UTC))}
    )
    assert due_sentence(plan, CHAPTER) == "Due on Saturday, 24 October 2026, 20:00 (Europe/Warsaw)."
    assert due_sentence(plan, "07_decoding") == ""


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        (LateRule(), "Late work costs no points."),
        (
            LateRule(per_day=0.1, cap=0.5, grace_minutes=0),
            "Late work loses 10 % of its points for each day, or part of a day, at most 50 %.",
        ),
        (
            LateRule(per_day=0.25, closed_after_days=1),
            "Late work loses 25 % of its points for each day, or part of a day. "
            "Later than 1 day after the deadline, nothing counts. The first 15 minutes are not late.",
        ),
        (
            LateRule(closed_after_days=14, grace_minutes=0),
            "Later than 14 days after the deadline, nothing counts.",
        ),
    ],
)
def test_a_rule_for_late_work_is_said_in_words(rule: LateRule, sentence: str) -> None:
    assert late_sentence(rule) == sentence


def test_without_a_deadline_only_the_contact_is_said() -> None:
    assert assignment_sentences(CourseFile(contact="dl@uni.example"), CHAPTER) == ["Questions: dl@uni.example"]
    plan = CourseFile(chapters={CHAPTER: ChapterPlan(due=datetime(2026, 10, 24, 18))})
    assert [sentence[:3] for sentence in assignment_sentences(plan, CHAPTER)] == ["Due", "Lat"]
