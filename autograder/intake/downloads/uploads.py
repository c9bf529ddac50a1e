"""Find the owners of files by the names in downloads: nbgrader's folders, Canvas, Moodle, or a folder of notebooks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from autograder.intake.downloads.archive import Entry, is_notebook
from autograder.intake.downloads.platform_names import (
    assignment_title,
    possible_readings,
    rank_kinds,
    resolve_name,
    strip_platform_prefix,
)
from autograder.intake.roster import safe_id

# Canvas counts a file handed in again as -1, -2 …; browsers count a file saved again as (1), (2) …
_AGAIN = re.compile(r"(?:-(\d{1,3})|\s*\((\d{1,3})\))+$")
_SAVED_AGAIN = re.compile(r"\s*\((\d{1,3})\)$")

# What to do about a notebook of which it cannot be told whose it is.
ALONE = "Give each student a file or a folder of their name, directly in the folder or archive that you name with --submissions."


@dataclass(frozen=True)
class Upload:
    """A submitted file and the information in its name."""

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
        """The sort key of one student's uploads, from the first to the last."""
        date = self.entry.date.timestamp() if self.entry.date else 0.0
        number = int(self.upload) if self.platform == "canvas" else 0
        return (self.submitted, self.attempt, number, date, str(self.entry.path))

    @property
    def series(self) -> tuple[str, ...]:
        """The path without additions of platform or browser, which is the same for all versions of a file."""
        again = _AGAIN if self.platform in ("canvas", "moodle") else _SAVED_AGAIN
        level, called = self.named or (-1, "")
        parts = enumerate(self.entry.path.parts)
        cleaned = (
            called if number == level else part if self.named else strip_platform_prefix(part) for number, part in parts
        )
        return tuple(again.sub("", _file_stem(part)).strip() for part in cleaned)

    @property
    def title(self) -> str:
        """The file's name as the student gave it, without its ending."""
        return self.series[-1]

    def is_named_after(self, chapter: str) -> bool:
        """Return whether the file is named after a chapter, possibly with a student's name added."""
        if self.title.casefold() == chapter.casefold():
            return True
        rest = safe_id(_strip_chapter_name(self.title, chapter))
        return self.title != rest and chapter in self.title and rest == safe_id(self.owner)


@dataclass(frozen=True)
class UnownedFile:
    """A file whose owner cannot be determined."""

    entry: Entry  # the file
    why: str = "It cannot be told whose notebook this is."  # why that is so, as a sentence
    do: str = ALONE  # what to do about it


@dataclass(frozen=True)
class Layout:
    """The layout of a download, which determines how names give the files' owners."""

    chapter: str
    others: frozenset[str]  # names of the course's other chapters; a folder of such a name is no student's
    known_students: frozenset[str]  # ids of students in the course
    platform: int | None  # the folder level at which a platform names the students, if any
    # the folder level named after students, not counting chapters; None if files are named after them
    level: int | None
    owner: str = ""  # the owner of all files, if they are all in a folder or archive named after a known student
    doubtful: frozenset[str] = frozenset()  # names at that level that may or may not be a student's name
    kinds: tuple[frozenset[str], ...] = ()  # the possible kinds of download, the most likely first
    title: str = ""  # the assignment title, if a platform writes it before a login

    @classmethod
    def from_entries(
        cls, entries: Sequence[Entry], chapter: str, others: frozenset[str], known_students: frozenset[str]
    ) -> Layout:
        """Determine the layout of some files.

        The owner is read from names that a platform or a lecturer has given: the outermost folders with different names or, without such
        folders, the files. Names below that level come from students and are ignored.
        """
        paths, chapters = [_trusted_path(entry) for entry in entries], others | {chapter}
        level, owner, doubtful = _locate_students(paths, chapters, known_students)
        platform = _platform_level(paths, known_students)
        names = [] if platform is None else [path.parts[platform] for path in paths if len(path.parts) > platform]
        kinds = tuple(rank_kinds(names, chapters))
        title = assignment_title(names)
        return cls(chapter, others, known_students, platform, level, owner, doubtful, kinds, title)

    def find_owner(self, entry: Entry, chapter: str = "") -> Upload | UnownedFile | None:
        """Return a chapter's file with its owner, by default of the chapter to collect; None if the owner is unknown.

        Other files than notebooks have an owner only where a platform or a folder names one, or their own name does beyond doubt.
        """
        chapter, notebook = chapter or self.chapter, is_notebook(entry)
        if upload := self._match_platform_name(entry):
            return upload
        if self.platform is not None and not notebook:
            return None
        path = _trusted_path(entry)
        folders = _student_folders(path, self.others | {self.chapter})
        attempt = _attempt_number(entry.path.name, _SAVED_AGAIN)
        if self.owner and (not folders or folders[0][1] != self.owner):
            return Upload(entry, self.owner, attempt=attempt)
        if self.owner:
            number, owner = folders[0]
        elif self.level is not None and self.level < len(folders):
            number, owner = folders[self.level]
        elif self.level is None and chapter in path.parts[1:-1]:
            # nbgrader's layout, with one student in it.
            number = path.parts.index(chapter, 1) - 1
            owner = path.parts[number] if set(path.parts[:number]) <= {"submitted"} else ""
        else:
            return self._match_file_name(entry, path, chapter, attempt)
        if not owner or owner in self.doubtful:
            return None
        if path.parts[number + 1 : number + 2] == (chapter,) and number + 2 < len(path.parts):
            return Upload(entry, owner, platform="nbgrader", folder=PurePosixPath(*path.parts[: number + 2]))
        return Upload(entry, owner, attempt=attempt)

    def find_other_chapter(self, entry: Entry) -> str:
        """Return another chapter that a file's name mentions; empty without one."""
        return next((other for other in sorted(self.others) if _mentions_chapter(entry.path, other)), "")

    def _match_file_name(self, entry: Entry, path: PurePosixPath, chapter: str, attempt: int) -> Upload | None:
        """Return the upload of a file that is named after its owner."""
        name = path.name if is_notebook(entry) else PurePosixPath(path.name).stem
        owner = _strip_chapter_name(name, chapter) or path.parent.name
        if "" in self.doubtful or not owner or owner == chapter:
            return None
        certain = len(path.parts) == 1 and (chapter in path.name or safe_id(owner) in self.known_students)
        return Upload(entry, owner, attempt=attempt) if is_notebook(entry) or certain else None

    def _match_platform_name(self, entry: Entry) -> Upload | UnownedFile | None:
        """Parse a platform's file name; return None if no platform has named the file."""
        parts, level = _trusted_path(entry).parts, self.platform
        if level is None or level >= len(parts):
            return None
        ways = resolve_name(parts[level], self.kinds, self.others | {self.chapter}, self.title)
        if len(ways) > 1:
            why = f"Its name can be read in {len(ways)} ways, as the work of {' or of '.join(map(str, ways))}; so nobody gets it."
            return UnownedFile(entry, why, "See on the platform whose it is, rename it, and collect again.")
        if not ways:
            return None
        way, attempt = ways[0], _attempt_number(entry.path.name, _AGAIN)
        numbers = (way.platform, way.user, way.upload, way.late, attempt)
        return Upload(entry, way.owner, *numbers, named=(level, way.file), submitted=way.submitted)


