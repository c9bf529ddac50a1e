"""Export grades in formats for nbgrader, Canvas and Moodle.

The formats follow each platform's importer: Canvas's ``gradebook_importer`` and Moodle's ``assignfeedback_offline``. They identify students
by Canvas's number, by a login (an id of this course, which begins with a letter or a digit) or by Moodle's participant number, and
assignments by the header. All other text, including names and email addresses, is made safe for spreadsheets, because no importer
identifies students by it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

from autograder.atomic_files import write_all_or_none
from autograder.course.course_rules import TotalRule
from autograder.errors import CourseError, list_first
from autograder.grading.reports.grades import Grade
from autograder.grading.reports.moodle import IMPORT, moodle_tables
from autograder.grading.reports.spreadsheet import Table, number_text
from autograder.grading.reports.totals import Total, compute_totals
from autograder.intake.people.class_list import WorksheetForm

FORMATS = ("csv", "canvas", "moodle")

# Instructions for the import on each platform.
HINTS = {
    "canvas": "In Canvas: Grades, Import, one file after the other: no file has an empty cell, which would delete a grade on Canvas. An "
    "assignment is found by its name, which must be the chapter's; Canvas offers to make one that it does not find, and shows every "
    "change before it is made.",
    "moodle": "In Moodle, in the language of the worksheet that was read: the assignment, Submissions (of all participants), Actions, "
    "Upload grading worksheet. The assignment's maximum grade must be the one in the file. To send grades a second time, tick 'Allow "
    "updating records that have been modified more recently in Moodle than in the spreadsheet', and upload the file …-changed alone: "
    "it has what has changed since the last export, so a grade that was changed in Moodle stays.",
    IMPORT: "A table moodle-import-… is for Moodle's gradebook: Grades, Import, CSV file; map email to Email address, and score to the "
    "assignment or grade item of the same name. These cells become overridden: an assignment's worksheet does not change them any more.",
}


@dataclass(frozen=True)
class ExportedFile:
    """An exported file of grades."""

    path: Path
    students: tuple[str, ...]  # the students in it
    # students who have handed in and are not in it, because the platform's number for them is unknown
    left_out: tuple[str, ...] = ()


def export(
    grades: Sequence[Grade],
    form: str,
    folder: Path,
    weights: Mapping[str, float] | None = None,
    columns: Mapping[str, str] = {},
    rule: TotalRule | None = None,
    forms: Mapping[str, WorksheetForm] = {},
    last: Mapping[str, Mapping[str, str]] = {},
) -> list[ExportedFile]:
    """Export grades to files in one format, and return the files.

    Args:
        grades: the result of :func:`autograder.grading.reports.grades.read_grades`. Chapters without submissions are omitted, because
            a platform would read empty cells as grades.
        form: ``"csv"``: one file with nbgrader's columns. ``"canvas"``: one gradebook to import. ``"moodle"``: an offline grading worksheet
            per chapter, as Moodle's assignment exports and imports it; where its numbers are unknown, and for conversations, a table of
            the decided grades for the import of Moodle's gradebook.
        folder: the folder to write to; created if it is missing.
        weights: the weight of each chapter. With weights, ``"csv"`` has a second file with each student's total.
        columns: Canvas's column headings that differ from the chapter's name, such as ``Chapter 01 (88121)``.
        rule: the rule that converts a total to a grade, for the file of totals.
        forms: by chapter, the form in which Moodle reads a worksheet.
        last: by chapter and participant's number, the points of the last worksheet. Then ``"moodle"`` adds a worksheet of the
            grades that differ.

    Raises:
        CourseError: if the form is unknown, no grade can be exported, or the folder cannot be written. Then nothing is written.
    """
    if form not in FORMATS:
        raise CourseError(
            f"there is no export format {form!r}; there are: {', '.join(FORMATS)}", do="Choose one with --format."
        )
    if not any(grade.handed_in for grade in grades):
        raise CourseError("nobody has handed in anything yet", do="Grade submissions first: tfcourse autograde CHAPTER")
    if form != "csv" and not _select_graded(grades):
        raise CourseError(
            "nothing that was handed in has a grade",
            do="tfcourse report prints the reasons; --format csv exports all students.",
        )
    begun = {grade.chapter for grade in grades if grade.handed_in}
    included = [grade for grade in grades if grade.chapter in begun and _belongs_on_platform(form, grade)]
    if not included:
        raise CourseError(
            f"nothing of these chapters was handed in on {form.capitalize()}",
            do="Choose the other platform with --format.",
        )
    ordered = sorted(included, key=lambda grade: (grade.chapter, grade.student))
    tables = moodle_tables(_select_graded(ordered), forms, last) if form == "moodle" else _WRITERS[form](ordered)
    if form == "csv" and weights:
        tables += _total_tables(included, weights, rule)
    if form == "canvas":
        tables = [replace(table, header=[columns.get(title, title) for title in table.header]) for table in tables]
    try:
        write_all_or_none({folder / table.name: table.text.encode() for table in tables if table.rows})
        _remove_earlier(folder, form, {table.name for table in tables}, {grade.chapter for grade in grades})
    except CourseError as error:
        raise CourseError(
            error.what, where=error.where, do="Nothing was written. Choose another folder with --to."
        ) from error
    return [
        ExportedFile(folder / table.name, _student_ids(table.grades), _student_ids(table.left_out)) for table in tables
    ]


def _belongs_on_platform(form: str, grade: Grade) -> bool:
    """Return whether a grade belongs on a platform: submissions of one platform are not exported to another."""
    other = {"canvas": "moodle", "moodle": "canvas"}.get(form)
    return grade.platform != other or other is None


def _remove_earlier(folder: Path, form: str, written: Container[str], chapters: Iterable[str]) -> None:
    """Remove tables of an earlier export that are not written again, so that no outdated grades are imported."""
    names = {
        "canvas": ["canvas.csv", *(_canvas_name(chapter) for chapter in chapters)],
        "moodle": [
            name
            for chapter in chapters
            for name in (f"moodle-{chapter}.csv", f"moodle-{chapter}-changed.csv", f"{IMPORT}{chapter}.csv")
        ],
    }
    for name in names.get(form, ()):
        if name not in written:
            (folder / name).unlink(missing_ok=True)


def _canvas_name(chapter: str) -> str:
    return f"canvas-{chapter}.csv"


def _student_ids(grades: Iterable[Grade]) -> tuple[str, ...]:
    return tuple(sorted({grade.student for grade in grades}))


def _select_graded(grades: Iterable[Grade]) -> list[Grade]:
    """Return the valid grades, without submissions at 0 that could not be graded."""
    return [grade for grade in grades if grade.graded]


def empty_chapters_message(grades: Iterable[Grade]) -> str:
    """List the chapters that are left out because they have no submissions, as a phrase; empty if none is."""
    begun: dict[str, bool] = {}
    for grade in grades:
        begun[grade.chapter] = begun.get(grade.chapter, False) or grade.handed_in
    empty = sorted(chapter for chapter, anything in begun.items() if not anything)
    return f"left out, because nothing was handed in: {', '.join(empty)}" if empty else ""


def absent_grades(grades: Iterable[Grade]) -> list[Grade]:
    """Return the grades of students who did not hand in a chapter that others did."""
    everything = [grade for grade in grades if not grade.viva]
    begun = {grade.chapter for grade in everything if grade.handed_in}
    return [grade for grade in everything if grade.chapter in begun and not grade.handed_in]


def absent_lines(grades: Iterable[Grade], form: str) -> list[str]:
    """Return a line per chapter with the students who did not hand in, and their value in the file."""
    shown = "0 points in the file" if form == "csv" else "no score in the file"
    ordered = sorted(absent_grades(grades), key=lambda grade: (grade.chapter, grade.student))
    lines = []
    for chapter, several in groupby(ordered, key=lambda grade: grade.chapter):
        names = [grade.full_name for grade in several]
        lines.append(f"{chapter}: {len(names)} handed in nothing, {shown}: {list_first(names)}")
    return lines


def open_choices_message(grades: Iterable[Grade]) -> str:
    """Describe the submissions without a chosen notebook in a sentence; empty without such submissions."""
    undecided = [grade for grade in grades if not grade.decided and not grade.handed_in_by]
    if not undecided:
        return ""
    who = list_first([f"{grade.student} ({grade.chapter})" for grade in undecided])
    one = len(undecided) == 1
    return (
        f"to decide: {len(undecided)} submission{'' if one else 's'} of several notebooks {'has' if one else 'have'} no points before one "
        f"is chosen (tfcourse choose STUDENT CHAPTER FILE): {who}"
    )


def _percent_text(share: float | None) -> str:
    return "" if share is None else number_text(100 * share)


def _time_text(naive: datetime | None) -> str:
    """Format a naive UTC time of the gradebook with its offset."""
    return "" if naive is None else naive.replace(tzinfo=UTC).isoformat(sep=" ", timespec="seconds")


def _csv_tables(grades: Sequence[Grade]) -> list[Table]:
    """Return a table with nbgrader's export columns, pending manual grading, and the reason for manual decisions.

    A student who handed in nothing has 0 points and no timestamp, as in nbgrader's export. A missing conversation has no points, nor has
    work without a grade.
    """

    def points(grade: Grade, number: float) -> str:
        return number_text(number) if grade.graded or not (grade.handed_in or grade.viva) else ""

    columns: dict[str, Callable[[Grade], object]] = {
        "assignment": lambda grade: grade.chapter,
        "duedate": lambda grade: _time_text(grade.due),
        "timestamp": lambda grade: _time_text(grade.submitted),
        "student_id": lambda grade: grade.student,
        "last_name": lambda grade: grade.last_name,
        "first_name": lambda grade: grade.first_name,
        "email": lambda grade: grade.email,
        "raw_score": lambda grade: points(grade, grade.raw),
        "late_submission_penalty": lambda grade: points(grade, grade.penalty),
        "score": lambda grade: points(grade, grade.score),
        "max_score": lambda grade: number_text(grade.best),
        "needs_manual_grade": lambda grade: grade.pending > 0,
        "decided_by_hand": lambda grade: grade.decision,
    }
    rows = [[read(grade) for read in columns.values()] for grade in grades]
    return [Table("grades.csv", list(columns), rows, grades)]


def _total_tables(grades: Sequence[Grade], weights: Mapping[str, float], rule: TotalRule | None) -> list[Table]:
    """Return shares in percent, per chapter and in total, and the chapters with pending decisions.

    With a rule, the total's points, its grade, whether it passes and the chapters that are dropped follow.
    """
    results = compute_totals(grades, weights, rule)
    if not results:
        return []
    chapters = list(results[0].shares)
    header = ["student_id", "last_name", "first_name", "email", *chapters, "total", "open"]
    header += ["points", "grade", "passed", "dropped"] if rule is not None else []
    rows = [
        [
            *(result.grade.student, result.grade.last_name, result.grade.first_name, result.grade.email),
            *(_percent_text(result.shares[chapter]) for chapter in chapters),
            number_text(100 * result.share),
            " ".join(result.open_chapters),
            *(_rule_cells(result) if rule is not None else ()),
        ]
        for result in results
    ]
    return [Table("totals.csv", header, rows, [result.grade for result in results])]


def _rule_cells(total: Total) -> list[str]:
    passed = {True: "yes", False: "no", None: ""}[total.passed]
    return [number_text(total.points or 0.0), total.grade_name, passed, " ".join(total.dropped)]


def _canvas_tables(grades: Sequence[Grade]) -> list[Table]:
    """Return tables for Canvas without empty cells: its own columns, then one column per assignment.

    Canvas finds a student by ID, then by SIS Login ID, then by name. An empty cell would delete a grade that was entered by hand. So a
    student has a cell only for work that was graded: ``canvas.csv`` has the students with every chapter, and each further file has one
    chapter and the students who lack another one.
    """
    by_student: dict[str, dict[str, Grade]] = {}
    for grade in sorted(_select_graded(grades), key=lambda grade: (grade.student, grade.chapter)):
        by_student.setdefault(grade.student, {})[grade.chapter] = grade
    chapters = sorted({chapter for scores in by_student.values() for chapter in scores})
    complete = {student: scores for student, scores in by_student.items() if len(scores) == len(chapters)}
    tables = [_canvas_table("canvas.csv", chapters, complete)] if complete else []
    for chapter in chapters:
        partial = {s: scores for s, scores in by_student.items() if s not in complete and chapter in scores}
        if partial:
            tables.append(_canvas_table(_canvas_name(chapter), [chapter], partial))
    return tables


def _canvas_table(name: str, chapters: Sequence[str], by_student: Mapping[str, Mapping[str, Grade]]) -> Table:
    grades = [scores[chapter] for scores in by_student.values() for chapter in chapters]
    best = {grade.chapter: number_text(grade.best) for grade in grades}
    header = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *chapters]
    rows: list[Sequence[object]] = [["    Points Possible", "", "", "", "", *(best[chapter] for chapter in chapters)]]
    for student, scores in by_student.items():
        one = next(iter(scores.values()))
        shown = f"{one.last_name}, {one.first_name}".strip(", ") or student
        # An id that derives from the name in a download is no login.
        login = one.login or ("" if one.platform else student)
        cells = [number_text(scores[chapter].score) for chapter in chapters]
        rows.append([shown, one.canvas_id, one.number, login, one.section, *cells])
    return Table(name, header, rows, grades)


_WRITERS: dict[str, Callable[[Sequence[Grade]], list[Table]]] = {"csv": _csv_tables, "canvas": _canvas_tables}
