"""Whose file is it? What the names of downloads say: nbgrader's folders, Canvas, Moodle, or a folder of notebooks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import PurePosixPath

from autograder.intake.downloads.archive import Entry, notebooks
from autograder.intake.downloads.platform_names import assignment_title, kinds_by_share, own_name, read, readings
from autograder.intake.roster import safe_id

# Canvas counts a file handed in again as -1, -2 …; browsers count a file saved again as (1), (2) …
_AGAIN = re.compile(r"(?:-(\d{1,3})|\s*\((\d{1,3})\))+$")
_SAVED_AGAIN = re.compile(r"\s*\((\d{1,3})\)$")

# What to do about a notebook of which it cannot be told whose it is.
ALONE = "Give each student a file or a folder of their name, directly in the folder or archive that you name with --submissions."


@dataclass(frozen=True)
class Upload:
    """A submitted notebook and the information in its name."""

    entry: Entry  # the file
    owner: str  # the student's name or id, as written in the name
    platform: str = ""  # ``"canvas"``, ``"moodle"``, ``"blackboard"``, ``"brightspace"``, ``"nbgrader"`` or empty
    user: str = ""  # the student's number on Canvas, the same in every assignment
    upload: str = ""  # the number of this upload (Canvas) or of this participant in this assignment (Moodle)
    late: bool = False  # whether Canvas marks it as late
    attempt: int = 0  # its index among several uploads of the same name, from 0
    # nbgrader's folder of the submission, which contains its time stamp; None on other platforms
    folder: PurePosixPath | None = None
    # the platform's part of the path, and the student's file name; None without a platform
    named: tuple[int, str] | None = None
    submitted: str = ""  # the submission time in the name, as written by the platform; empty if the name has no time

    @property
    def order(self) -> tuple[str, int, int, float, str]:
        """Sorts the uploads of one student from the first to the last."""
        date = self.entry.date.timestamp() if self.entry.date else 0.0
        number = int(self.upload) if self.platform == "canvas" else 0
        return (self.submitted, self.attempt, number, date, str(self.entry.path))

    @property
    def series(self) -> tuple[str, ...]:
        """The same for all uploads that are one file, handed in or saved again: its path without what a platform or a browser adds."""
        again = _AGAIN if self.platform in ("canvas", "moodle") else _SAVED_AGAIN
        level, called = self.named or (-1, "")
        parts = enumerate(self.entry.path.parts)
        cleaned = (called if number == level else part if self.named else own_name(part) for number, part in parts)
        return tuple(again.sub("", _stem(part)).strip() for part in cleaned)

    @property
    def title(self) -> str:
        """The name that the student gave the file, without its ending."""
        return self.series[-1]

    def is_named_after(self, chapter: str) -> bool:
        """Return whether the file is named after its chapter, possibly with a student's name added."""
        if self.title.casefold() == chapter.casefold():
            return True
        rest = safe_id(_without(self.title, chapter))
        return self.title != rest and chapter in self.title and rest == safe_id(self.owner)


@dataclass(frozen=True)
class Unowned:
    """A file of which it cannot be told whose it is."""

    entry: Entry  # the file
    why: str = "It cannot be told whose notebook this is."  # why that is so, as a sentence
    do: str = ALONE  # what to do about it


def uploads_of(
    entries: Sequence[Entry], chapter: str, others: frozenset[str], known_students: frozenset[str] = frozenset()
) -> tuple[list[Upload], list[Unowned], list[Entry]]:
    """Determine the owners of the notebooks in a download.

    The owner is read from names that a platform or a lecturer has given: the outermost folders with different names or, without such
    folders, the files. Names below that level come from students and are ignored.

    Args:
        entries: the notebooks.
        chapter: the chapter to collect.
        others: the names of the course's other chapters.
        known_students: ids of students in the course.

    Returns:
        The uploads for this chapter, the notebooks without an identifiable owner, and the notebooks whose names belong to another chapter.
    """
    uploads: list[Upload] = []
    unknown: list[Unowned] = []
    elsewhere: list[Entry] = []
    layout = _layout([_outside(entry) for entry in entries], others | {chapter}, known_students)
    for entry in entries:
        upload = _platform(entry, layout)
        if isinstance(upload, Unowned):
            unknown.append(upload)
            continue
        upload = upload or _owned(entry, layout, chapter)
        of_platform = upload is not None and upload.platform != ""
        if not of_platform and any(_mentions(entry.path, other) for other in others):
            elsewhere.append(entry)
        elif upload is None:
            unknown.append(Unowned(entry))
        else:
            uploads.append(upload)
    plain, nbgraders = (sum(upload.platform == name for upload in uploads) for name in ("", "nbgrader"))
    if plain > nbgraders:
        # The layout is not nbgrader's: who has made a folder of the chapter's name for it has written the time into it as well.
        uploads = [
            replace(upload, platform="", folder=None) if upload.platform == "nbgrader" else upload for upload in uploads
        ]
    return uploads, unknown, elsewhere


