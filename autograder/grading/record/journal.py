"""Keep a chapter's journal, an append-only event log of its submissions, in ``COURSE/journal/CHAPTER.jsonl``.

The journal is append-only, with one JSON object per line. A killed run resumes from it: a submission is *begun* before any of its files
is written, and *recorded* after all are. A submission that was begun and not recorded is graded again, whatever a result file says.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from autograder.append_only import AppendOnlyFile, read_lines
from autograder.course.folder import Course

BEGUN, RECORDED, FAILED, STALE = "begun", "recorded", "failed", "stale"


@dataclass(frozen=True)
class SubmissionState:
    """A submission's state according to the journal."""

    last_event: str = ""
    submission: str = ""  # hash of the submission in the last ``begun`` event
    manual_cells: frozenset[str] = frozenset()  # its manually graded cells before a recording that did not finish
    failed_submission: str = ""  # hash of a submission whose grading failed in a run after the last recording


NO_STATE = SubmissionState()


def journal_path(course: Course, chapter: str) -> Path:
    """Return the path of a chapter's journal."""
    return course.root / "journal" / f"{chapter}.jsonl"


def read_events(course: Course, chapter: str) -> list[dict[str, Any]]:
    """Return a journal's events in order; empty without a journal.

    A last line without its end is skipped.

    Raises:
        CourseError: if another line cannot be read.
    """
    do = "Put back a copy of it, or move it away: then every submission of the chapter is graded again."
    return read_lines(journal_path(course, chapter), do=do)


def submission_states(course: Course, chapter: str) -> dict[str, SubmissionState]:
    """Return the state of each submission according to the journal."""
    states: dict[str, SubmissionState] = {}
    for event in read_events(course, chapter):
        name = event.get("event", "")
        if name == STALE:
            for student in event["students"]:
                states[student] = replace(states.get(student, NO_STATE), last_event=STALE)
        elif name == FAILED:
            before = states.get(event["student"], NO_STATE)
            states[event["student"]] = replace(
                before, last_event=FAILED, failed_submission=event.get("lost") or before.failed_submission
            )
        elif name == RECORDED:
            states[event["student"]] = SubmissionState(RECORDED)
        elif name == BEGUN:
            before = states.get(event["student"], NO_STATE)
            manual = frozenset(event.get("settled", ()))
            if before.submission == event["submission"]:
                manual |= before.manual_cells
            states[event["student"]] = SubmissionState(BEGUN, event["submission"], manual, before.failed_submission)
    return states


@dataclass
class Journal:
    """An open journal that appends events."""

    path: Path
    # identifies this run of the grader in each of its lines
    run: str = field(default_factory=lambda: secrets.token_hex(4))

    def __post_init__(self) -> None:
        self._file = AppendOnlyFile(self.path, mode=0o600)

    def write(self, event: str, *, durable: bool = False, **facts: object) -> None:
        """Append an event.

        Args:
            event: the event's name.
            durable: return only when the line would survive a power cut.
            facts: the event's data, ready for JSON.
        """
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._file.append({"time": now, "run": self.run, "event": event, **facts}, durable=durable)

    def mark_stale(self, students: Sequence[str]) -> None:
        """Mark students' submissions for regrading, even if this run stops before it reaches them."""
        self.write(STALE, durable=True, students=list(students))

    def record_begin(self, student: str, submission: str, manual_cells: Collection[str] = ()) -> None:
        """Record that writing a submission's grade has begun.

        Args:
            submission: hash of the submission.
            manual_cells: manually graded cells that must stay so.
        """
        more = {"settled": sorted(manual_cells)} if manual_cells else {}
        self.write(BEGUN, durable=True, student=student, submission=submission, **more)

    def record_end(self, student: str, **facts: object) -> None:
        """Record that a submission's grade is completely written."""
        self.write(RECORDED, durable=True, student=student, **facts)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@contextmanager
def open_journal(course: Course, chapter: str) -> Iterator[Journal]:
    """Open a chapter's journal. The caller holds the course's lock."""
    journal = Journal(journal_path(course, chapter))
    try:
        yield journal
    finally:
        journal.close()
