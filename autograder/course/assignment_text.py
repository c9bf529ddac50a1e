"""Say in words when an assignment is due and what late work costs, for students."""

from __future__ import annotations

from autograder.course.course_file import CourseFile, LateRule


def due_sentence(plan: CourseFile, chapter: str) -> str:
    """Return when a chapter is due, in the course's time zone; empty if it has no deadline."""
    due = plan.due(chapter)
    if due is None:
        return ""
    local = due.astimezone(plan.zone)
    return f"Due on {local:%A}, {local.day} {local:%B} {local.year}, {local:%H:%M} ({plan.time_zone})."


def late_sentence(rule: LateRule) -> str:
    """Return what late work costs."""
    closed = rule.closed_after_days
    if not rule.per_day and closed is None:
        return "Late work costs no points."
    parts = []
    if rule.per_day:
        cap = "" if rule.cap >= 1 else f", at most {100 * rule.cap:g} %"
        parts.append(f"Late work loses {100 * rule.per_day:g} % of its points for each day, or part of a day{cap}.")
    if closed is not None:
        parts.append(f"Later than {closed} day{'' if closed == 1 else 's'} after the deadline, nothing counts.")
    if rule.grace_minutes:
        parts.append(f"The first {rule.grace_minutes} minutes are not late.")
    return " ".join(parts)


def assignment_sentences(plan: CourseFile, chapter: str) -> list[str]:
    """Return what students should know of an assignment beside its exercises: deadline, rule for late work, contact."""
    due = due_sentence(plan, chapter)
    late = late_sentence(plan.late_rule(chapter)) if due else ""
    contact = f"Questions: {plan.contact}" if plan.contact else ""
    return [sentence for sentence in (due, late, contact) if sentence]