@dataclass(frozen=True)
class _Layout:
    """The layout of a download."""

    platform: int | None  # the folder level at which a platform names the students, if any
    # the folder level named after students, not counting chapters; None if files are named after them
    level: int | None
    chapters: frozenset[str]  # names of chapters, which belong to no student
    owner: str = ""  # the owner of all files, if they are all in a folder or archive named after a known student
    doubtful: frozenset[str] = frozenset()  # names at that level that may or may not be a student's name
    kinds: tuple[frozenset[str], ...] = ()  # the possible kinds of download, the most likely first
    title: str = ""  # the assignment title, if a platform writes it before a login

    def folders(self, path: PurePosixPath) -> list[tuple[int, str]]:
        """Return the folders of a place that may be somebody's, with their numbers among its parts."""
        return _folders(path, self.chapters)


def _layout(paths: Sequence[PurePosixPath], chapters: frozenset[str], known_students: frozenset[str]) -> _Layout:
    layout = _layout_of_folders(paths, chapters, known_students)
    if layout.platform is None:
        return layout
    names = [path.parts[layout.platform] for path in paths if len(path.parts) > layout.platform]
    return replace(layout, kinds=tuple(kinds_by_share(names, chapters)), title=assignment_title(names))


def _layout_of_folders(
    paths: Sequence[PurePosixPath], chapters: frozenset[str], known_students: frozenset[str]
) -> _Layout:
    chains = [[name for _, name in _folders(path, chapters)] for path in paths]
    deepest = max(map(len, chains), default=0)
    # None stands for a file in the place of a folder: it is somebody else's than what lies in the folder.
    names = [{chain[level] if level < len(chain) else None for chain in chains} for level in range(deepest)]
    level = next((level for level, level_names in enumerate(names) if len(level_names) > 1), None)
    platform = _depth(paths, known_students)
    if level is None:
        # One folder, or none. It may be the class's, with a file for each, or all that one student has handed in.
        around = [name for level_names in names for name in level_names if name is not None]
        if len(set(paths)) == 1:
            around.append(_stem(paths[0].name))
        owner = around[0] if around and safe_id(around[0]) in known_students else ""
        alone = len(set(paths)) == 1 and (len(paths) > 1 or bool(names and _named_file(paths[0], chapters)))
        return _Layout(platform, None, chapters, owner, frozenset({""} if alone and not owner else ()))
    shares = Counter(chain[level] for chain in chains if level < len(chain))
    below = {
        name: {chain[level + 1] for chain in chains if level + 1 < len(chain) and chain[level] == name}
        for name in shares
    }
    # Most of the notebooks, in several folders: the class beside something else, or a student with very many.
    doubtful = {
        name for name, share in shares.items() if len(paths) > 3 and 2 * share > len(paths) and len(below[name]) > 1
    }
    return _Layout(platform, level, chapters, "", frozenset(doubtful))


def _folders(path: PurePosixPath, chapters: frozenset[str]) -> list[tuple[int, str]]:
    return [(number, name) for number, name in enumerate(path.parts[:-1]) if name not in chapters]


def _named_file(path: PurePosixPath, chapters: frozenset[str]) -> bool:
    """Whether the name of a file is more than its chapter's."""
    return all(_without(path.name, chapter) for chapter in chapters)


