"""Compare what gradebook, report, exports and feedback pages say about each student's points."""

from __future__ import annotations

import csv
import html
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from nbgrader.api import Gradebook

from autograder.course.folder import Course
from autograder.feedback.markup import points_text
from autograder.reports.grades import Grade, read_grades

Run = Callable[..., object]
Key = tuple[str, str]

_TABLE = re.compile(r"<h3>Every student</h3>.*?</table>", re.DOTALL)
_ROW = re.compile(r'<tr><th scope="row">(.*?)</th>\s*<td class="n">(.*?)</td>', re.DOTALL)
_PAGE = re.compile(r'href="feedback/([^/"]+)/([^/"]+)/[^"]*"')


@dataclass
class Agreement:
    """What a comparison came to.

    Attributes:
        compared: how many numbers each source has.
        disagreements: what differs from the gradebook, one a line.
    """

    compared: dict[str, int] = field(default_factory=dict)
    disagreements: list[str] = field(default_factory=list)

    def compare(self, source: str, numbers: Mapping[Key, object], expected: Mapping[Key, object]) -> None:
        """Compare the numbers of one source with those that it should have."""
        self.compared[source] = len(numbers)
        self.disagreements += [
            f"{source}: {'/'.join(key)} has {numbers.get(key)}, the gradebook {expected.get(key)}"
            for key in sorted(numbers.keys() | expected.keys())
            if numbers.get(key) != expected.get(key)
        ]


def numbers_agree(course: Course, run: Run, folder: Path, *, pages: bool) -> Agreement:
    """Compare every source of points with the gradebook.

    Args:
        course: the course.
        run: runs a command of ``tfcourse``.
        folder: an empty folder for the exports.
        pages: whether the feedback pages must be up to date, too.
    """
    book, grades = _gradebook(course), read_grades(course)
    gradable = {(grade.chapter, grade.student) for grade in grades if grade.handed_in and grade.gradable}
    totals = {key: max(0.0, raw - penalty) for key, (raw, penalty) in book.items() if key in gradable}
    shown = {key: points_text(total) for key, total in totals.items()}
    done = Agreement()
    run("export", "--to", folder)
    rows = _csv(folder / "grades.csv")
    done.compare("csv", rows, {key: book.get(key, (0.0, 0.0)) for key in rows.keys() | book.keys()})
    run("report", "--output", course.root / "report.html")
    done.compare("report", _report(course.root / "report.html"), shown)
    for form, read in (("canvas", _canvas), ("moodle", _moodle)):
        own = [grade for grade in grades if grade.platform == form and (grade.chapter, grade.student) in gradable]
        if own:
            chapters = sorted({grade.chapter for grade in own})
            run("export", "--format", form, "--to", folder, *chapters)
            expected = {(one.chapter, one.student): f"{totals[one.chapter, one.student]:.2f}" for one in own}
            done.compare(form, read(folder, own), expected)
    if pages:
        done.compare("feedback", _feedback(course), shown)
    return done


def _gradebook(course: Course) -> dict[Key, tuple[float, float]]:
    with Gradebook(course.gradebook_url, "tfcourse") as gradebook:
        return {
            (one.assignment.name, one.student_id): (round(one.score, 6), round(one.late_submission_penalty or 0.0, 6))
            for assignment in gradebook.assignments
            for one in gradebook.assignment_submissions(assignment.name)
        }


def _csv(path: Path) -> dict[Key, tuple[float, float]]:
    found = {}
    for row in _rows(path):
        raw, penalty = round(float(row["raw_score"]), 6), round(float(row["late_submission_penalty"]), 6)
        assert round(float(row["score"]), 6) == round(max(0.0, raw - penalty), 6), row
        found[row["assignment"], row["student_id"]] = raw, penalty
    return found


def _report(path: Path) -> dict[Key, str]:
    found = {}
    for table in _TABLE.findall(path.read_text(encoding="utf-8")):
        for name, score in _ROW.findall(table):
            page = _PAGE.search(unquote(html.unescape(name)))
            if page and "/" in score:
                found[page[2], page[1]] = score.partition("/")[0].strip()
    return found


def _canvas(folder: Path, grades: Sequence[Grade]) -> dict[Key, str]:
    cells = {}
    for path in folder.glob("canvas*.csv"):
        for row in _rows(path):
            for name, cell in list(row.items())[5:]:
                assert cell, f"an empty cell in {path.name} deletes a grade on Canvas"
                assert cells.setdefault((name, row["ID"]), cell) == cell
    return {
        (one.chapter, one.student): cells[one.chapter, one.canvas_id]
        for one in grades
        if one.canvas_id and (one.chapter, one.canvas_id) in cells
    }


def _moodle(folder: Path, grades: Sequence[Grade]) -> dict[Key, str]:
    students = {(one.chapter, f"Participant {one.moodle_id}"): one.student for one in grades}
    return {
        (chapter, students[chapter, row["Identifier"]]): row["Grade"]
        for chapter in {one.chapter for one in grades}
        for row in _rows(folder / f"moodle-{chapter}.csv")
    }


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _feedback(course: Course) -> dict[Key, str]:
    found = {}
    for page in course.folder("feedback").glob("*/*/*.html"):
        total = re.search(r'<p class="total"><strong>(.*?)</strong> of', page.read_text(encoding="utf-8"))
        if total:
            found[page.parent.name, page.parents[1].name] = html.unescape(total[1])
    return found
