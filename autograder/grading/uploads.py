"""Whose file is it? What the names of downloads say: nbgrader's folders, Canvas, Moodle, or a folder of notebooks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath

from autograder.grading.entries import Entry, notebooks

_CANVAS = re.compile(r"(?P<name>[^_]+)_(?P<late>LATE_)?(?P<user>\d+)_(?P<upload>\d+)_(?P<file>.+)")
_CANVAS_ANONYMOUS = re.compile(r"(?P<name>anon)_(?P<late>LATE_)?(?P<user>[0-9A-Za-z]+)_(?P<upload>\d+)_(?P<file>.+)")
_MOODLE = re.compile(r"(?P<name>.+)_(?P<upload>\d+)_assignsubmission_(?:file|onlinetext)(?:_(?P<file>.*))?")
_PATTERNS = (("moodle", _MOODLE), ("canvas", _CANVAS), ("canvas", _CANVAS_ANONYMOUS))
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
        folder: nbgrader's folder of the submission, which holds its time stamp; None on other platforms.
    """

    entry: Entry
    owner: str
    platform: str = ""
    user: str = ""
    upload: str = ""
    late: bool = False
    attempt: int = 0
    folder: PurePosixPath | None = None

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
    folders = {_outside(entry).parent for entry in entries if len(_outside(entry).parts) > 1}
    archives = {_outside(entry) for entry in entries if _outside(entry) != entry.path}
    # A single archive is the class's, so the names in it count; of several, each is a student's, whatever the names in it claim.
    single = len(archives) == 1 and all(_outside(entry) in archives for entry in entries)
    depth = _depth(entries, single)
    places = [entry.path if single else _outside(entry) for entry in entries]
    level = _level(places)
    for entry, place in zip(entries, places, strict=True):
        upload = _platform(entry, place, depth) or _nbgrader(entry, place, chapter)
        if upload is None and any(_mentions(entry.path, other) for other in others):
            elsewhere.append(entry)
            continue
        upload = upload or _plain(entry, place, chapter, by_folder=len(folders) > 1, level=level)
        if upload is None:
            unknown.append(entry)
        else:
            found.append(upload)
    return found, unknown, elsewhere


def owners_elsewhere(entries: Iterable[Entry], others: frozenset[str]) -> Iterator[tuple[Entry, str, str]]:
    """Yield other chapters' notebooks, each with its owner and that chapter, where an owner can be told."""
    for entry in entries:
        chapter = next(other for other in sorted(others) if _mentions(entry.path, other))
        by_folder = len(entry.path.parts) > 1
        upload = _nbgrader(entry, entry.path, chapter) or _plain(entry, entry.path, chapter, by_folder=by_folder)
        if upload is not None:
            yield entry, upload.owner, chapter


def without_notebook(entries: Sequence[Entry], chapter: str) -> dict[str, list[Entry]]:
    """Return the files of those who handed in something and no notebook, by the student's name or folder.

    Args:
        entries: all files of a download.
        chapter: the chapter that is collected.
    """
    homes = [_home(entry, chapter) for entry in entries]
    several = len({folder for owner, folder in homes if not owner and folder}) > 1
    named = [owner or (folder if several else "") for owner, folder in homes]
    have = {owner for owner, entry in zip(named, entries, strict=True) if any(notebooks([entry]))}
    found: dict[str, list[Entry]] = {}
    for owner, entry in zip(named, entries, strict=True):
        if owner and owner not in have:
            found.setdefault(owner, []).append(entry)
    return found


def _home(entry: Entry, chapter: str) -> tuple[str, str]:
    """Return the student that a platform or nbgrader's layout names in a path, if one does, and the outermost folder."""
    place = _outside(entry)
    upload = _platform(entry, place) or _nbgrader(entry, place, chapter)
    return (upload.owner if upload else "", place.parts[0] if len(place.parts) > 1 else "")


def _outside(entry: Entry) -> PurePosixPath:
    """Return the part of a path that a lecturer or a platform named: what is in an archive was named by a student."""
    parts = entry.path.parts
    end = next((i for i, part in enumerate(parts[:-1], start=1) if part.lower().endswith(".zip")), len(parts))
    return PurePosixPath(*parts[:end])


def _depth(entries: Sequence[Entry], single: bool) -> int | None:
    """Return the level at which a platform names the students: where at least half of the names look like it."""
    seen: Counter[int | None] = Counter()
    for entry in entries:
        parts = (entry.path if single else _outside(entry)).parts
        seen[next((i for i, part in enumerate(parts) if any(p.fullmatch(part) for _, p in _PATTERNS)), None)] += 1
    depth, count = max(seen.items(), key=lambda item: (item[1], item[0] is not None), default=(None, 0))
    return depth if 2 * count >= len(entries) else None


def _level(places: Sequence[PurePosixPath]) -> int | None:
    """Return the level of folders that has the students' names, or None if the innermost folder has them.

    There are more students than there are names for what each of them keeps their work in.
    """
    names: dict[int, set[str]] = {}
    for place in places:
        for level, name in enumerate(place.parts[:-1]):
            names.setdefault(level, set()).add(name)
    innermost = {place.parent.name for place in places if place.parent.name}
    level = max(names, key=lambda level: (len(names[level]), -level), default=0)
    return level if len(names.get(level, ())) > len(innermost) else None


def _platform(entry: Entry, place: PurePosixPath, depth: int | None = -1) -> Upload | None:
    """Return what a platform's name says; by default wherever in the path it stands, else at one level."""
    parts = place.parts if depth == -1 else place.parts[depth : depth + 1] if depth is not None else ()
    for part in parts:
        for platform, pattern in _PATTERNS:
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


def _nbgrader(entry: Entry, place: PurePosixPath, chapter: str) -> Upload | None:
    # The first folder of the chapter's name: a folder of that name within it is the student's own invention.
    for depth, (before, part) in enumerate(pairwise(place.parts[:-1]), start=2):
        if part == chapter:
            folder = PurePosixPath(*place.parts[:depth])
            return Upload(entry=entry, owner=before, platform="nbgrader", folder=folder)
    return None


def _mentions(path: PurePosixPath, chapter: str) -> bool:
    return any(
        part == chapter or re.search(rf"(?<!\w){re.escape(chapter)}|{re.escape(chapter)}(?!\w)", part)
        for part in path.parts
    )


def _plain(
    entry: Entry, place: PurePosixPath, chapter: str, *, by_folder: bool, level: int | None = None
) -> Upload | None:
    attempt = _attempt(entry.path.name, _SAVED_AGAIN)
    name = re.sub(rf"[\W_]*{re.escape(chapter)}[\W_]*", " ", _SAVED_AGAIN.sub("", _stem(place.name))).strip()
    folders = place.parts[:-1]
    parent = folders[level] if level is not None and level < len(folders) else place.parent.name
    owner = parent if by_folder and parent else name or parent
    return Upload(entry=entry, owner=owner, attempt=attempt) if owner and owner != chapter else None


def _stem(name: str) -> str:
    return re.sub(r"\.(?:ipynb(?:\.json|\.txt)?|zip)$", "", name, flags=re.IGNORECASE)


def _attempt(name: str, pattern: re.Pattern[str]) -> int:
    match = pattern.search(_stem(name))
    return max((int(number) for number in match.groups() if number), default=0) if match else 0
