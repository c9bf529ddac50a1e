"""Export a graded notebook as an HTML feedback page with nbconvert."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import Exporter
from nbgrader.api import Comment, Grade, Gradebook
from nbgrader.preprocessors import GetGrades
from nbgrader.utils import compute_checksum, is_grade, is_solution
from sqlalchemy import select
from sqlalchemy.orm import selectinload, undefer

from autograder.course.gradebook.reader import existing_gradebook
from autograder.grading.feedback.page import notebook_title
from autograder.grading.feedback.page_html import make_page, page_process
from autograder.grading.record.marks_journal import cached_ticks
from autograder.limited_process import LimitedProcess
from autograder.site_address import site_address


class LoadGrades(GetGrades):  # type: ignore[misc]
    """Replaces nbgrader's GetGrades: it makes two queries per notebook, not two per cell, and marks waiting answers."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Write scores and comments to the cells, and the totals to the resources."""
        metadata = resources["nbgrader"]
        with self.open_page_gradebook(metadata["db_url"]) as gradebook:
            notebook = gradebook.find_submission_notebook(
                metadata["notebook"], metadata["assignment"], metadata["student"]
            )
            with_cells = selectinload(Grade.cell), selectinload(Comment.cell)
            grades = gradebook.db.scalars(
                select(Grade).where(Grade.notebook_id == notebook.id).options(with_cells[0], undefer(Grade.max_score))
            )
            comments = gradebook.db.scalars(
                select(Comment).where(Comment.notebook_id == notebook.id).options(with_cells[1])
            )
            marks = {cell.metadata["nbgrader"]["grade_id"]: cell.metadata["nbgrader"] for cell in _nbgrader_cells(nb)}
            for grade in grades:
                if mark := marks.get(grade.cell.name):
                    mark["score"], mark["points"] = grade.score, grade.max_score
                    mark["pending"] = bool(grade.needs_manual_grade)
                    mark["auto_score"], mark["by_hand"] = grade.auto_score, grade.manual_score is not None
                    mark["given_points"] = grade.manual_score
            for comment in comments:
                if mark := marks.get(comment.cell.name):
                    mark["comment"] = comment.comment
            penalty = notebook.late_submission_penalty or 0
            student = gradebook.find_student(metadata["student"])
            metadata["name"] = f"{student.first_name or ''} {student.last_name or ''}".strip()
            metadata.update(score=notebook.score - penalty, max_score=notebook.max_score, late_penalty=penalty)
            submission = gradebook.find_submission(metadata["assignment"], metadata["student"])
            metadata["seconds_late"] = submission.total_seconds_late
        return nb, resources

    def open_page_gradebook(self, db_url: str) -> AbstractContextManager[Gradebook]:
        """Return the gradebook as a context manager, for one page."""
        return existing_gradebook(db_url)


def bind_gradebook(gradebook: Gradebook) -> type[LoadGrades]:
    """Return a LoadGrades class that reuses an open gradebook, because opening one is slower than a page's queries."""

    @contextmanager
    def open_for_page() -> Iterator[Gradebook]:
        try:
            yield gradebook
        finally:
            gradebook.db.remove()  # what has changed by the next page is to be seen there

    def open_page_gradebook(self: LoadGrades, db_url: str) -> AbstractContextManager[Gradebook]:
        return open_for_page()

    return type(
        LoadGrades.__name__, (LoadGrades,), {"open_page_gradebook": open_page_gradebook, "__module__": __name__}
    )


def _nbgrader_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade_id")]


class FeedbackExporter(Exporter):  # type: ignore[misc]
    """Exports a graded notebook as a feedback page that needs no network, script or other file."""

    output_mimetype = "text/html"
    process: LimitedProcess | None = None
    # Why the last page shows the student's texts as they were written; empty if it does not.
    plain_because = ""

    def _file_extension_default(self) -> str:
        return ".html"

    def from_notebook_node(self, nb: Any, resources: Any = None, **kw: Any) -> tuple[str, Any]:
        """Return a graded notebook's feedback page and the resources."""
        graded, resources = super().from_notebook_node(nb, resources, **kw)
        metadata = resources["nbgrader"]
        self.process = self.process or page_process()
        _mark_answers(graded)
        course = getattr(self.parent, "coursedir", None)
        root = str(course.root) if course is not None else ""
        _load_ticks(graded, root, metadata)
        details = metadata | {"title": self._released_title(metadata["assignment"])}
        page, self.plain_because = make_page(self.process, graded, details, site_address(), root)
        if self.plain_because:
            self.log.warning("The page of %s shows plain text: %s", metadata["student"], self.plain_because)
        return page, resources

    def _released_title(self, chapter: str) -> str:
        """Return the chapter's title in the release; a submission that could not be read has none."""
        coursedir = getattr(self.parent, "coursedir", None)
        if coursedir is None:
            return ""
        folder = coursedir.format_path(coursedir.release_directory, ".", chapter)
        return _read_title(Path(folder) / f"{chapter}.ipynb")


def bind_process(process: LimitedProcess) -> type[FeedbackExporter]:
    """Return a FeedbackExporter class that reuses a process, because starting one is slower than making a page."""
    return type(FeedbackExporter.__name__, (FeedbackExporter,), {"process": process, "__module__": __name__})


def _mark_answers(notebook: Any) -> None:
    """Store in each written answer's metadata whether the student has changed it."""
    for cell in notebook.cells:
        if is_grade(cell) and is_solution(cell):
            mark = cell.metadata.nbgrader
            mark["answered"] = mark.get("checksum") != compute_checksum(cell)


def _load_ticks(notebook: Any, root: str, metadata: Any) -> None:
    """Store the rubric that explains its points in each written answer's metadata, or an empty one.

    This replaces any rubric that the student wrote there. Marks belong to the student who handed in, also on the page
    of another member of the group.

    Marks belong to the student who handed in, also on the page of another member of the group.
    """
    student = metadata.get("handed_in_by") or metadata["student"]
    by_answer = cached_ticks(Path(root), metadata["assignment"]) if root else {}
    for cell in _nbgrader_cells(notebook):
        mark = cell.metadata.nbgrader
        ticks = by_answer.get((mark["grade_id"], student))
        explains = ticks is not None and not mark.get("pending") and ticks.belong_to(mark.get("given_points"))
        mark["rubric"] = [tick.to_json() for tick in ticks.ticks or ()] if ticks and explains else []


@lru_cache(maxsize=64)
def _read_title(path: Path) -> str:
    if not path.is_file():
        return ""
    return notebook_title(nbformat.read(path, as_version=4))
