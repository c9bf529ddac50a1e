"""Prepare anonymous data of a running class for a projector: counts of at least three, titles of rows, and diagnoses.

Protects against showing:

- authorship: no names, no code, and no counts below three
- information that is secret before submission: no messages, no examples, and no rows that failed only on hidden tests
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from autograder.checking.hidden_messages import FORBIDDEN, WRONG
from autograder.checking.verdict import Finding, Verdict
from autograder.grading.record.results import ExerciseResult
from autograder.marking.behaviour_groups import BehaviourGroup
from autograder.marking.graded_code import GradedCode
from autograder.marking.questions import Question

SMALLEST_COUNT = 3


def live_state(exercises: Sequence[Question], code: GradedCode, shown: Mapping[str, int]) -> dict[str, Any]:
    """Return what the live view shows, ready for JSON.

    Args:
        exercises: the chapter's exercises.
        code: what grading has left by now.
        shown: how many groups of each exercise the lecturer has revealed.
    """
    questions = [_question(exercise, code, shown.get(exercise.name, 0)) for exercise in exercises]
    graded = sum(result.status == "graded" for result in code.results)
    return {"graded": graded if graded >= SMALLEST_COUNT else None, "questions": questions}


def _question(exercise: Question, code: GradedCode, shown: int) -> dict[str, Any]:
    blank, outcomes = code.blank(exercise.name, exercise.stub), code.outcomes(exercise.name)
    written = {student: part for student, part in outcomes.items() if student not in blank}
    # The page says how many are graded: what the bar lacks is how many left the stub, which must not be one or two.
    counts = Counter(_kind(part) for part in (written if len(blank) >= SMALLEST_COUNT else outcomes).values())
    verdicts = {student: part.verdict for student, part in written.items() if part.verdict is not None}
    groups = [group for group in code.groups(exercise.name, exercise.stub) if len(group.members) >= SMALLEST_COUNT]
    return {
        "name": exercise.name,
        "title": exercise.title,
        "bar": bar(counts),
        "rows": _rows(verdicts) if shown else [],
        "groups": [_group(group, verdicts) for group in groups[:shown]],
        "hidden_groups": max(0, len(groups) - shown),
    }


def _kind(part: ExerciseResult) -> str:
    if part.score >= part.max_score:
        return "all"
    return "some" if part.score > 0 else "no"


def bar(counts: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return the parts of a question's bar; parts of fewer than three join a neighbour, and are not told from it.

    Were a small part left out, the rest would tell its size.
    """
    parts = [(name, counts.get(name, 0)) for name in ("all", "some", "no")]
    parts = [(name, count) for name, count in parts if count]
    while (
        len(parts) > 1
        and (small := next((at for at, (_, count) in enumerate(parts) if count < SMALLEST_COUNT), None)) is not None
    ):
        at = max(0, small - 1)
        (first, one), (second, two) = parts[at : at + 2]
        parts[at : at + 2] = [(f"{first} or {second}", one + two)]
    return [{"name": name, "count": count} for name, count in parts if count >= SMALLEST_COUNT]


def _rows(verdicts: Mapping[str, Verdict]) -> list[dict[str, Any]]:
    failed = Counter(title for verdict in verdicts.values() for title in visible_failed_rows(verdict))
    return [{"title": title, "count": count} for title, count in failed.most_common() if count >= SMALLEST_COUNT]


def visible_failed_rows(verdict: Verdict) -> Iterator[str]:
    """Yield the titles of the rows that failed on the questions that students have."""
    yield from dict.fromkeys(
        finding.title for finding in verdict.findings if not finding.passed and not _is_hidden(finding)
    )


def _is_hidden(finding: Finding) -> bool:
    return WRONG in finding.message or FORBIDDEN in finding.message


def _group(group: BehaviourGroup, verdicts: Mapping[str, Verdict]) -> dict[str, Any]:
    of_members = [verdicts[member.student] for member in group.members if member.student in verdicts]
    first = of_members[0] if of_members else None
    # Only what all members share: less would tell what one of them did.
    shared = set.intersection(*(set(verdict.diagnoses) for verdict in of_members)) if of_members else set()
    rows = set.intersection(*(set(visible_failed_rows(verdict)) for verdict in of_members)) if of_members else set()
    return {
        "count": len(group.members),
        "rows": [title for title in visible_failed_rows(first) if title in rows] if first else [],
        "diagnoses": [diagnosis.explanation for diagnosis in first.diagnoses if diagnosis in shared] if first else [],
        "error": first is None,
        "follows_from": group.follows_from,
    }
