"""Record which feedback pages are up to date, in ``COURSE/journal/CHAPTER.pages.json``.

To make the pages of a class takes longer than everything else in a run in which nothing has changed. A page's stamp is a hash of all that
it is made of and a hash of the page; without one, or with another one, the page is made.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from nbgrader.api import (
    Assignment,
    BaseCell,
    Comment,
    Grade,
    Gradebook,
    Notebook,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
)
from sqlalchemy import select

import autograder
from autograder.atomic_files import write_atomically
from autograder.course.course_file import read_course_file
from autograder.course.folder import CONFIG_NAME, Course
from autograder.grading.feedback.exporter import FeedbackExporter, LoadGrades
from autograder.grading.record.marks_journal import cached_ticks
from autograder.intake.roster import read_roster
from autograder.site_address import site_address


class PageStamps:
    """The stamps of a chapter's feedback pages.

    Args:
        course: the course.
        chapter: the chapter.
        config: the configuration that the pages are made with.
        gradebook: the gradebook, open for reading.
    """

    def __init__(self, course: Course, chapter: str, config: Any, gradebook: Gradebook) -> None:
        self._course, self._chapter = course, chapter
        self._path = course.root / "journal" / f"{chapter}.pages.json"
        feedback = config.GenerateFeedback
        # Of what somebody else's code makes a page nobody knows.
        self._ours = feedback.preprocessors == [LoadGrades] and feedback.exporter_class is FeedbackExporter
        self._marks = _hash_marks(gradebook, chapter) if self._ours else {}
        self._ticks: dict[str, list[str]] = defaultdict(list)
        for (question, student), ticks in sorted(cached_ticks(course.root, chapter).items()):
            self._ticks[student].append(repr((question, ticks)))
        released = course.folder("release", chapter=chapter) / f"{chapter}.ipynb"
        settings = json.dumps(config.FeedbackExporter, default=str, sort_keys=True)
        self._plan = read_course_file(course.root)
        rules = msgspec.json.encode(
            (self._plan.chapter(chapter).exercises, self._plan.late_rule(chapter)), order="sorted"
        ).decode()
        parts = [
            _hash_program(),
            settings,
            rules,
            site_address(),
            *(_hash_file(path) for path in (released, course.root / CONFIG_NAME)),
        ]
        self._common = _hash_data("\0".join(parts).encode())
        self._decided = {name: one.decided.get(chapter) for name, one in read_roster(course).items()}
        self._known = self._read_stamps()
        self._now: dict[str, list[str]] = {}

    def is_current(self, student: str) -> bool:
        """Return whether a student's page is up to date."""
        stamp = self._known.get(student)
        return stamp is not None and stamp == self._compute_stamp(student)

    def record_page(self, student: str) -> None:
        """Record the stamp of a page that was written or is up to date."""
        if stamp := self._compute_stamp(student):
            self._now[student] = stamp

    def write(self) -> None:
        """Write the stamps. If that fails, the next run writes all pages again."""
        if self._ours:
            with suppress(OSError):
                write_atomically(self._path, json.dumps(self._known | self._now, indent=0, sort_keys=True).encode())

    def forget_page(self, student: str) -> None:
        """Remove the stamp of a page that could not be written."""
        self._known.pop(student, None)

    def _compute_stamp(self, student: str) -> list[str] | None:
        folders = [self._course.folder(step, student, self._chapter) for step in ("autograded", "feedback")]
        name = f"{self._chapter}.ipynb"
        page = folders[1] / f"{self._chapter}.html"
        if student not in self._marks or not page.is_file():
            return None
        graded, published = (_hash_folder(folder) for folder in folders)
        # What lies beside the notebook is copied to the page.
        copies = [other for other in graded if not other.endswith(".ipynb")]
        if any(published.get(other) != graded[other] for other in copies):
            return None
        ticks = self._ticks.get(student, [])
        decisions = repr((self._plan.due(self._chapter, student), self._decided.get(student)))
        made_of = [self._common, self._marks[student], decisions, graded.get(name, ""), *ticks, *sorted(copies)]
        return [_hash_data("\0".join(made_of).encode("utf-8", "surrogateescape")), published[page.name]]

    def _read_stamps(self) -> dict[str, list[str]]:
        try:
            stamps = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return stamps if self._ours and isinstance(stamps, dict) else {}


def _hash_marks(gradebook: Gradebook, chapter: str) -> Mapping[str, str]:
    """Return a hash of each submission's gradebook entries, by student, with three queries in total."""
    handed_in = gradebook.db.execute(
        select(
            SubmittedNotebook.id,
            Student.id,
            Student.first_name,
            Student.last_name,
            SubmittedNotebook.late_submission_penalty,
            SubmittedAssignment.timestamp,
            SubmittedAssignment.extension,
            Assignment.duedate,
        )
        .join(SubmittedAssignment, SubmittedAssignment.id == SubmittedNotebook.assignment_id)
        .join(Student, Student.id == SubmittedAssignment.student_id)
        .join(Notebook, Notebook.id == SubmittedNotebook.notebook_id)
        .join(Assignment, Assignment.id == Notebook.assignment_id)
        .where(Assignment.name == chapter, Notebook.name == chapter)
    ).all()
    scores = (Grade.auto_score, Grade.manual_score, Grade.extra_credit, Grade.needs_manual_grade, Grade.max_score)
    grades = select(Grade.notebook_id, BaseCell.name, *scores).join(BaseCell, BaseCell.id == Grade.cell_id)
    texts = (Comment.auto_comment, Comment.manual_comment)
    comments = select(Comment.notebook_id, BaseCell.name, *texts).join(BaseCell, BaseCell.id == Comment.cell_id)
    contents: dict[str, list[str]] = defaultdict(list)
    notebooks = [row[0] for row in handed_in]
    for question, kind in ((grades, Grade), (comments, Comment)):
        for notebook, *row in gradebook.db.execute(question.where(kind.notebook_id.in_(notebooks))):
            contents[notebook].append(f"{kind.__name__} {row!r}")
    return {
        row[1]: _hash_data("\n".join([repr(tuple(row[1:])), *sorted(contents[row[0]])]).encode()) for row in handed_in
    }


@cache
def _hash_program() -> str:
    """Return a hash of this program's files and of the installed packages' names and versions."""
    root = Path(str(autograder.__file__)).parent
    files = sorted(path for path in root.rglob("*") if path.suffix in (".py", ".j2", ".css"))
    places = [Path(entry) for entry in sys.path if entry]
    installed = sorted(path.name for folder in places if folder.is_dir() for path in folder.glob("*.dist-info"))
    return _hash_data("\0".join([*map(_hash_file, files), *installed]).encode())


def _hash_folder(folder: Path) -> dict[str, str]:
    """Return a hash of every file in a folder, by its relative path."""
    return {
        path.relative_to(folder).as_posix(): _hash_file(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def _hash_file(path: Path) -> str:
    return _hash_data(path.read_bytes()) if path.is_file() else ""


def _hash_data(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
