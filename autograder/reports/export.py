"""Grades as files that nbgrader's users, Canvas and Moodle know how to import.

What each platform reads was taken from its importer: Canvas's ``gradebook_importer`` and Moodle's ``assignfeedback_offline``. They find
students by Canvas's number, by a login (an id of this course, which begins with a letter or a digit) and by Moodle's participant number,
and assignments by the header. All other text is made safe for spreadsheets, names and email addresses too: no platform finds anybody by
them here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from autograder.atomic_files import write_all_or_none
from autograder.errors import CourseError
from autograder.reports.grades import Grade
from autograder.reports.spreadsheet import csv_text

FORMATS = ("csv", "canvas", "moodle")

# What a lecturer has to know where the file is taken in.
HINTS = {
    "canvas": "In Canvas: Grades, Import. An assignment is found by its name, which must be the chapter's; Canvas offers to make one that "
    "it does not find, and shows every change before it is made.",
    "moodle": "In Moodle, with its language set to English: the assignment, View all submissions, Upload grading worksheet. The "
    "assignment's maximum grade must be the one in the file. To send grades a second time, tick 'Allow updating records that have "
    "been modified more recently in Moodle than in the spreadsheet'.",
}


@dataclass(frozen=True)
class Exported:
    """A file of grades.

    Attributes:
        path: the file.
        students: who is in it.
        left_out: who has handed in and is not in it, because the platform's number for them is not known.
    """

    path: Path
    students: tuple[str, ...]
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Table:
    """A file before it is written: its name, its header and rows, and whose they are."""

    name: str
    header: Sequence[str]
    rows: Sequence[Sequence[object]]
    grades: Sequence[Grade]
    left_out: Sequence[Grade] = ()

    @property
    def text(self) -> str:
        return csv_text(self.header, self.rows)


def export(grades: Sequence[Grade], form: str, folder: Path) -> list[Exported]:
    """Write grades and return the files.

    Args:
        grades: what :func:`autograder.reports.grades.read_grades` returns.
            A chapter of which nobody has handed in anything is left out: for a platform its empty cells would be grades.
        form: ``"csv"``: one file with nbgrader's columns. ``"canvas"``: one gradebook to import. ``"moodle"``: an offline grading
            worksheet per chapter, as Moodle's assignment hands it out and takes it back.
        folder: where to write; made if it is missing.

    Raises:
        CourseError: if the form is not known, no grade can be handed to the platform, or the folder cannot be written. Nothing is
            written then.
    """
    if form not in _WRITERS:
        raise CourseError(
            f"there is no export format {form!r}; there are: {', '.join(FORMATS)}", do="Choose one with --format."
        )
    if not any(grade.handed_in for grade in grades):
        raise CourseError("nobody has handed in anything yet", do="Grade submissions first: tfcourse autograde CHAPTER")
    if form != "csv" and not _graded(grades):
        raise CourseError(
            "nothing that was handed in could be graded",
            do="tfcourse report says why; --format csv exports what there is.",
        )
    begun = {grade.chapter for grade in grades if grade.handed_in}
    told = [grade for grade in grades if grade.chapter in begun]
    tables = _WRITERS[form](sorted(told, key=lambda grade: (grade.chapter, grade.student)))
    try:
        write_all_or_none({folder / table.name: table.text.encode() for table in tables})
    except CourseError as error:
        raise CourseError(
            error.what, where=error.where, do="Nothing was written. Choose another folder with --to."
        ) from error
    return [Exported(folder / table.name, _students(table.grades), _students(table.left_out)) for table in tables]


def _students(grades: Iterable[Grade]) -> tuple[str, ...]:
    return tuple(sorted({grade.student for grade in grades}))


def _graded(grades: Iterable[Grade]) -> list[Grade]:
    """Return the grades that say something about a work: not missing, not to be decided, not at 0 for what could not be graded."""
    return [grade for grade in grades if grade.handed_in and grade.gradable and grade.decided]


def undecided(grades: Iterable[Grade]) -> str:
    """Return who stands at 0 because their work could not be graded, as a phrase, or nothing if nobody does."""
    refused = [grade for grade in grades if grade.handed_in and grade.gradable is False]
    if not refused:
        return ""
    who = ", ".join(f"{grade.full_name} ({grade.chapter})" for grade in refused)
    one = len(refused) == 1
    return (
        f"{len(refused)} submission{'' if one else 's'} could not be graded and stand{'s' if one else ''} at 0: {who}"
    )


def not_begun(grades: Iterable[Grade]) -> str:
    """Return the chapters that no file has because nobody has handed in anything, as a phrase, or nothing if there are none."""
    begun: dict[str, bool] = {}
    for grade in grades:
        begun[grade.chapter] = begun.get(grade.chapter, False) or grade.handed_in
    empty = sorted(chapter for chapter, anything in begun.items() if not anything)
    return f"left out, because nothing was handed in: {', '.join(empty)}" if empty else ""


def open_choices(grades: Iterable[Grade]) -> str:
    """Return of whom it is open which notebook counts, as a sentence, or nothing if it is of nobody."""
    found = [grade for grade in grades if not grade.decided]
    if not found:
        return ""
    who = ", ".join(f"{grade.student} ({grade.chapter})" for grade in found)
    one = len(found) == 1
    return (
        f"to decide: {len(found)} submission{'' if one else 's'} of several notebooks {'has' if one else 'have'} no points before one "
        f"is chosen (tfcourse choose STUDENT CHAPTER FILE): {who}"
    )


def _number(points: float) -> str:
    return f"{points:.2f}"


def _csv(grades: Sequence[Grade]) -> list[_Table]:
    """The columns of nbgrader's own export, and whether a manual question still waits."""
    columns: dict[str, Callable[[Grade], object]] = {
        "assignment": lambda grade: grade.chapter,
        "duedate": lambda grade: grade.due or "",
        "timestamp": lambda grade: grade.submitted or "",
        "student_id": lambda grade: grade.student,
        "last_name": lambda grade: grade.last_name,
        "first_name": lambda grade: grade.first_name,
        "email": lambda grade: grade.email,
        "raw_score": lambda grade: grade.raw if grade.decided else "",
        "late_submission_penalty": lambda grade: grade.penalty if grade.decided else "",
        "score": lambda grade: grade.score if grade.decided else "",
        "max_score": lambda grade: grade.best,
        "needs_manual_grade": lambda grade: grade.pending > 0,
    }
    rows = [[read(grade) for read in columns.values()] for grade in grades]
    return [_Table("grades.csv", list(columns), rows, grades)]


