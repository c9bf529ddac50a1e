"""List the students who have handed in a chapter: alone, with a group, or in a download that did not get into the course folder."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from autograder.course.course_file import read_course_file
from autograder.course.folder import Course
from autograder.intake.downloads.journal import missing
from autograder.intake.people.standing import is_excused
from autograder.intake.roster import Student, read_roster


@dataclass(frozen=True)
class Attendance:
    """A student and the chapters for which they have handed in something."""

    student: Student
    chapters: tuple[str, ...]


def enrolled_students(roster: Mapping[str, Student]) -> dict[str, Student]:
    """Return the students on the class list who have not withdrawn, by id; none if the course has no list."""
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
    present = frozenset(submitters)
    by_group: dict[str, list[str]] = defaultdict(list)
    for name in present & roster.keys():
        by_group[roster[name].team(chapter)].append(name)
    return {
        name: by_group[group][0]
        for name, student in enrolled_students(roster).items()
        if (group := student.team(chapter)) and name not in present and len(by_group[group]) == 1
    }


def submitters(course: Course, chapter: str) -> set[str]:
    """Return the ids of the students who have handed in a chapter, also if the work is in a download and not in the course folder."""
    folders = {path.parent.name for path in course.folder("submitted").glob(f"*/{chapter}") if path.is_dir()}
    return folders | {item.student for item in missing(course, chapter)}


def nothing_handed_in(course: Course, chapter: str) -> list[str]:
    """Return the ids of those on the class list who have handed in nothing for a chapter that counts for them, in order.

    The work of a student's group counts as handed in.
    """
    present = submitters(course, chapter)
    roster, plan = read_roster(course), read_course_file(course.root)
    absent = enrolled_students(roster).keys() - present - group_submitters(course, chapter, roster, present).keys()
    return sorted(name for name in absent if not is_excused(roster[name], chapter, plan.due(chapter, name)))


def attendance(course: Course) -> list[Attendance]:
    """Return every student of the roster and of ``submitted/``, with the chapters that they or their group handed in, ordered by id."""
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
