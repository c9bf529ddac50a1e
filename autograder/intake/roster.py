"""Keep the roster: ``course/students.json`` maps student ids to names and platform numbers.

Submissions and the class list write to the same file, so that there is one answer to the question who somebody is.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from autograder.atomic_files import write_atomically
from autograder.course.folder import Course
from autograder.errors import CourseError

# Latin letters that are no letter with an accent.
_LATIN = str.maketrans({"ı": "i", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe"})
# What follows a team's name in Moodle's download.
_NUMBER = re.compile(r"_\d+$")
_SAFE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._@-]{0,98}[A-Za-z0-9_@-])?")
_NOT_IN_FILE_NAMES = re.compile(r"""[&<>"'`|:*?/\\]""")
# The fields that every entry of the file has.
_ALWAYS = frozenset({"name", "platform", "user", "uploads"})
# Characters that nbgrader's columns hold; PostgreSQL refuses more.
_GRADEBOOK_LENGTH = 128
# Windows opens a device by these names, whatever stands behind a dot.
_DEVICES = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)


@dataclass(frozen=True)
class Student:
    """A student in the roster."""

    id: str  # the name of their folders; safe on every file system
    name: str = ""  # their name, or empty
    platform: str = ""  # ``"canvas"``, ``"moodle"``, or empty
    user: str = ""  # their number on Canvas, which is the same for every assignment, or empty
    # by chapter, the number of this submission in the platform's download. On Moodle it is the participant's or, where teams hand in, the
    # team's name with its number (``Team 5_7``).
    uploads: Mapping[str, str] = field(default_factory=dict)
    surname: str = ""  # the part of the name that they are sorted by, or empty if no class list names it
    email: str = ""  # their email address, or empty
    number: str = ""  # their number at the institution (Canvas's SIS User ID, Moodle's ID number), or empty
    login: str = ""  # the name that they log in with, or empty
    group: str = ""  # the group that they hand in with; several are separated by commas; empty for none
    section: str = ""  # their section on Canvas, or empty
    # whether the class list has them. A student who is only known by a submission is not enrolled.
    enrolled: bool = False
    # by chapter, the student's number in the assignment on Moodle, from its grading worksheet
    participants: Mapping[str, str] = field(default_factory=dict)
    # by chapter, the group that the student handed in with. A later class list does not change it.
    teams: Mapping[str, str] = field(default_factory=dict)
    # by chapter, the platform of an upload if it differs from ``platform``
    other_platforms: Mapping[str, str] = field(default_factory=dict)
    # ``"withdrawn"`` for a student who left the class, ``"ignored"`` for a submitter who is not a student (a test account), else empty. The
    # work of both is kept, and counts nowhere.
    state: str = ""
    excused: tuple[str, ...] = ()  # the chapters that do not count for this student
    drafts: tuple[str, ...] = ()  # the chapters that Moodle has as a draft, which the student has not handed in
    # by chapter, the points that a person gave to work without a notebook, and why
    decided: Mapping[str, tuple[float, str]] = field(default_factory=dict)
    # whether only a number in a blind assignment is known, until a worksheet with names is read
    blind: bool = False
    # the day on which the student joined the class (``2026-11-02``), or empty. Chapters that were due before do not count.
    joined: str = ""

    @property
    def counts(self) -> bool:
        """Whether the student counts in averages, totals and exports: listed, and neither withdrawn nor ignored."""
        return self.enrolled and not self.state

    def find_team(self, chapter: str) -> str | None:
        """Return the group with which the student hands in a chapter, if it is fixed; else None.

        The work of a team that lies under the student's id stays the team's, in whatever group a later list has the student.
        """
        upload = self.uploads.get(chapter, "")
        if self.find_platform(chapter) == "moodle" and upload and not upload.isdecimal():
            return _NUMBER.sub("", upload)
        return self.teams.get(chapter)

    def find_platform(self, chapter: str) -> str:
        """Return the platform on which the student hands in a chapter; empty if unknown."""
        return self.other_platforms.get(chapter, self.platform)

    def number_on_moodle(self, chapter: str) -> str:
        """Return the student's number in a chapter's Moodle assignment; empty if unknown."""
        uploaded = self.uploads.get(chapter, "") if self.find_platform(chapter) == "moodle" else ""
        return self.participants.get(chapter) or (uploaded if uploaded.isdecimal() else "")

    @property
    def first_and_last_name(self) -> tuple[str, str]:
        """The name in two parts; without a class list, the last word is the surname."""
        if self.surname and self.name.endswith(self.surname):
            return self.name.removesuffix(self.surname).strip(), self.surname
        first, _, last = self.name.rpartition(" ")
        return first, last