def _canvas(grades: Sequence[Grade]) -> list[_Table]:
    """Canvas wants its own columns first, one column per assignment, and a row of points possible.

    It finds a student by ID, then by SIS Login ID, then by name. An empty cell takes away a grade that somebody entered there by hand, so a
    student who has handed in nothing gets no row. Nor does one whose work could not be graded: a person has to decide about it first.
    """
    handed_in = sorted(_graded(grades), key=lambda grade: grade.student)
    best = {grade.chapter: grade.best for grade in handed_in}
    chapters = sorted(best)
    header = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *chapters]
    possible = ["    Points Possible", "", "", "", "", *(_number(best[chapter]) for chapter in chapters)]
    rows: list[Sequence[object]] = [possible]
    for student, own in groupby(handed_in, key=lambda grade: grade.student):
        scores = {grade.chapter: grade for grade in own}
        one = next(iter(scores.values()))
        name = f"{one.last_name}, {one.first_name}".strip(", ") or student
        # An id that was made of the name in a download is nobody's login.
        login = "" if one.platform else student
        cells = [_number(scores[chapter].score) if chapter in scores else "" for chapter in chapters]
        rows.append([name, one.canvas_id, "", login, "", *cells])
    return [_Table("canvas.csv", header, rows, handed_in)]


def _moodle(grades: Sequence[Grade]) -> list[_Table]:
    """Moodle reads a worksheet's Identifier, Grade and Last modified (grade), and refuses one that lacks any of them.

    The last is left empty: Moodle then overwrites no grade that it already has, unless it is told to. There is no column for comments,
    because Moodle would take away those that it has. A row without a participant number would break the import.
    """
    header = [
        "Identifier",
        "Full name",
        "Email address",
        "Status",
        "Grade",
        "Maximum grade",
        "Grade can be changed",
        "Last modified (submission)",
        "Last modified (grade)",
    ]
    tables = []
    for chapter, group in groupby(_graded(grades), key=lambda grade: grade.chapter):
        own = list(group)
        known = [grade for grade in own if grade.moodle_id]
        if not known:
            raise CourseError(
                f"no student's Moodle number for {chapter} is known: they come with Moodle's own download of the submissions",
                do="Grade that download (tfcourse autograde CHAPTER --submissions ZIP); or use --format csv and Moodle's grade "
                "import, which finds students by their email address.",
            )
        rows = [_moodle_row(grade) for grade in known]
        left_out = [grade for grade in own if not grade.moodle_id]
        tables.append(_Table(f"moodle-{chapter}.csv", header, rows, known, left_out))
    return tables


def _moodle_row(grade: Grade) -> list[object]:
    return [
        f"Participant {grade.moodle_id}",
        grade.full_name,
        grade.email,
        "Submitted for grading",
        _number(grade.score),
        _number(grade.best),
        "Yes",
        "",
        "",
    ]


_WRITERS: dict[str, Callable[[Sequence[Grade]], list[_Table]]] = {"csv": _csv, "canvas": _canvas, "moodle": _moodle}
