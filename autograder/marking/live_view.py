"""Serve the live view, which may be projected: a second, read-only server whose page follows a running autograde.

It shows counts of at least three, titles of rows, and diagnoses. Protects against showing:

- authorship: no names, no code, and no counts below three
- information that is secret before submission: no messages, no examples, and no rows that failed only on hidden tests
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from tornado.web import HTTPError

from autograder.checking.hidden_messages import FORBIDDEN, WRONG
from autograder.checking.verdict import Finding, Verdict
from autograder.grading.record.results import ExerciseResult
from autograder.marking.behaviour_groups import BehaviourGroup
from autograder.marking.chapter_reader import ChapterReader
from autograder.marking.graded_code import GradedCode
from autograder.marking.local_server import LocalApplication, LocalHandler
from autograder.marking.questions import Question

COOKIE = "tfcourse_live"
SMALLEST_COUNT = 3
# Reading 800 results takes seconds: the marking page answers in between.
_PAUSE, _PAUSE_PER_READING = 2.0, 4.0


class LiveApplication(LocalApplication):
    """The application of the live view; its handlers only read.

    Args:
        reader: reads the chapter; it may be shared with the marking page.
        clock: returns seconds.
    """

    cookie: ClassVar[str] = COOKIE

    def __init__(self, reader: ChapterReader, clock: Callable[[], float] = time.monotonic) -> None:
        self.exercises = reader.exercises()
        self._reader, self._clock = reader, clock
        self._code: GradedCode | None = None
        self._next = 0.0
        super().__init__(reader.chapter, [("/", LivePageHandler), ("/state", StateHandler)])

    def state(self, shown: Mapping[str, int]) -> dict[str, Any]:
        """Return the page's current state, with results read again after a pause.

        Args:
            shown: how many groups of each exercise the lecturer has revealed.
        """
        begin = self._clock()
        if self._code is None or begin >= self._next:
            self._code = self._reader.graded_code()
            state = live_state(self.exercises, self._code, shown)
            self._next = self._clock() + _PAUSE + _PAUSE_PER_READING * (self._clock() - begin)
            return state
        return live_state(self.exercises, self._code, shown)


class LiveHandler(LocalHandler):
    """A handler of the live view."""

    application: LiveApplication


class LivePageHandler(LiveHandler):
    """Serves the page, whose script requests the state."""

    def get(self) -> None:
        """Send the page."""
        self.show("live.html")


class StateHandler(LiveHandler):
    """Sends the page's state as JSON."""

    def get(self) -> None:
        """Send each exercise's bar, failed rows and revealed groups."""
        try:
            shown = json.loads(self.get_query_argument("shown", "{}"))
        except ValueError:
            shown = None
        if not isinstance(shown, dict) or not all(type(count) is int and count >= 0 for count in shown.values()):
            raise HTTPError(400, reason="Shown is not an object of counts")
        self.write(self.application.state(shown))


def live_state(exercises: Sequence[Question], code: GradedCode, shown: Mapping[str, int]) -> dict[str, Any]:
    """Return the state of the live view, ready for JSON.

    Args:
        exercises: the chapter's exercises.
        code: what grading has left by now.
        shown: how many groups of each exercise the lecturer has revealed.
    """
    questions = [_exercise_data(exercise, code, shown.get(exercise.name, 0)) for exercise in exercises]
    graded = sum(result.status == "graded" for result in code.results)
    return {"graded": graded if graded >= SMALLEST_COUNT else None, "questions": questions}


def _exercise_data(exercise: Question, code: GradedCode, shown: int) -> dict[str, Any]:
    blank, outcomes = code.blank_students(exercise.name, exercise.stub), code.outcomes(exercise.name)
    written = {student: part for student, part in outcomes.items() if student not in blank}
    # The page says how many are graded: what the bar lacks is how many left the stub, which must not be one or two.
    counts = Counter(_score_class(part) for part in (written if len(blank) >= SMALLEST_COUNT else outcomes).values())
    verdicts = {student: part.verdict for student, part in written.items() if part.verdict is not None}
    groups = [group for group in code.groups(exercise.name, exercise.stub) if len(group.members) >= SMALLEST_COUNT]
    return {
        "name": exercise.name,
        "title": exercise.title,
        "bar": bar_parts(counts),
        "rows": _failed_row_counts(verdicts) if shown else [],
        "groups": [_group_data(group, verdicts) for group in groups[:shown]],
        "hidden_groups": max(0, len(groups) - shown),
    }


def _score_class(part: ExerciseResult) -> str:
    if part.score >= part.max_score:
        return "all"
    return "some" if part.score > 0 else "no"


def bar_parts(counts: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return the parts of an exercise's bar, with parts of fewer than three students merged into a neighbour.

    Leaving a small part out would reveal its size, because the other parts would show what is missing.

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


def _failed_row_counts(verdicts: Mapping[str, Verdict]) -> list[dict[str, Any]]:
    failed = Counter(title for verdict in verdicts.values() for title in visible_failed_rows(verdict))
    return [{"title": title, "count": count} for title, count in failed.most_common() if count >= SMALLEST_COUNT]


def visible_failed_rows(verdict: Verdict) -> Iterator[str]:
    """Yield the titles of the rows that failed on visible test cases."""
    yield from dict.fromkeys(
        finding.title for finding in verdict.findings if not finding.passed and not _is_hidden(finding)
    )


def _is_hidden(finding: Finding) -> bool:
    return WRONG in finding.message or FORBIDDEN in finding.message


def _group_data(group: BehaviourGroup, verdicts: Mapping[str, Verdict]) -> dict[str, Any]:
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
