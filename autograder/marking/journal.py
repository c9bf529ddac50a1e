"""Keep the journal of marks: every change is on the disk before the gradebook is touched, so that it can be explained and undone."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.marking.questions import MarkState


@dataclass(frozen=True)
class Change:
    """What one entry changes about one answer."""

    before: MarkState
    after: MarkState


@dataclass(frozen=True)
class Entry:
    """One mark, or one undo, given to one answer or to several identical ones.

    Attributes:
        id: its name in the journal.
        time: when it was given, ISO 8601 with the offset.
        marker: who gave it.
        chapter: the chapter.
        question: the grade id of the answer cell.
        changes: the change per student.
        undoes: the entry that this one takes back; empty for a mark.
    """

    id: str
    time: str
    marker: str
    chapter: str
    question: str
    changes: Mapping[str, Change]
    undoes: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the entry as the journal has it."""
        changes = {
            student: {"before": change.before.to_json(), "after": change.after.to_json()}
            for student, change in self.changes.items()
        }
        plain = {name: value for name, value in vars(self).items() if name != "changes"}
        return {**plain, "changes": changes}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Entry:
        """Return the entry that :meth:`to_json` has written."""
        changes = {
            student: Change(MarkState.from_json(change["before"]), MarkState.from_json(change["after"]))
            for student, change in data["changes"].items()
        }
        names = ("id", "time", "marker", "chapter", "question", "undoes")
        return cls(**{name: str(data[name]) for name in names}, changes=changes)


class MarksJournal:
    """The file ``marks/journal.jsonl`` of a course: one line per entry, and one per entry that reached the gradebook."""

    def __init__(self, course: Course) -> None:
        self.path: Path = course.root / "marks" / "journal.jsonl"

    def begin(self, entry: Entry) -> None:
        """Write an entry to the disk before its change is made."""
        self._append({"begin": entry.to_json()})

    def commit(self, entry_id: str) -> None:
        """Note that an entry's change is in the gradebook."""
        self._append({"committed": entry_id})

    def abort(self, entry_id: str) -> None:
        """Note that an entry's change is not in the gradebook."""
        self._append({"aborted": entry_id})

    def entries(self) -> tuple[list[Entry], list[Entry]]:
        """Return the entries that reached the gradebook, oldest first, and those of which the journal does not say."""
        begun: dict[str, Entry] = {}
        ends: dict[str, str] = {}
        for line in self._lines():
            for kind, value in line.items():
                if kind == "begin":
                    entry = Entry.from_json(value)
                    begun[entry.id] = entry
                else:
                    ends[value] = kind
        committed = [entry for entry in begun.values() if ends.get(entry.id) == "committed"]
        return committed, [entry for entry in begun.values() if entry.id not in ends]

    def _lines(self) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        parsed = []
        lines = self.path.read_text(encoding="utf-8").split("\n")
        for number, line in enumerate(lines, start=1):
            try:
                if line:
                    parsed.append(json.loads(line))
            except ValueError:
                # A line that a crash has cut short was never acted on: the change waits for the whole line.
                if number < len(lines) and lines[number]:
                    raise CourseError(
                        f"line {number} is not JSON",
                        where=self.path,
                        do="Restore the file from a copy, or remove the line.",
                    ) from None
        return parsed

    def _append(self, line: Mapping[str, Any]) -> None:
        new = not self.path.exists()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            _drop_torn_line(file)
            file.write(json.dumps(line, ensure_ascii=False, sort_keys=True).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        if new and os.name == "posix":
            handle = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def _drop_torn_line(file: BinaryIO) -> None:
    """Remove a last line that a crash has cut short; whatever it announced was never begun."""
    if not file.seek(0, os.SEEK_END):
        return
    file.seek(-1, os.SEEK_END)
    if file.read(1) != b"\n":
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
