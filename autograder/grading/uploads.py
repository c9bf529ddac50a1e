"""Whose file is it? What the names of downloads say: nbgrader's folders, Canvas, Moodle, or a folder of notebooks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from autograder.grading.entries import Entry

_CANVAS = re.compile(r"(?P<name>[^_]+)_(?P<late>LATE_)?(?P<user>\d+)_(?P<upload>\d+)_(?P<file>.+)")
_CANVAS_ANONYMOUS = re.compile(r"(?P<name>anon)_(?P<late>LATE_)?(?P<user>[0-9A-Za-z]+)_(?P<upload>\d+)_(?P<file>.+)")
_MOODLE = re.compile(r"(?P<name>.+)_(?P<upload>\d+)_assignsubmission_(?:file|onlinetext)(?:_(?P<file>.*))?")
# Canvas counts a file handed in again as -1, -2 …; browsers count a file saved again as (1), (2) …
_AGAIN = re.compile(r"(?:-(\d{1,3})|\s*\((\d{1,3})\))+$")
_SAVED_AGAIN = re.compile(r"\s*\((\d{1,3})\)$")


@dataclass(frozen=True)
class Upload:
    """A submitted notebook and what its name says about it.

    Attributes:
        entry: the file.
        owner: the student's name or id, as it is written there.
        platform: ``"canvas"``, ``"moodle"``, ``"nbgrader"`` or empty.
        user: the student's number on Canvas, the same in every assignment.
        upload: the number of this upload (Canvas) or of this participant in this assignment (Moodle).
        late: whether Canvas calls it late.
        attempt: which of several uploads of the same name it is, from 0.
    """

    entry: Entry
    owner: str
    platform: str = ""
    user: str = ""
    upload: str = ""
    late: bool = False
    attempt: int = 0

    @property
    def order(self) -> tuple[int, int, float, str]:
        """Sorts the uploads of one student from the first to the last."""
        date = self.entry.date.timestamp() if self.entry.date else 0.0
        number = int(self.upload) if self.platform == "canvas" else 0
        return (self.attempt, number, date, str(self.entry.path))


def uploads_of(
    entries: Sequence[Entry], chapter: str, others: frozenset[str]
) -> tuple[list[Upload], list[Entry], list[Entry]]:
    """Find out whose the notebooks of a download are.

    Args:
        entries: the notebooks.
        chapter: the chapter that is collected.
        others: the names of the course's other chapters.

    Returns:
        The uploads for this chapter, the notebooks whose owner cannot be told, and those that belong to another chapter by their name.
    """
    found: list[Upload] = []
    unknown: list[Entry] = []
    elsewhere: list[Entry] = []
    # Several folders: one for each student. One folder, or none: one file for each student.
    folders = {entry.path.parent for entry in entries if len(entry.path.parts) > 1}
    for entry in entries:
        upload = _platform(entry) or _nbgrader(entry, chapter)
        if upload is None and any(_mentions(entry.path, other) for other in others):
            elsewhere.append(entry)
            continue
        upload = upload or _plain(entry, chapter, by_folder=len(folders) > 1)
        if upload is None:
            unknown.append(entry)
        else:
            found.append(upload)
    return found, unknown, elsewhere


def owner_of(path: PurePosixPath) -> str:
    """Return the student that a learning platform names in a path, or nothing."""
    upload = _platform(Entry(path, None, bytes))
    return upload.owner if upload else ""


def _platform(entry: Entry) -> Upload | None:
    for part in entry.path.parts:
        for platform, pattern in (("moodle", _MOODLE), ("canvas", _CANVAS), ("canvas", _CANVAS_ANONYMOUS)):
            if match := pattern.fullmatch(part):
                about = match.groupdict()
                anonymous = pattern is _CANVAS_ANONYMOUS
                return Upload(
                    entry=entry,
                    owner=f"{about['name']}-{about['user']}" if anonymous else about["name"],
                    platform=platform,
                    user="" if anonymous else about.get("user") or "",
                    upload=about["upload"],
                    late=bool(about.get("late")),
                    attempt=_attempt(entry.path.name, _AGAIN),
                )
    return None


def _nbgrader(entry: Entry, chapter: str) -> Upload | None:
    parts = entry.path.parts
    if len(parts) < 3 or parts[-2] != chapter:
        return None
    return Upload(entry=entry, owner=parts[-3], platform="nbgrader")


def _mentions(path: PurePosixPath, chapter: str) -> bool:
    return any(
        part == chapter or re.search(rf"(?<!\w){re.escape(chapter)}|{re.escape(chapter)}(?!\w)", part)
        for part in path.parts
    )


def _plain(entry: Entry, chapter: str, *, by_folder: bool) -> Upload | None:
    stem = _stem(entry.path.name)
    attempt = _attempt(entry.path.name, _SAVED_AGAIN)
    name = re.sub(rf"[\W_]*{re.escape(chapter)}[\W_]*", " ", _SAVED_AGAIN.sub("", stem)).strip()
    parent = entry.path.parent.name
    owner = parent if by_folder and parent else name or parent
    return Upload(entry=entry, owner=owner, attempt=attempt) if owner and owner != chapter else None


def _stem(name: str) -> str:
    return re.sub(r"\.ipynb(\.json|\.txt)?$", "", name, flags=re.IGNORECASE)


def _attempt(name: str, pattern: re.Pattern[str]) -> int:
    match = pattern.search(_stem(name))
    return max((int(number) for number in match.groups() if number), default=0) if match else 0