def safe_id(text: str) -> str:
    """Return a student id made from a name: lower case, without accents, hyphens for other unsafe characters.

    Returns:
        The id; empty if nothing is left of the text.
    """
    letters = text.casefold().translate(_LATIN)
    folded = "".join(c for c in unicodedata.normalize("NFKD", letters) if not unicodedata.combining(c))
    words = re.sub(r"[^\w@.]+|_", "-", folded)
    # Letters of other scripts are kept by their number: a name in Greek is still a name, and an id is still ASCII.
    ascii_words = "".join(c if c.isascii() else f"u{ord(c):x}" for c in words)
    plain_id = re.sub(r"-{2,}|-*\.-*(?=\.)", "-", ascii_words).strip("-.@")[:80].strip("-.@")
    return f"student-{plain_id}" if _DEVICES.fullmatch(plain_id) else plain_id


def fold_name(name: str) -> str:
    """Normalise a name for comparison: case, Unicode form, redundant blanks, and characters not allowed in file names.

    Moodle leaves these signs out of the names of folders, and writes blanks for underscores.
    """
    written = _NOT_IN_FILE_NAMES.sub("", name).replace("_", " ")
    return unicodedata.normalize("NFC", " ".join(written.split())).casefold()


def name_forms(student: Student) -> set[str]:
    """Return the forms of a student's name in downloads: as it is, and Canvas's form without blanks, surname first."""
    if not student.name:
        return set()
    first, last = student.first_and_last_name
    return {fold_name(student.name), _fold_letters(f"{last}{first}")}


def has_name(student: Student, owner: str) -> bool:
    """Return whether the owner of a submission has the student's name."""
    return bool({fold_name(owner), owner.casefold()} & name_forms(student))


def group_names(student: Student) -> set[str]:
    """Return a student's groups, normalised: the whole cell, and its comma-separated parts as Moodle lists them."""
    return {fold_name(group) for group in (student.group, *student.group.split(",")) if group.strip()}


def hand_in_groups(roster: Mapping[str, Student], chapter: str) -> dict[str, str]:
    """Return the group with which each student hands in a chapter, normalised; empty without one.

    It is the chapter's own, from its worksheet or its first collection. Else it is the smallest of the student's groups: Moodle lists
    teams and tutorials in one cell.
    """
    groups = {name: [fold_name(group) for group in student.group.split(",")] for name, student in roster.items()}
    sizes = Counter(group for name, student in roster.items() if student.counts for group in {*groups[name]})
    teams = {name: student.find_team(chapter) for name, student in roster.items()}
    return {
        name: min(groups[name], key=lambda group: (sizes[group], group)) if team is None else fold_name(team)
        for name, team in teams.items()
    }


def team_members(roster: Mapping[str, Student], owner: str, chapter: str) -> list[str]:
    """Return the members of the team that owns a submission, its holder first; empty if the owner is no team.

    Args:
        roster: the students that the course knows.
        owner: the name in a download of Moodle's.
    """
    name = fold_name(owner)
    students = [student for student in roster.values() if student.enrolled]
    if any(name in name_forms(student) for student in students):
        return []
    members = [
        student
        for student in students
        if name in (group_names(student) if (team := student.find_team(chapter)) is None else {fold_name(team)})
    ]
    return [student.id for student in sorted(members, key=lambda one: (chapter not in one.uploads, one.id))]


