"""Report missing results, removed submissions, and submissions in a download that were never collected."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from autograder.course.course_file import read_course_file
from autograder.course.folder import Course
from autograder.course.paths import shell_command
from autograder.errors import list_first
from autograder.grading.record.results import read_results
from autograder.grading.reports.grades import Grade
from autograder.intake.downloads.journal import (
    LATE,
    PendingSubmission,
    find_time_problems,
    journal_path,
    missing_problems,
    missing_submissions,
    read_journal,
)
from autograder.intake.notebook.timestamp import DOUBTFUL
from autograder.intake.notebook.timestamp import KIND as NO_TIME
from autograder.intake.people.strangers import find_strangers, stranger_problems

if TYPE_CHECKING:
    from autograder.intake.notebook.problem import Problem

# Why it is open how late a submission is.
_REASONS = {NO_TIME: "its time cannot be read", LATE: "Canvas calls it late", DOUBTFUL: "its time cannot be true"}


def missing_messages(course: Course, grades: Sequence[Grade]) -> list[str]:
    """Return messages on missing results and submissions, with the advice for each."""
    lacking = list_uncollected(course, grades)
    messages = [
        str(problem) for chapter, pending in lacking.items() for problem in missing_problems(course, chapter, pending)
    ]
    unlisted = find_strangers(course, {grade.chapter for grade in grades})
    return [
        *messages,
        *(f"to decide: {problem}" for problem in stranger_problems(course, unlisted)),
        *ungraded_messages(course, grades),
        *_platform_only_messages(grades),
        *missing_results_messages(course, grades),
        *failed_messages(course, grades),
        *_ungradable_messages(course, grades),
        *_decision_messages(grades),
        *filter(None, [removed_message(grades)]),
        *_open_time_messages(course, grades),
        *_unowned_messages(course, grades),
    ]


def list_gaps(course: Course, grades: Sequence[Grade]) -> dict[str, list[dict[str, str]]]:
    """Return missing results and submissions and unlisted students as plain data, ready for JSON."""
    grades_by_kind = {
        "without_result": _grades_without_result(grades),
        "gone": _grades_without_submission(grades),
        "not_graded_yet": _pending_grades(grades),
        "not_gradable": [grade for grade in grades if grade.handed_in and not grade.gradable],
        "decided_by_hand": [grade for grade in grades if grade.decision],
        "to_decide": [grade for grade in grades if not grade.decided],
    }
    absent = list_uncollected(course, grades)
    return {
        "strangers": [stranger.to_dict() for stranger in find_strangers(course, {grade.chapter for grade in grades})],
        "open_times": [
            {"student": student, "chapter": chapter, "problem": problem.kind}
            for chapter, problems_by_student in _open_times(course, grades).items()
            for student, problem in problems_by_student.items()
        ],
        "unowned": [
            {"chapter": chapter, "source": source, "file": file}
            for chapter in _chapter_names(grades)
            for source, files in read_journal(course, chapter).unowned.items()
            for file in files
        ],
        "not_brought_in": [item.to_dict() | {"chapter": chapter} for chapter in absent for item in absent[chapter]],
        **{
            kind: [{"student": grade.student, "chapter": grade.chapter} for grade in lacking]
            for kind, lacking in grades_by_kind.items()
        },
    }


def list_uncollected(course: Course, grades: Sequence[Grade]) -> dict[str, list[PendingSubmission]]:
    """Return the submissions that a collection should have brought in but has not, by chapter."""
    decided = {(grade.chapter, grade.student) for grade in grades if grade.decision}
    pending = {
        chapter: [item for item in missing_submissions(course, chapter) if (chapter, item.student) not in decided]
        for chapter in _chapter_names(grades)
    }
    return {chapter: items for chapter, items in pending.items() if items}


def _chapter_names(grades: Iterable[Grade]) -> list[str]:
    return sorted({grade.chapter for grade in grades})


def _open_times(course: Course, grades: Sequence[Grade]) -> dict[str, dict[str, Problem]]:
    """Return the problems of students whose lateness is unknown, by chapter and student."""
    plan, submitters = read_course_file(course.root), defaultdict[str, list[str]](list)
    for grade in grades:
        if grade.handed_in and not grade.handed_in_by:
            submitters[grade.chapter].append(grade.student)
    return {chapter: find_time_problems(course, chapter, submitters[chapter], plan) for chapter in sorted(submitters)}


def _open_time_messages(course: Course, grades: Sequence[Grade]) -> list[str]:
    """Return a sentence per chapter on students without a late penalty because their submission time is unknown."""
    return [
        f"{_count_text(list(problems_by_student))} of {chapter} may be late, and nothing is taken off: "
        f"{list_first([f'{student} ({_REASONS[problem.kind]})' for student, problem in problems_by_student.items()])}. "
        f"Write the time into submitted/STUDENT/{chapter}/timestamp.txt."
        for chapter, problems_by_student in _open_times(course, grades).items()
        if problems_by_student
    ]


def _unowned_messages(course: Course, grades: Iterable[Grade]) -> list[str]:
    """Return a sentence per download on files that belong to no student."""
    return [
        f"{len(files)} file{'' if len(files) == 1 else 's'} of {chapter} in {source} belong{'s' if len(files) == 1 else ''} to no student: "
        f"{list_first(files)}. Rename them there and collect again; or, if this is settled, remove them from `unowned` in "
        f"{journal_path(course, chapter)}."
        for chapter in _chapter_names(grades)
        for source, files in read_journal(course, chapter).unowned.items()
    ]


def is_work_without_grade(gaps: Mapping[str, Sequence[Mapping[str, str]]]) -> bool:
    """Return whether the result of :func:`list_gaps` names ungraded work, or work of unknown owner or time."""
    kinds = ("strangers", "unowned", "not_brought_in", "not_graded_yet", "not_gradable", "to_decide")
    return any(gaps[kind] for kind in kinds) or any(item["problem"] == DOUBTFUL for item in gaps["open_times"])


def ungraded_messages(course: Course, grades: Iterable[Grade]) -> list[str]:
    """Return a sentence per chapter on submissions that have not been graded, and the command that grades them."""
    waiting = (grade for grade in _pending_grades(grades) if grade.waits_for == "grading")
    ordered = sorted(waiting, key=lambda grade: grade.chapter)
    lines = []
    for chapter, several in groupby(ordered, lambda grade: grade.chapter):
        absent = {*_failed_students(course, chapter), *(item.student for item in missing_submissions(course, chapter))}
        if students := [grade.student for grade in several if grade.student not in absent]:
            are, have, them = ("is", "has", "it") if len(students) == 1 else ("are", "have", "them")
            again = shell_command(course, "autograde", chapter)
            lines.append(
                f"{_count_text(students)} of {chapter} {are} not graded yet and {have} no points: {list_first(students)}. "
                f"Grade {them}: {again}"
            )
    return lines


def _pending_grades(grades: Iterable[Grade]) -> list[Grade]:
    return [grade for grade in grades if grade.not_yet and not grade.handed_in_by]


def _platform_only_messages(grades: Iterable[Grade]) -> list[str]:
    """Return a message on drafts on Moodle, and one on submissions that are only on the platform."""
    drafts, absent = (
        [grade for grade in _pending_grades(grades) if grade.waits_for == reason] for reason in ("hand-in", "download")
    )
    return [
        *([f"{_name_grades(drafts)}: drafts on Moodle that were not handed in, without points"] if drafts else []),
        *([missing_downloads_message([f"{grade.student} ({grade.chapter})" for grade in absent])] if absent else []),
    ]


def missing_downloads_message(students: Sequence[str]) -> str:
    """Return a message on students with a submission time in a list but no submission in a download."""
    return (
        f"handed in, as the list of times says, and in no download, without points: {list_first(students)}. "
        "Download the submissions again, or look on the platform and give points: tfcourse decide"
    )


def _grades_without_result(grades: Iterable[Grade]) -> list[Grade]:
    """Return the grades that have a submission but no result, which grading again can restore."""
    return [grade for grade in grades if grade.handed_in and grade.in_place and not grade.has_result]


def _grades_without_submission(grades: Iterable[Grade]) -> list[Grade]:
    return [grade for grade in grades if grade.handed_in and not grade.in_place]


def missing_results_messages(course: Course, grades: Iterable[Grade]) -> list[str]:
    """Return a sentence per chapter on students with a grade but no result, and the command that restores it."""
    ordered = sorted(_grades_without_result(grades), key=lambda grade: (grade.chapter, grade.student))
    return [
        _missing_results_message(
            chapter, [grade.student for grade in chapter_grades], shell_command(course, "autograde", chapter)
        )
        for chapter, chapter_grades in groupby(ordered, lambda grade: grade.chapter)
    ]


def _missing_results_message(chapter: str, students: Sequence[str], again: str) -> str:
    are, have, them = ("is", "has", "it") if len(students) == 1 else ("are", "have", "them")
    return (
        f"{_count_text(students)} of {chapter} {are} in the gradebook and {have} no result: {list_first(students)}. "
        f"Grade {them} again: {again}"
    )


def _ungradable_messages(course: Course, grades: Iterable[Grade]) -> list[str]:
    """Return a message on students whose submission could not be graded, and the command that gives points."""
    refused = [grade for grade in grades if grade.handed_in and grade.gradable is False and not grade.handed_in_by]
    if not refused:
        return []
    have, them = ("has", "it") if len(refused) == 1 else ("have", "them")
    names = list_first([f"{grade.full_name} ({grade.chapter})" for grade in refused])
    return [
        f"{_count_text(refused)} could not be graded and {have} no points: {names}. "
        f"Give {them} points: {shell_command(course, 'decide', 'STUDENT', 'CHAPTER', 'POINTS', 'REASON')}"
    ]


def _decision_messages(grades: Iterable[Grade]) -> list[str]:
    return [
        f"decided by hand: {grade.full_name} ({grade.chapter}) has {grade.score:g} of {grade.best:g} points: {grade.decision}"
        for grade in grades
        if grade.decision and not grade.handed_in_by
    ]


def failed_messages(course: Course, grades: Iterable[Grade]) -> list[str]:
    """Return a sentence per chapter on students for whom the last grading failed."""
    return [
        _failed_message(chapter, students, shell_command(course, "autograde", chapter))
        for chapter in _chapter_names(grades)
        if (students := _failed_students(course, chapter))
    ]


def _failed_students(course: Course, chapter: str) -> list[str]:
    return [
        result.student
        for result in read_results(course, chapter)
        if result.status == "not recorded" and course.folder("submitted", result.student, chapter).is_dir()
    ]


def _failed_message(chapter: str, students: Sequence[str], again: str) -> str:
    return (
        f"{_count_text(students)} of {chapter} could not be graded, and a grade that is there is of an earlier attempt: "
        f"{list_first(students)}. Grade again: {again}"
    )


def removed_message(grades: Iterable[Grade]) -> str:
    """Describe removed submissions, and the command if that was on purpose; empty without such submissions."""
    removed = _grades_without_submission(grades)
    if not removed:
        return ""
    students = sorted({grade.student for grade in removed})
    are, its, name = ("is", "its", "name") if len(students) == 1 else ("are", "their", "names")
    student = shlex.quote(students[0]) if len(students) == 1 else "STUDENT"
    folder = "folder was" if len(students) == 1 else "folders were"
    return (
        f"{_count_text(removed)} {are} in the gradebook and no longer in submitted/: {_name_grades(removed)}. "
        f"If {its} {folder} renamed, take the old {name} out of the gradebook, with all {its} grades, in the course folder: "
        f"nbgrader db student remove {student} --force"
    )


def unclear_message(grades: Iterable[Grade]) -> str:
    """Describe students at 0 points who may have been ungradable, because results are missing; else empty."""
    unclear_grades = [
        grade for grade in grades if grade.handed_in and grade.gradable is None and not grade.handed_in_by
    ]
    if not unclear_grades:
        return ""
    stand, they = ("stands", "it") if len(unclear_grades) == 1 else ("stand", "they")
    who = list_first([f"{grade.full_name} ({grade.chapter})" for grade in unclear_grades])
    return f"{_count_text(unclear_grades)} {stand} at 0, and without a result it is not known whether {they} could be graded: {who}"


def _count_text(submissions: Sequence[object]) -> str:
    return f"{len(submissions)} submission{'' if len(submissions) == 1 else 's'}"


def _name_grades(grades: Sequence[Grade]) -> str:
    return list_first([f"{grade.student} ({grade.chapter})" for grade in grades])
