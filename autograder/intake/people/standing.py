"""Decide who counts in which chapter and who has handed in, and record a person's decisions in the roster.

This module also writes a person's decisions about a student into the roster.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from autograder.course.course_file import CourseFile, read_course_file
from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.intake.downloads.journal import missing_submissions, read_journal
from autograder.intake.roster import Student, hand_in_groups, read_roster, write_roster


@dataclass(frozen=True)
class Attendance:
    """A student and the chapters that they have handed in."""

    student: Student
    chapters: tuple[str, ...]


@dataclass(frozen=True)
class UncountedStudent:
    """A student or submitter, with the chapters that do not count for them."""

    student: str  # the id
    name: str  # the name; the id if it is unknown
    chapters: tuple[str, ...]
    reason: str  # why they do not count
    is_decided: bool = True  # False for a stranger, about whom a person has still to decide

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as plain data, ready for JSON."""
        return {"student": self.student, "name": self.name, "chapters": self.chapters, "reason": self.reason}


def is_excused(student: Student, chapter: str, due: datetime | None, *, handed_in: bool = False) -> bool:
    """Return whether a chapter does not count for a listed student.

    Args:
        due: the student's deadline in the course's time zone, or None.
        handed_in: whether there is work. Work of a student who joined later counts; work of an excused student does not.
    """
    if chapter in student.excused:
        return True
    if not student.joined or due is None or handed_in:
        return False
    return due.date() < date.fromisoformat(student.joined)


def has_grade(roster: Mapping[str, Student], student: str, chapter: str, plan: CourseFile, *, handed_in: bool) -> bool:
    """Return whether a student has a grade in a chapter.

    With a class list, only its students have one. Without a list, everybody has one who is in the gradebook. A chapter that is marked
    blindly counts for its participants, and for nobody by name before their names are known.

    Args:
        roster: the students that the course knows.
        plan: the contents of ``course.toml``.
        handed_in: whether there is work of the student, or of the student's group.
    """
    entry = roster.get(student, Student(student))
    has_list = any(other.enrolled for other in roster.values())
    if entry.state or (has_list and not entry.enrolled):
        return False
    if not handed_in and chapter not in entry.participants:
        blind = any(other.blind and chapter in other.participants for other in roster.values())
        if entry.blind or blind:
            return False
    return not is_excused(entry, chapter, plan.due(chapter, student), handed_in=handed_in)


def is_stranger(student: str, roster: Mapping[str, Student]) -> bool:
    """Return whether an id is not on an existing class list and no decision has been made about it."""
    entry = roster.get(student, Student(student))
    has_list = any(other.enrolled for other in roster.values())
    return has_list and not (entry.enrolled or entry.state)


def is_outside_class(student: str, roster: Mapping[str, Student]) -> bool:
    """Return whether an id is unlisted without a decision, withdrawn or ignored."""
    return is_stranger(student, roster) or bool(roster.get(student, Student(student)).state)


def enrolled_students(roster: Mapping[str, Student]) -> dict[str, Student]:
    """Return the listed students who have not withdrawn, by id; empty without a class list."""
    return {name: student for name, student in roster.items() if student.counts}


def group_submitters(
    course: Course, chapter: str, roster: Mapping[str, Student], submitters: Iterable[str]
) -> dict[str, str]:
    """Return, for each listed student without a submission, the group member who handed in.

    Empty unless the chapter has ``groups = true`` in ``course.toml``. Groups with two submissions are left out.

    Args:
        roster: the students that the course knows.
        submitters: the ids of the students who handed in something themselves.
    """
    if not read_course_file(course.root).chapter(chapter).groups:
        return {}
    present, groups = frozenset(submitters), hand_in_groups(roster, chapter)
    by_group: dict[str, list[str]] = defaultdict(list)
    for name in present & groups.keys():
        by_group[groups[name]].append(name)
    return {
        name: by_group[group][0]
        for name in enrolled_students(roster)
        if (group := groups.get(name)) and name not in present and len(by_group[group]) == 1
    }


def submitters(course: Course, chapter: str) -> set[str]:
    """Return the ids of students who handed in a chapter, including submissions that are not collected yet."""
    folders = {path.parent.name for path in course.folder("submitted").glob(f"*/{chapter}") if path.is_dir()}
    return folders | {item.student for item in missing_submissions(course, chapter)}


def list_represented_members(course: Course, student: str) -> list[str]:
    """Return the group members for whom a student handed in a chapter."""
    roster, folder = read_roster(course), course.folder("submitted", student)
    chapters = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    owners = [group_submitters(course, name, roster, submitters(course, name)) for name in chapters]
    return sorted({member for by_member in owners for member, who in by_member.items() if who == student})


def split_by_listed_time(course: Course, chapter: str) -> tuple[list[str], list[str]]:
    """Split the students of :func:`list_missing_students`: without and with a submission time in a list."""
    times, roster = read_journal(course, chapter).times, read_roster(course)
    absent = list_missing_students(course, chapter)
    elsewhere = [name for name in absent if name in times and chapter not in roster[name].drafts]
    return [name for name in absent if name not in times], elsewhere


