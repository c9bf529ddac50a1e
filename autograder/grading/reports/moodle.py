"""Make files for Moodle: an assignment's grading worksheet, its changed rows, and tables for the gradebook's import."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from autograder.atomic_files import write_atomically
from autograder.course.folder import Course
from autograder.errors import CourseError, list_first
from autograder.grading.reports.grades import Grade
from autograder.grading.reports.spreadsheet import Table, number_text
from autograder.intake.people.class_list import WorksheetForm
from autograder.intake.roster import Student

# The beginning of the names of tables for the import of Moodle's gradebook.
IMPORT = "moodle-import-"


def maximum_messages(grades: Iterable[Grade], forms: Mapping[str, WorksheetForm]) -> list[str]:
    """Return a sentence per chapter whose Moodle assignment has a different maximum, because Moodle does not scale."""
    ours = {grade.chapter: grade.best for grade in grades}
    return [
        f"{chapter} has {ours[chapter]:g} points and Moodle's assignment a maximum of {form.maximum:g}: set it to {ours[chapter]:g} there, "
        f"or write grades out of {form.maximum:g} (--scale); Moodle takes them as they are"
        for chapter, form in forms.items()
        if chapter in ours and form.maximum not in (None, ours[chapter])
    ]


def scale_grades(grades: Iterable[Grade], forms: Mapping[str, WorksheetForm]) -> list[Grade]:
    """Return the grades scaled to the maximum of their Moodle assignment, where a worksheet states it."""
    maxima = {chapter: form.maximum for chapter, form in forms.items() if form.maximum}
    return [
        replace(grade, raw=grade.score * maxima[grade.chapter] / grade.best, penalty=0.0, best=maxima[grade.chapter])
        if grade.chapter in maxima
        else grade
        for grade in grades
    ]


def last_worksheets(course: Course, chapters: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the points in the last exported Moodle worksheets, by chapter and participant number.

    Raises:
        CourseError: if a record cannot be read.
    """
    points = {}
    for chapter in chapters:
        path = _record_path(course, chapter)
        try:
            points[chapter] = dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}
        except (OSError, ValueError) as error:
            do = "Remove the file: the next export counts as the first."
            raise CourseError(f"the last export cannot be read ({error})", where=path, do=do) from error
    return points


def record_worksheets(
    course: Course, grades: Iterable[Grade], files: Mapping[str, Sequence[str]], last: Mapping[str, Mapping[str, str]]
) -> list[str]:
    """Record the points of each written worksheet; return messages about points that are now only in Moodle."""
    lines = []
    for chapter, several in groupby(grades, key=lambda grade: grade.chapter):
        written = files.get(f"moodle-{chapter}.csv", ())
        points = {grade.moodle_id: number_text(grade.score) for grade in several if grade.student in written}
        if cleared := sorted(last.get(chapter, {}).keys() - points.keys()):
            lines.append(
                f"{chapter}: in the last worksheet, and without points now: number {list_first(cleared)}. Clear them in Moodle."
                if points
                else f"{chapter}: none of the {len(cleared)} grades of the last worksheet is here. Grade the chapter first."
            )
        if points:
            _write_record(course, chapter, points)
    return lines


def forget_exported(course: Course, student: Student) -> None:
    """Remove a student's points from the records of exported worksheets."""
    for chapter, number in student.participants.items():
        (points,) = last_worksheets(course, [chapter]).values()
        if points.pop(number, None) is not None:
            _write_record(course, chapter, points)


def _write_record(course: Course, chapter: str, points: Mapping[str, str]) -> None:
    write_atomically(_record_path(course, chapter), (json.dumps(points, indent=1) + "\n").encode())


def _record_path(course: Course, chapter: str) -> Path:
    return course.root / "worksheets" / f"{chapter}.exported.json"


def moodle_tables(
    grades: Sequence[Grade], forms: Mapping[str, WorksheetForm], last: Mapping[str, Mapping[str, str]]
) -> list[Table]:
    """Return Moodle's worksheets; Moodle requires Identifier, Grade and Last modified (grade).

    The last is empty, so that Moodle overwrites existing grades only on request. There is no column for comments, because Moodle would
    delete its own. A row without a participant number would break the import. Numbers come from the assignment's own worksheet alone:
    numbers in a download of submissions may be of teams, and other students'. A chapter without any, and a conversation, which
    has no assignment, get a table for the import of Moodle's gradebook.
    """
    tables = []
    for chapter, group in groupby(grades, key=lambda grade: grade.chapter):
        chapter_grades = list(group)
        numbered = [grade for grade in chapter_grades if grade.moodle_id]
        if numbered:
            left_out = [grade for grade in chapter_grades if not grade.moodle_id]
            form = forms.get(chapter, WorksheetForm())
            header = [form.identifier, "Full name", "Email address", "Status", form.grade, "Maximum grade"]
            header += ["Grade can be changed", "Last modified (submission)", form.changed]
            before = last.get(chapter, {})
            changed = [one for one in numbered if before and before.get(one.moodle_id) != number_text(one.score)]
            for name, several, lacking in ((chapter, numbered, left_out), (f"{chapter}-changed", changed, [])):
                if several:
                    rows = [_moodle_row(grade, form.prefix) for grade in several]
                    tables.append(Table(f"moodle-{name}.csv", header, rows, several, lacking))
            continue
        reachable = [grade for grade in chapter_grades if grade.email or grade.number]
        left_out = [grade for grade in chapter_grades if not (grade.email or grade.number)]
        rows = [[grade.email, grade.number, number_text(grade.score)] for grade in reachable]
        tables.append(Table(f"{IMPORT}{chapter}.csv", ["email", "idnumber", "score"], rows, reachable, left_out))
    if not any(table.rows for table in tables):
        raise CourseError(
            "no student has a participant number in Moodle's assignment, an email address or an ID number",
            do="Read the assignment's grading worksheet (Submissions, Actions, Download grading worksheet): "
            "tfcourse students WORKSHEET.csv --chapter CHAPTER",
        )
    return tables


def _moodle_row(grade: Grade, prefix: str) -> list[object]:
    return [
        f"{prefix}{grade.moodle_id}",
        grade.full_name,
        grade.email,
        "Submitted for grading",
        number_text(grade.score),
        number_text(grade.best),
        "Yes",
        "",
        "",
    ]
