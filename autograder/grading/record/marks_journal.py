"""Keep the journal of marks, which records each change before the gradebook is written, so that it can be undone.

The journal also holds which rubric items were ticked for an answer, for which the gradebook has no column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from autograder.append_only import AppendOnlyFile, read_lines
from autograder.course.folder import Course


@dataclass(frozen=True)
class MarkState:
    """The gradebook fields of an answer that a marker can change."""

    points: float | None  # the points that a person has given; None if nobody has
    waiting: bool  # whether the answer waits for a marker
    comment: str | None  # a person's comment, or None

    def to_json(self) -> dict[str, Any]:
        """Return the state as a JSON object."""
        return {"points": self.points, "waiting": self.waiting, "comment": self.comment}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> MarkState:
        """Parse the JSON object that :meth:`to_json` returned."""
        points = data["points"]
        return cls(None if points is None else float(points), bool(data["waiting"]), data["comment"])


@dataclass(frozen=True)
class RubricTick:
    """A rubric item as it was when a mark was given."""

    text: str  # the item without its points, Markdown
    points: float  # what the item is worth
    share: float  # how much of it the answer has: 0, 0.5 or 1

    @property
    def earned(self) -> float:
        """The points that the answer gets for this item."""
        return self.points * self.share

    def to_json(self) -> dict[str, Any]:
        """Return the item as a JSON object."""
        return {"text": self.text, "points": self.points, "share": self.share}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RubricTick:
        """Parse the JSON object that :meth:`to_json` returned."""
        return cls(str(data["text"]), float(data["points"]), float(data["share"]))


Ticks = tuple[RubricTick, ...]


@dataclass(frozen=True)
class GivenTicks:
    """The ticked rubric of an answer's last mark."""

    points: float | None  # the points that the mark left in the gradebook
    ticks: Ticks | None  # all items of the rubric, ticked or not; None if the mark was given without one

    def belong_to(self, points: float | None) -> bool:
        """Return whether the ticks explain the points in the gradebook, which other programs may have changed."""
        return self.ticks is not None and self.points is not None and self.points == points


@dataclass(frozen=True)
class Change:
    """The change that an entry makes to one answer."""

    before: MarkState  # what the gradebook held
    after: MarkState  # what it holds then
    ticks_before: Ticks | None = None  # the rubric of the mark before, or None
    ticks_after: Ticks | None = None  # the rubric of the mark given; None if it was given without one

    def inverse(self) -> Change:
        """Return the opposite change, which undoes this one."""
        return Change(self.after, self.before, self.ticks_after, self.ticks_before)

    def to_json(self) -> dict[str, Any]:
        """Return the change as a JSON object."""
        ticks = {"ticks_before": self.ticks_before, "ticks_after": self.ticks_after}
        written = {name: [tick.to_json() for tick in items] for name, items in ticks.items() if items is not None}
        return {"before": self.before.to_json(), "after": self.after.to_json(), **written}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Change:
        """Parse the JSON object that :meth:`to_json` returned."""
        before, after = (MarkState.from_json(data[name]) for name in ("before", "after"))
        return cls(before, after, *(_read_ticks(data.get(name)) for name in ("ticks_before", "ticks_after")))


@dataclass(frozen=True)
class Entry:
    """A mark or an undo, for one answer or several identical ones."""

    id: str  # its name in the journal
    time: str  # when it was given, ISO 8601 with the offset
    marker: str  # the name of the marker
    chapter: str
    question: str  # the grade id of the answer cell
    changes: Mapping[str, Change]  # the change per student
    undoes: str = ""  # the entry that this one takes back; empty for a mark
    reason: str = ""  # ``"rubric"`` if a changed rubric was applied; empty if a person has given the mark

    def to_json(self) -> dict[str, Any]:
        """Return the entry as a JSON object."""
        changes = {student: change.to_json() for student, change in self.changes.items()}
        plain = {name: value for name, value in vars(self).items() if name != "changes"}
        return {**plain, "changes": changes}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Entry:
        """Parse the JSON object that :meth:`to_json` returned."""
        changes = {student: Change.from_json(change) for student, change in data["changes"].items()}
        names = ("id", "time", "marker", "chapter", "question", "undoes")
        plain = {name: str(data[name]) for name in names}
        return cls(**plain, changes=changes, reason=str(data.get("reason", "")))


class MarksJournal:
    """The file ``marks/journal.jsonl`` of a course, with a line per entry and a line per commit or abort."""

    def __init__(self, course: Course) -> None:
        self.path: Path = _journal_path(course.root)

    def begin(self, entry: Entry) -> None:
        """Write an entry to disk before its change is made."""
        self._append_line({"begin": entry.to_json()})

    def commit(self, entry_id: str) -> None:
        """Record that an entry's change is in the gradebook."""
        self._append_line({"committed": entry_id})

    def abort(self, entry_id: str) -> None:
        """Record that an entry's change is not in the gradebook."""
        self._append_line({"aborted": entry_id})

    def entries(self) -> tuple[list[Entry], list[Entry]]:
        """Return the committed entries, oldest first, and the unfinished entries."""
        begun: dict[str, Entry] = {}
        ends: dict[str, str] = {}
        for line in read_lines(self.path, do="Restore the file from a copy, or remove the line."):
            for kind, value in line.items():
                if kind == "begin":
                    entry = Entry.from_json(value)
                    begun[entry.id] = entry
                else:
                    ends[value] = kind
        committed = [entry for entry in begun.values() if ends.get(entry.id) == "committed"]
        return committed, [entry for entry in begun.values() if entry.id not in ends]

    def ticks(self, chapter: str) -> dict[tuple[str, str], GivenTicks]:
        """Return the ticked rubric of each answer's last mark in a chapter, by question and student."""
        last_ticks: dict[tuple[str, str], GivenTicks] = {}
        for entry in self.entries()[0]:
            for student, change in entry.changes.items() if entry.chapter == chapter else ():
                last_ticks[entry.question, student] = GivenTicks(change.after.points, change.ticks_after)
        return last_ticks

    def _append_line(self, line: Mapping[str, Any]) -> None:
        file = AppendOnlyFile(self.path)
        try:
            file.append(line, durable=True)
        finally:
            file.close()


def cached_ticks(root: Path, chapter: str) -> Mapping[tuple[str, str], GivenTicks]:
    """Return MarksJournal.ticks of a chapter, cached until the journal file changes.

    Args:
        root: the course folder.
        chapter: the chapter's full name.
    """
    try:
        status = _journal_path(root).stat()
    except OSError:
        return {}
    return _ticks_of_version(root, chapter, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=4)
def _ticks_of_version(root: Path, chapter: str, size: int, changed: int) -> Mapping[tuple[str, str], GivenTicks]:
    return MarksJournal(Course(root)).ticks(chapter)


def _journal_path(root: Path) -> Path:
    return root / "marks" / "journal.jsonl"


def _read_ticks(data: Any) -> Ticks | None:
    return None if data is None else tuple(RubricTick.from_json(item) for item in data)