def _owned(entry: Entry, layout: _Layout, chapter: str) -> Upload | None:
    """Return the upload for a notebook that no platform has named, if the layout determines its owner."""
    path, folders = _outside(entry), layout.folders(_outside(entry))
    attempt = _attempt(entry.path.name, _SAVED_AGAIN)
    if layout.owner and (not folders or folders[0][1] != layout.owner):
        return Upload(entry, layout.owner, attempt=attempt)
    if layout.owner:
        number, owner = folders[0]
    elif layout.level is not None and layout.level < len(folders):
        number, owner = folders[layout.level]
    elif layout.level is None and chapter in path.parts[1:-1]:
        # nbgrader's layout, with one student in it.
        number = path.parts.index(chapter, 1) - 1
        owner = path.parts[number] if set(path.parts[:number]) <= {"submitted"} else ""
    else:
        return None if "" in layout.doubtful else _plain(entry, path, chapter, by_folder=False)
    if not owner or owner in layout.doubtful:
        return None
    if path.parts[number + 1 : number + 2] == (chapter,) and number + 2 < len(path.parts):
        return Upload(entry, owner, platform="nbgrader", folder=PurePosixPath(*path.parts[: number + 2]))
    return Upload(entry, owner, attempt=attempt)


def owners_elsewhere(entries: Iterable[Entry], others: frozenset[str]) -> Iterator[tuple[Entry, str, str]]:
    """Yield other chapters' notebooks, each with its owner and that chapter, where an owner can be told."""
    for entry in entries:
        chapter = next(other for other in sorted(others) if _mentions(entry.path, other))
        by_folder = len(entry.path.parts) > 1
        upload = _nbgrader(entry, entry.path, chapter) or _plain(entry, entry.path, chapter, by_folder=by_folder)
        if upload is not None:
            yield entry, upload.owner, chapter


def other_files(
    entries: Sequence[Entry], chapter: str, others: frozenset[str], known_students: frozenset[str] = frozenset()
) -> tuple[list[Upload], list[Upload], list[Unowned]]:
    """Return the other files: of students without a notebook, of students with one, and with an ambiguous owner.

    Args:
        entries: all files of a download.
        chapter: the chapter to collect.
        others: the names of the course's other chapters.
        known_students: ids of students in the course.
    """
    meant = list(notebooks(list(entries)))
    paths, chapters = [_outside(entry) for entry in meant], others | {chapter}
    layout = _layout(paths, chapters, known_students)
    if layout.level is None and layout.platform is None:
        # One student's notebooks alone do not show at which level students are named.
        below = [path for entry in entries if len((path := _outside(entry)).parts) > 1]
        layout = replace(_layout(below, chapters, known_students), doubtful=frozenset())
    named = [(entry, _owner_of(entry, layout, chapter, known_students)) for entry in entries]
    have = {_person(upload) for entry, upload in named if isinstance(upload, Upload) and any(notebooks([entry]))}
    files = [
        upload
        for entry, upload in named
        if isinstance(upload, Upload)
        and not any(notebooks([entry]))
        and not _is_other(upload, others)
        and not upload.entry.path.name.startswith(".")
    ]
    alone = [upload for upload in files if _person(upload) not in have]
    with_notebook = [upload for upload in files if _person(upload) in have]
    unclear = [upload for entry, upload in named if isinstance(upload, Unowned) and not any(notebooks([entry]))]
    return alone, with_notebook, unclear


def _person(upload: Upload) -> tuple[str, str]:
    """Return what one student's files have in common: in blind marking everybody has one name."""
    return safe_id(upload.owner), upload.upload if upload.platform in ("moodle", "brightspace") else upload.user


def _is_other(upload: Upload, others: frozenset[str]) -> bool:
    return not upload.platform and any(_mentions(upload.entry.path, other) for other in others)


def _owner_of(entry: Entry, layout: _Layout, chapter: str, known_students: frozenset[str]) -> Upload | Unowned | None:
    """Return a file with its owner, where a platform or a folder names one, or its own name does beyond doubt."""
    path, folders = _outside(entry), layout.folders(_outside(entry))
    if of_platform := _platform(entry, layout):
        return of_platform
    if layout.platform is not None:
        return None
    if layout.level is not None and layout.level < len(folders):
        number, owner = folders[layout.level]
        if path.parts[number + 1 : number + 2] == (chapter,):
            return Upload(entry, owner, platform="nbgrader", folder=PurePosixPath(*path.parts[: number + 2]))
        return None if owner in layout.doubtful else Upload(entry, owner)
    if folders and layout.level is not None:
        return None
    # Files beside each other: only one that is called like its chapter, or like a student, is somebody's.
    upload = (
        _plain(entry, PurePosixPath(_without_suffix(path.name)), chapter, by_folder=False)
        if len(path.parts) == 1
        else None
    )
    return upload if upload and (chapter in path.name or safe_id(upload.owner) in known_students) else None


