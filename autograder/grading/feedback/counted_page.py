"""Apply the rules of ``course.toml`` for single exercises to a feedback page, so that its total matches the report."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, timedelta

from autograder.course.course_file import CourseFile
from autograder.course.course_rules import ExerciseRule
from autograder.grading.feedback.page import Page, Part

_DIGITS = 6


def apply_rules(page: Page, plan: CourseFile) -> Page:
    """Return the page with the total that the rules give, and a note at each exercise that they change."""
    rules = plan.chapter(page.chapter).exercises
    if not rules:
        return page
    before = page.score + page.late_penalty
    raw, best, parts = before, page.max_score, []
    for part in page.parts:
        rule = rules.get(part.name or part.anchor)
        if rule is None:
            parts.append(part)
            continue
        earned, worth = rule.count_points(part.score, part.max_score)
        raw, best = raw + earned - part.score, best + worth - part.max_score
        pending = part.pending and rule.counts_manual_points
        parts.append(replace(part, pending=pending, counts_as=_rule_note(rule, earned, worth), counted=(earned, worth)))
    raw = round(raw, _DIGITS)
    penalty = _penalty_under_rules(page, before, raw, plan)
    return replace(
        page,
        score=max(0.0, round(raw - penalty, _DIGITS)),
        max_score=round(best, _DIGITS),
        late_penalty=penalty,
        parts=tuple(_relink_parts(parts)),
    )


def _penalty_under_rules(page: Page, before: float, raw: float, plan: CourseFile) -> float:
    if before:
        return round(page.late_penalty * raw / before, _DIGITS)
    due = plan.due(page.chapter, page.student)
    handed_in = None if due is None else due.astimezone(UTC) + timedelta(seconds=page.seconds_late)
    return plan.late_penalty(page.chapter, page.student, raw, handed_in)


def _rule_note(rule: ExerciseRule, earned: float, worth: float) -> str:
    if rule.count == "drop":
        return "This does not count in your course."
    if rule.count == "full":
        return f"In your course, every submission gets all {worth:g} points of this."
    if rule.count == "bonus":
        return f"In your course, this is a bonus: its {earned:g} points come on top."
    return f"In your course, this counts as {earned:g} of {worth:g} points."


def _relink_parts(parts: list[Part]) -> list[Part]:
    """Return the parts with their ``follows`` links updated to the new versions of the parts."""
    by_anchor = {part.anchor: part for part in parts}
    return [replace(part, follows=by_anchor[part.follows.anchor]) if part.follows else part for part in parts]
