"""The journal of a chapter: what has been done with each submission, in ``COURSE/journal/CHAPTER.jsonl``.

It is only ever appended to, one JSON object a line, and does two jobs. It is the event log. And a run that was killed is resumed from it:
a submission is *begun* before anything of it is written elsewhere and *recorded* after all of it is; what was begun and not recorded is
graded again, whatever a result file says.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from autograder.course.folder import Course
from autograder.errors import CourseError

BEGUN, RECORDED, FAILED, STALE = "begun", "recorded", "failed", "stale"


@dataclass(frozen=True)
class SubmissionState:
    """What a journal says about one submission.

    Attributes:
        last_event: the last event.
        submission: hash of the submission that the last recording was begun with.
        manual_cells: cells of it that a person had settled before a recording that was never finished.
        failed_submission: hash of the submission of which grading came to no end, in a run after the last recording.
    """

    last_event: str = ""
    submission: str = ""
    manual_cells: frozenset[str] = frozenset()
    failed_submission: str = ""


NO_STATE = SubmissionState()


def journal_path(course: Course, chapter: str) -> Path:
    """Return where the journal of a chapter is kept."""
    return course.root / "journal" / f"{chapter}.jsonl"


def events(course: Course, chapter: str) -> list[dict[str, Any]]:
    """Return what a journal holds, in order; nothing if there is none.

    A last line without its end was being written when the machine stopped: it is left out, for nothing was done after it.

    Raises:
        CourseError: if any other line cannot be read.
    """
    path = journal_path(course, chapter)
    lines = path.read_bytes().split(b"\n")[:-1] if path.is_file() else []
    complete = []
    for number, line in enumerate(lines, start=1):
        try:
            event = json.loads(line)
            if not isinstance(event, dict):
                raise ValueError("no object")
        except ValueError as error:
            raise CourseError(
                f"line {number} of the journal is damaged ({error})",
                where=path,
                do="Put back a copy of it, or move it away: then every submission of the chapter is graded again.",
            ) from error
        complete.append(event)
    return complete


def submission_states(course: Course, chapter: str) -> dict[str, SubmissionState]:
    """Return what the journal says about each submission."""
    states: dict[str, SubmissionState] = {}
    for event in events(course, chapter):
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
    """A journal that is open for writing.

    Attributes:
        path: its file.
        run: a name for this run of the grader, in each of its lines.
    """

    path: Path
    run: str = field(default_factory=lambda: secrets.token_hex(4))

    def __post_init__(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        _drop_torn_line(self.path)
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, event: str, *, durable: bool = False, **facts: object) -> None:
        """Append an event.

        Args:
            event: what happened.
            durable: do not return before it would survive a power cut.
            facts: what belongs to it, ready for JSON.
        """
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": now, "run": self.run, "event": event, **facts})
        data = memoryview(line.encode() + b"\n")
        while data:
            data = data[os.write(self._file, data) :]
        if durable:
            os.fsync(self._file)

    def stale(self, students: Sequence[str]) -> None:
        """Say that these students' submissions are to be graded again, also if this run does not get to them."""
        self.write(STALE, durable=True, students=list(students))

    def begun(self, student: str, submission: str, manual_cells: Collection[str] = ()) -> None:
        """Say that from now on something of a submission may be written, in the gradebook or elsewhere.

        Args:
            student: whose.
            submission: hash of what was handed in.
            manual_cells: cells that a person has settled, and that are to stay settled.
        """
        more = {"settled": sorted(manual_cells)} if manual_cells else {}
        self.write(BEGUN, durable=True, student=student, submission=submission, **more)

    def recorded(self, student: str, **facts: object) -> None:
        """Say that all of a submission is written."""
        self.write(RECORDED, durable=True, student=student, **facts)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def _drop_torn_line(path: Path) -> None:
    """Cut off a last line that was never finished, so that the next one starts on its own."""
    if not path.is_file():
        return
    with path.open("r+b") as file:
        data = file.read()
        end = data.rfind(b"\n") + 1
        if end != len(data):
            file.truncate(end)


@contextmanager
def open_journal(course: Course, chapter: str) -> Iterator[Journal]:
    """Yield the journal of a chapter. The caller holds the course's lock."""
    journal = Journal(journal_path(course, chapter))
    try:
        yield journal
    finally:
        journal.close()