def list_missing_students(course: Course, chapter: str) -> list[str]:
    """Return the ids of listed students without a submission or decision, also of their group, sorted."""
    present = submitters(course, chapter)
    roster, plan = read_roster(course), read_course_file(course.root)
    absent = enrolled_students(roster).keys() - present - group_submitters(course, chapter, roster, present).keys()
    return sorted(
        name
        for name in absent
        if chapter not in roster[name].decided and has_grade(roster, name, chapter, plan, handed_in=False)
    )


def list_attendance(course: Course) -> list[Attendance]:
    """Return all students in the roster and in ``submitted/``, with the chapters that they or their group handed in."""
    roster = read_roster(course)
    folders: dict[str, set[str]] = defaultdict(set)
    for path in course.folder("submitted").glob("*/*/"):
        if path.is_dir():
            folders[path.name].add(path.parent.name)
    present = {
        chapter: {*names, *group_submitters(course, chapter, roster, names)} for chapter, names in folders.items()
    }
    return [
        Attendance(
            roster.get(name, Student(name)),
            tuple(chapter for chapter in sorted(present) if name in present[chapter]),
        )
        for name in sorted({*roster, *(name for students in present.values() for name in students)})
    ]


def list_uncounted(course: Course, chapters: Iterable[str]) -> list[UncountedStudent]:
    """Return the students and submitters who do not count in some chapters, ordered by id."""
    roster, plan, names = read_roster(course), read_course_file(course.root), sorted(chapters)
    return [
        UncountedStudent(entry.student.id, entry.student.name or entry.student.id, tuple(several), reason, decided)
        for entry in list_attendance(course)
        for several, reason, decided in _uncounted_reasons(entry, names, plan, roster)
        if several
    ]


def _uncounted_reasons(
    entry: Attendance, chapters: list[str], plan: CourseFile, roster: Mapping[str, Student]
) -> Iterator[tuple[list[str], str, bool]]:
    """Yield the chapters that do not count for a student, the reason, and whether a person has decided."""
    student, handed_in = entry.student, [chapter for chapter in chapters if chapter in entry.chapters]
    if is_stranger(student.id, roster):
        yield handed_in, "not on the class list", False
    elif student.state == "ignored":
        yield handed_in, "ignored: not a student", True
    elif student.state:
        yield chapters, student.state, True
    elif student.enrolled:
        excused = [chapter for chapter in chapters if chapter in student.excused]
        yield excused, "excused", True
        before = [
            chapter
            for chapter in chapters
            if chapter not in excused
            and is_excused(student, chapter, plan.due(chapter, student.id), handed_in=chapter in entry.chapters)
        ]
        yield before, f"joined on {student.joined}, after the deadline", True


def add_student(course: Course, student: str) -> Student:
    """Add a student to the class list, or reinstate one who had withdrawn or was ignored."""
    return _change_entry(course, student, lambda entry: replace(entry, enrolled=True, state=""))


def withdraw_student(course: Course, student: str) -> Student:
    """Exclude a listed student from averages, totals, exports and the list of missing work, keeping all grades."""
    return _change_entry(course, _require_listed(course, student), lambda entry: replace(entry, state="withdrawn"))


def ignore_submitter(course: Course, student: str) -> Student:
    """Mark a submitter as no student, such as a test account.

    Raises:
        CourseError: if it is the submission of a student on the class list.
    """
    if read_roster(course).get(student, Student(student)).enrolled:
        raise CourseError(
            f"{student} is on the class list", do=f"To take a student out of the class: --withdraw {student}"
        )
    return _change_entry(course, student, lambda entry: replace(entry, state="ignored"))


def excuse_chapter(course: Course, student: str, chapter: str, *, excused: bool = True) -> Student:
    """Exclude a chapter from a listed student's grades, or include it again."""
    added = {chapter} if excused else set()
    return _change_entry(
        course,
        _require_listed(course, student),
        lambda entry: replace(entry, excused=tuple(sorted({*entry.excused} - {chapter} | added))),
    )


def record_decision(course: Course, student: str, chapter: str, decision: tuple[float, str] | None) -> Student:
    """Record points and a reason for a student's chapter without a gradable notebook; ``None`` removes them."""
    new = {} if decision is None else {chapter: decision}
    return _change_entry(
        course,
        student,
        lambda entry: replace(
            entry, decided={name: old for name, old in entry.decided.items() if name != chapter} | new
        ),
    )


def record_joining(course: Course, student: str, day: date | None) -> Student:
    """Record the day on which a listed student joined; ``None`` means from the beginning."""
    text = day.isoformat() if day else ""
    return _change_entry(course, _require_listed(course, student), lambda entry: replace(entry, joined=text))


def _require_listed(course: Course, student: str) -> str:
    if not read_roster(course).get(student, Student(student)).enrolled:
        raise CourseError(f"{student} is not on the class list", do=f"Add the student first: --add {student}")
    return student


def _change_entry(course: Course, student: str, change: Callable[[Student], Student]) -> Student:
    roster = read_roster(course)
    entry = change(roster.get(student, Student(student)))
    write_roster(course, {**roster, student: entry})
    return entry