def _fold_letters(name: str) -> str:
    return "".join(sign for sign in unicodedata.normalize("NFC", name).casefold() if sign.isalnum())


def is_safe(student: str) -> bool:
    """Return whether an id is valid as a folder name and as an id in nbgrader."""
    return _SAFE.fullmatch(student) is not None and ".." not in student and not _DEVICES.fullmatch(student)


def roster_path(course: Course) -> Path:
    """Return the path of the roster file."""
    return course.root / "students.json"


def read_roster(course: Course) -> dict[str, Student]:
    """Read the roster: students by id.

    Raises:
        CourseError: if the file is there and cannot be read: it may hold what somebody wrote by hand.
    """
    path = roster_path(course)
    if not path.exists():
        return {}
    try:
        entries: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
        return {student: _student_from_entry(student, entry) for student, entry in entries.items()}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise CourseError(
            f"the list of students cannot be read ({error})",
            where=path,
            do="Put it right, or move it away to begin a new one.",
        ) from error


def write_roster(course: Course, roster: Mapping[str, Student]) -> None:
    """Write the roster atomically, ordered by id."""
    entries = {student: _entry_data(roster[student]) for student in sorted(roster)}
    write_atomically(roster_path(course), (json.dumps(entries, indent=1, ensure_ascii=False) + "\n").encode())


def _student_from_entry(student: str, entry: Mapping[str, Any]) -> Student:
    lists = {name: tuple(entry.get(name, ())) for name in ("excused", "drafts")}
    return Student(id=student, **{**entry, **lists})


def _entry_data(student: Student) -> dict[str, Any]:
    """Return a student's entry for the file, without empty optional fields."""
    entry = asdict(student)
    del entry["id"]
    return {name: value for name, value in entry.items() if value or name in _ALWAYS}


def known_students(course: Course) -> frozenset[str]:
    """Return the ids of the students in the roster and in submissions, and ids made from listed names."""
    roster = read_roster(course)
    names = (safe_id(student.name) for student in roster.values() if student.enrolled and student.name)
    return frozenset([*roster, *names, *submitted_folders(course)])


def submitted_folders(course: Course) -> frozenset[str]:
    """Return the names of the student folders in ``submitted/``."""
    return frozenset(path.name for path in course.folder("submitted").glob("*/") if path.is_dir())


def merge_collected(roster: Mapping[str, Student], collected: Sequence[Student]) -> dict[str, Student]:
    """Return a roster updated with the students of a collection; other fields stay."""
    everyone = dict(roster)
    for student in collected:
        entry = everyone.get(student.id, Student(student.id))
        platform = entry.platform or student.platform
        numbered = {**student.uploads, **student.participants}
        others = {chapter: name for chapter, name in entry.other_platforms.items() if chapter not in numbered}
        if student.platform not in ("", platform):
            others |= dict.fromkeys(numbered, student.platform)
        everyone[student.id] = replace(
            entry,
            # A class list spells a name as people do; Canvas's downloads run it together.
            name=entry.name if entry.enrolled and entry.name else student.name or entry.name,
            platform=platform,
            user=student.user or entry.user,
            uploads={**entry.uploads, **student.uploads},
            participants={**entry.participants, **student.participants},
            teams={**entry.teams, **student.teams},
            other_platforms=others,
            excused=tuple(sorted({*entry.excused, *student.excused})),
            decided={**entry.decided, **student.decided},
        )
    return everyone


def gradebook_names(course: Course, students: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the gradebook fields of some students: names, email address and the platform's number."""
    roster = read_roster(course)
    names = {}
    for student in (roster[name] for name in students if name in roster):
        first, last = student.first_and_last_name
        fields = {"first_name": first, "last_name": last, "email": student.email, "lms_user_id": student.user}
        names[student.id] = {field: text[:_GRADEBOOK_LENGTH] for field, text in fields.items()}
    return names
