"""Students read when an assignment is due and what late work costs, as the grader charges it."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from autograder.course.course_file import (
    ChapterPlan,
    CourseFile,
    LateRule,
    assignment_sentences,
    due_sentence,
    late_sentence,
)

CHAPTER = "03_scaled_dot_product"


def test_a_deadline_is_in_the_courses_time_zone() -> None:
    plan = CourseFile(
        time_zone="Europe/Warsaw", chapters={CHAPTER: ChapterPlan(due=datetime(2026, 10, 24, 18, tzinfo=UTC))}
    )
    assert due_sentence(plan, CHAPTER) == "Due on Saturday, 24 October 2026, 20:00 (Europe/Warsaw)."
    assert due_sentence(plan, "07_decoding") == ""


@pytest.mark.parametrize(
    ("rule", "numbers"),
    [
        (LateRule(), []),
        (LateRule(per_day=0.1, cap=0.5, grace_minutes=0), ["10 %", "50 %"]),
        (LateRule(per_day=0.25, closed_after_days=1), ["25 %", "1 day ", "15 minutes"]),
        (LateRule(closed_after_days=14, grace_minutes=0), ["14 days"]),
    ],
)
def test_a_rule_for_late_work_is_said_in_words(rule: LateRule, numbers: list[str]) -> None:
    assert re.findall(r"\d+ (?:%|day |\w+)", late_sentence(rule)) == numbers


def test_without_a_deadline_only_the_contact_is_said() -> None:
    assert assignment_sentences(CourseFile(contact="dl@uni.example"), CHAPTER) == ["Questions: dl@uni.example"]
    plan = CourseFile(chapters={CHAPTER: ChapterPlan(due=datetime(2026, 10, 24, 18))})
    assert [sentence[:3] for sentence in assignment_sentences(plan, CHAPTER)] == ["Due", "Lat"]