def _locate_students(
    paths: Sequence[PurePosixPath], chapters: frozenset[str], known_students: frozenset[str]
) -> tuple[int | None, str, frozenset[str]]:
    """Return the level of the folders named after students, the single owner of all files, and the doubtful names."""
    chains = [[name for _, name in _student_folders(path, chapters)] for path in paths]
    deepest = max(map(len, chains), default=0)
    # None stands for a file in the place of a folder: it is somebody else's than what lies in the folder.
    names = [{chain[level] if level < len(chain) else None for chain in chains} for level in range(deepest)]
    level = next((level for level, level_names in enumerate(names) if len(level_names) > 1), None)
    if level is None:
        # One folder, or none. It may be the class's, with a file for each, or all that one student has handed in.
        around = [name for level_names in names for name in level_names if name is not None]
        one_place = len(set(paths)) == 1
        if one_place:
            around.append(_file_stem(paths[0].name))
        owner = around[0] if around and safe_id(around[0]) in known_students else ""
        named_file = bool(paths) and all(_strip_chapter_name(paths[0].name, chapter) for chapter in chapters)
        alone = one_place and (len(paths) > 1 or bool(names and named_file))
        return None, owner, frozenset({""} if alone and not owner else ())
    shares = Counter(chain[level] for chain in chains if level < len(chain))
    below = {
        name: {chain[level + 1] for chain in chains if level + 1 < len(chain) and chain[level] == name}
        for name in shares
    }
    # Most of the notebooks, in several folders: the class beside something else, or a student with very many.
    doubtful = {
        name for name, share in shares.items() if len(paths) > 3 and 2 * share > len(paths) and len(below[name]) > 1
    }
    return level, "", frozenset(doubtful)


def _student_folders(path: PurePosixPath, chapters: frozenset[str]) -> list[tuple[int, str]]:
    return [(number, name) for number, name in enumerate(path.parts[:-1]) if name not in chapters]


def _trusted_path(entry: Entry) -> PurePosixPath:
    """Return the part of a path that a lecturer or platform named, without paths inside a student's archive."""
    parts = entry.path.parts
    end = next((i for i, part in enumerate(parts[:-1], start=1) if part.lower().endswith(".zip")), len(parts))
    return PurePosixPath(*parts[:end])


def _platform_level(paths: Sequence[PurePosixPath], known_students: frozenset[str]) -> int | None:
    """Return the folder level at which a platform names the students; None without one.

    At the top, at least half of the names look like it. Below, where a student may have chosen them, all do, and no folder above them is
    a student's that the course knows.
    """
    depths: Counter[int | None] = Counter()
    for path in paths:
        looks = (i for i, part in enumerate(path.parts) if possible_readings(part))
        depths[next(looks, None)] += 1
    depth, count = max(depths.items(), key=lambda item: (item[1], item[0] is not None), default=(None, 0))
    if not depth:
        return depth if depth is not None and 2 * count >= len(paths) else None
    above = {part for path in paths for part in path.parts[:depth]}
    return depth if count == len(paths) and not any(safe_id(part) in known_students for part in above) else None


def _mentions_chapter(path: PurePosixPath, chapter: str) -> bool:
    return any(
        part == chapter or re.search(rf"(?<!\w){re.escape(chapter)}|{re.escape(chapter)}(?!\w)", part)
        for part in path.parts
    )


def _strip_chapter_name(name: str, chapter: str) -> str:
    """Remove the chapter's name, ending and version number from a file's name."""
    return re.sub(rf"[\W_]*{re.escape(chapter)}[\W_]*", " ", _SAVED_AGAIN.sub("", _file_stem(name))).strip()


def _file_stem(name: str) -> str:
    return re.sub(r"\.(?:ipynb(?:\.json|\.txt)?|zip)$", "", name, flags=re.IGNORECASE)


def _attempt_number(name: str, pattern: re.Pattern[str]) -> int:
    match = pattern.search(_file_stem(name))
    return max((int(number) for number in match.groups() if number), default=0) if match else 0
