"""What is missing: results, submissions that are no longer there, and submissions of a download that were never brought in."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from itertools import groupby

from autograder.collecting.pending import PendingSubmission, missing, problems
from autograder.course.folder import Course
from autograder.course.paths import shell_command
from autograder.record.results import read_results
from autograder.reports.grades import Grade

# A whole class may be missing; who it is, nobody reads then.
_NAMED = 10


def missing_messages(course: Course, grades: Sequence[Grade]) -> list[str]:
    """Return what is missing, and what to do about it, in sentences; none if nothing is."""
    lacking = not_brought_in(course, grades)
    told = [str(problem) for chapter, found in lacking.items() for problem in problems(course, chapter, found)]
    return [
        *told,
        *without_result(course, grades),
        *failed(course, grades),
        *filter(None, [removed_submissions(grades)]),
    ]


def gaps(course: Course, grades: Sequence[Grade]) -> dict[str, list[dict[str, str]]]:
    """Return what is missing as plain data, ready for JSON."""
    found = {"without_result": _lacking_result(grades), "gone": _lacking_submission(grades)}
    absent = not_brought_in(course, grades)
    return {
        "not_brought_in": [item.to_dict() | {"chapter": chapter} for chapter in absent for item in absent[chapter]],
        **{
            what: [{"student": grade.student, "chapter": grade.chapter} for grade in lacking]
            for what, lacking in found.items()
        },
    }


def not_brought_in(course: Course, grades: Iterable[Grade]) -> dict[str, list[PendingSubmission]]:
    """Return, by chapter, whose submissions a collection was to bring and has not brought; only chapters that lack some."""
    chapters = sorted({grade.chapter for grade in grades})
    return {chapter: found for chapter in chapters if (found := missing(course, chapter))}


def _lacking_result(grades: Iterable[Grade]) -> list[Grade]:
    """Return the grades whose result is missing although the submission is there, so that it can be made again."""
    return [grade for grade in grades if grade.handed_in and grade.in_place and not grade.has_result]


def _lacking_submission(grades: Iterable[Grade]) -> list[Grade]:
    return [grade for grade in grades if grade.handed_in and not grade.in_place]


def without_result(course: Course, grades: Iterable[Grade]) -> list[str]:
    """Return who has a grade and no result, and how to get one: a sentence per chapter."""
    ordered = sorted(_lacking_result(grades), key=lambda grade: (grade.chapter, grade.student))
    return [
        _without_result(chapter, [grade.student for grade in own], shell_command(course, "autograde", chapter))
        for chapter, own in groupby(ordered, lambda grade: grade.chapter)
    ]


def _without_result(chapter: str, students: Sequence[str], again: str) -> str:
    are, have, them = ("is", "has", "it") if len(students) == 1 else ("are", "have", "them")
    return (
        f"{_count(students)} of {chapter} {are} in the gradebook and {have} no result: {_some(students)}. "
        f"Grade {them} again: {again}"
    )


def failed(course: Course, grades: Iterable[Grade]) -> list[str]:
    """Return on whom the grader failed the last time, whatever grade they have: a sentence per chapter."""
    return [
        _failed(chapter, students, shell_command(course, "autograde", chapter))
        for chapter in sorted({grade.chapter for grade in grades})
        if (students := _not_recorded(course, chapter))
    ]


def _not_recorded(course: Course, chapter: str) -> list[str]:
    return [
        result.student
        for result in read_results(course, chapter)
        if result.status == "not recorded" and course.folder("submitted", result.student, chapter).is_dir()
    ]


def _failed(chapter: str, students: Sequence[str], again: str) -> str:
    return (
        f"{_count(students)} of {chapter} could not be graded, and a grade that is there is of an earlier attempt: "
        f"{_some(students)}. Grade again: {again}"
    )


def removed_submissions(grades: Iterable[Grade]) -> str:
    """Return whose submissions are no longer there, and what to do if that is no accident, as a sentence, or nothing."""
    found = _lacking_submission(grades)
    if not found:
        return ""
    students = sorted({grade.student for grade in found})
    are, its, name = ("is", "its", "name") if len(students) == 1 else ("are", "their", "names")
    student = shlex.quote(students[0]) if len(students) == 1 else "STUDENT"
    folder = "folder was" if len(students) == 1 else "folders were"
    return (
        f"{_count(found)} {are} in the gradebook and no longer in submitted/: {_named(found)}. "
        f"If {its} {folder} renamed, take the old {name} out of the gradebook, with all {its} grades, in the course folder: "
        f"nbgrader db student remove {student} --force"
    )


def unclear(grades: Iterable[Grade]) -> str:
    """Return who stands at 0 and may not have been gradable, as a phrase, or nothing: only a result could tell."""
    found = [grade for grade in grades if grade.handed_in and grade.gradable is None and not grade.handed_in_by]
    if not found:
        return ""
    stand, they = ("stands", "it") if len(found) == 1 else ("stand", "they")
    who = ", ".join(f"{grade.full_name} ({grade.chapter})" for grade in found)
    return f"{_count(found)} {stand} at 0, and without a result it is not known whether {they} could be graded: {who}"


def _count(found: Sequence[object]) -> str:
    return f"{len(found)} submission{'' if len(found) == 1 else 's'}"


def _named(grades: Sequence[Grade]) -> str:
    return _some([f"{grade.student} ({grade.chapter})" for grade in grades])


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
