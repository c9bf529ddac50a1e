"""Grades as files that nbgrader's users, Canvas and Moodle know how to import."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path

from autograder.errors import CourseError
from autograder.reports.grades import Grade

FORMATS = ("csv", "canvas", "moodle")


def export(grades: Sequence[Grade], form: str, folder: Path) -> list[Path]:
    """Write grades and return the files.

    Args:
        grades: what :func:`autograder.reports.grades.read_grades` returns.
        form: ``"csv"``: one file with nbgrader's columns. ``"canvas"``: one gradebook to import. ``"moodle"``: an offline grading
            worksheet per chapter, as Moodle's assignment hands it out and takes it back.
        folder: where to write; made if it is missing.

    Raises:
        CourseError: if the form is not known or the folder cannot be written.
    """
    if form not in _WRITERS:
        raise CourseError(f"there is no export format {form!r}; there are: {', '.join(FORMATS)}")
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in _WRITERS[form](grades):
            path = folder / name
            partial = path.with_suffix(".partial")
            partial.write_text(text, encoding="utf-8", newline="")
            partial.replace(path)
            written.append(path)
    except OSError as error:
        raise CourseError(
            f"the export cannot be written ({error.strerror})", where=folder, do="Choose another with --to."
        ) from error
    return written


def _table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(header)
    writer.writerows([[_safe(value) for value in row] for row in rows])
    return text.getvalue()


def _safe(value: object) -> object:
    """Keep a spreadsheet from running a name as a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value


def _number(points: float) -> str:
    return f"{points:.2f}"


def _csv(grades: Sequence[Grade]) -> list[tuple[str, str]]:
    """The columns of nbgrader's own export, and whether a manual question still waits."""
    columns: dict[str, Callable[[Grade], object]] = {
        "assignment": lambda grade: grade.chapter,
        "duedate": lambda grade: grade.due or "",
        "timestamp": lambda grade: grade.submitted or "",
        "student_id": lambda grade: grade.student,
        "last_name": lambda grade: grade.last_name,
        "first_name": lambda grade: grade.first_name,
        "email": lambda grade: grade.email,
        "raw_score": lambda grade: grade.raw,
        "late_submission_penalty": lambda grade: grade.penalty,
        "score": lambda grade: grade.score,
        "max_score": lambda grade: grade.best,
        "needs_manual_grade": lambda grade: grade.pending,
    }
    return [("grades.csv", _table(list(columns), [[read(grade) for read in columns.values()] for grade in grades]))]


def _canvas(grades: Sequence[Grade]) -> list[tuple[str, str]]:
    """Canvas wants its own columns first, one column per assignment, and a row of points possible."""
    chapters = sorted({grade.chapter for grade in grades})
    best = {grade.chapter: grade.best for grade in grades}
    by_student = {
        student: {grade.chapter: grade for grade in own}
        for student, own in groupby(sorted(grades, key=lambda g: (g.student, g.chapter)), key=lambda g: g.student)
    }
    header = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *chapters]
    rows: list[Sequence[object]] = [["    Points Possible", "", "", "", "", *(_number(best[c]) for c in chapters)]]
    for student, own in by_student.items():
        one = next(iter(own.values()))
        name = f"{one.last_name}, {one.first_name}".strip(", ") or student
        rows.append([name, one.platform_id, "", student, "", *(_cell(own.get(c)) for c in chapters)])
    return [("canvas.csv", _table(header, rows))]


def _cell(grade: Grade | None) -> str:
    """A chapter that was not handed in stays empty: Canvas has its own policy for missing work."""
    return _number(grade.score) if grade is not None and grade.handed_in else ""


def _moodle(grades: Sequence[Grade]) -> list[tuple[str, str]]:
    header = [
        "Identifier",
        "Full name",
        "Email address",
        "Status",
        "Grade",
        "Maximum grade",
        "Grade can be changed",
        "Feedback comments",
    ]
    files = []
    for chapter, group in groupby(sorted(grades, key=lambda g: (g.chapter, g.student)), key=lambda g: g.chapter):
        rows = [
            [
                f"Participant {grade.platform_id}" if grade.platform_id else grade.student,
                grade.full_name,
                grade.email,
                "Submitted for grading" if grade.handed_in else "No submission",
                _cell(grade),
                _number(grade.best),
                "Yes",
                "Some questions wait for manual grading." if grade.pending else "",
            ]
            for grade in group
        ]
        files.append((f"moodle-{chapter}.csv", _table(header, rows)))
    return files


_WRITERS: dict[str, Callable[[Sequence[Grade]], list[tuple[str, str]]]] = {
    "csv": _csv,
    "canvas": _canvas,
    "moodle": _moodle,
}