def _without_suffix(name: str) -> str:
    """Return the name of a file without its ending, whatever that is."""
    return PurePosixPath(name).stem or name


def _outside(entry: Entry) -> PurePosixPath:
    """Return the part of a path that a lecturer or a platform named: what is in an archive was named by a student."""
    parts = entry.path.parts
    end = next((i for i, part in enumerate(parts[:-1], start=1) if part.lower().endswith(".zip")), len(parts))
    return PurePosixPath(*parts[:end])


def _depth(paths: Sequence[PurePosixPath], known_students: frozenset[str]) -> int | None:
    """Return the level at which a platform names the students.

    At the top, at least half of the names look like it. Below, where a student may have chosen them, all do, and no folder above them is
    a student's that the course knows.
    """
    depths: Counter[int | None] = Counter()
    for path in paths:
        looks = (i for i, part in enumerate(path.parts) if readings(part))
        depths[next(looks, None)] += 1
    depth, count = max(depths.items(), key=lambda item: (item[1], item[0] is not None), default=(None, 0))
    if not depth:
        return depth if depth is not None and 2 * count >= len(paths) else None
    above = {part for path in paths for part in path.parts[:depth]}
    return depth if count == len(paths) and not any(safe_id(part) in known_students for part in above) else None


def _platform(entry: Entry, layout: _Layout) -> Upload | Unowned | None:
    """Parse a platform's name of a file; return None if no platform has named it."""
    parts, level = _outside(entry).parts, layout.platform
    if level is None or level >= len(parts):
        return None
    ways = read(parts[level], layout.kinds, layout.chapters, layout.title)
    if len(ways) > 1:
        why = f"Its name can be read in {len(ways)} ways, as the work of {' or of '.join(map(str, ways))}; so nobody gets it."
        return Unowned(entry, why, "See on the platform whose it is, rename it, and collect again.")
    if not ways:
        return None
    return Upload(
        entry=entry,
        owner=ways[0].owner,
        platform=ways[0].platform,
        user=ways[0].user,
        upload=ways[0].upload,
        late=ways[0].late,
        attempt=_attempt(entry.path.name, _AGAIN),
        named=(level, ways[0].file),
        submitted=ways[0].submitted,
    )


def _nbgrader(entry: Entry, path: PurePosixPath, chapter: str) -> Upload | None:
    # The first folder of the chapter's name: a folder of that name within it is the student's own invention.
    for depth, (before, part) in enumerate(pairwise(path.parts[:-1]), start=2):
        if part == chapter:
            folder = PurePosixPath(*path.parts[:depth])
            return Upload(entry=entry, owner=before, platform="nbgrader", folder=folder)
    return None


def _mentions(path: PurePosixPath, chapter: str) -> bool:
    return any(
        part == chapter or re.search(rf"(?<!\w){re.escape(chapter)}|{re.escape(chapter)}(?!\w)", part)
        for part in path.parts
    )


def _plain(entry: Entry, path: PurePosixPath, chapter: str, *, by_folder: bool) -> Upload | None:
    attempt = _attempt(entry.path.name, _SAVED_AGAIN)
    name, parent = _without(path.name, chapter), path.parent.name
    owner = parent if by_folder and parent else name or parent
    return Upload(entry=entry, owner=owner, attempt=attempt) if owner and owner != chapter else None


def _without(name: str, chapter: str) -> str:
    """Return what the name of a file says beside its chapter's."""
    return re.sub(rf"[\W_]*{re.escape(chapter)}[\W_]*", " ", _SAVED_AGAIN.sub("", _stem(name))).strip()


def _stem(name: str) -> str:
    return re.sub(r"\.(?:ipynb(?:\.json|\.txt)?|zip)$", "", name, flags=re.IGNORECASE)


def _attempt(name: str, pattern: re.Pattern[str]) -> int:
    match = pattern.search(_stem(name))
    return max((int(number) for number in match.groups() if number), default=0) if match else 0
