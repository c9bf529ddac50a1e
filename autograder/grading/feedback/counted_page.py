"""Count a feedback page by the rules that ``course.toml`` gives for single exercises, so that its total is that of the report."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, timedelta

from autograder.course.course_file import CourseFile
from autograder.course.course_rules import ExerciseRule
from autograder.grading.feedback.page import Page, Part

_DIGITS = 6


def counted_page(page: Page, plan: CourseFile) -> Page:
    """Return a page with the total that the rules give, and a note at each exercise that counts otherwise than the notebook says."""
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
        earned, worth = rule.counted(part.score, part.max_score)
        raw, best = raw + earned - part.score, best + worth - part.max_score
        pending = part.pending and rule.needs_answer
        parts.append(replace(part, pending=pending, counts_as=_note(rule, earned, worth), counted=(earned, worth)))
    raw = round(raw, _DIGITS)
    penalty = _penalty(page, before, raw, plan)
    return replace(
        page,
        score=max(0.0, round(raw - penalty, _DIGITS)),
        max_score=round(best, _DIGITS),
        late_penalty=penalty,
        parts=tuple(_linked_again(parts)),
    )


def _penalty(page: Page, before: float, raw: float, plan: CourseFile) -> float:
    if before:
        return round(page.late_penalty * raw / before, _DIGITS)
    due = plan.due(page.chapter, page.student)
    handed_in = None if due is None else due.astimezone(UTC) + timedelta(seconds=page.seconds_late)
    return plan.late_penalty(page.chapter, page.student, raw, handed_in)


def _note(rule: ExerciseRule, earned: float, worth: float) -> str:
    if rule.count == "drop":
        return "This does not count in your course."
    if rule.count == "full":
        return f"In your course, every submission gets all {worth:g} points of this."
    if rule.count == "bonus":
        return f"In your course, this is a bonus: its {earned:g} points come on top."
    return f"In your course, this counts as {earned:g} of {worth:g} points."


def _linked_again(parts: list[Part]) -> list[Part]:
    """Return the parts; a part that follows from another part is linked to its new version."""
    by_anchor = {part.anchor: part for part in parts}
    return [replace(part, follows=by_anchor[part.follows.anchor]) if part.follows else part for part in parts]
