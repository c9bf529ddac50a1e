"""Export a graded notebook as a feedback page, through nbconvert."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import nbformat
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from nbconvert.exporters import Exporter
from nbgrader.api import Comment, Grade, Gradebook
from nbgrader.preprocessors import GetGrades
from sqlalchemy import select
from sqlalchemy.orm import selectinload, undefer

from autograder.checking.verdict import section_address
from autograder.course.course_file import read_course_file
from autograder.course.site_address import site_address
from autograder.feedback.counted_page import counted_page
from autograder.feedback.markup import duration_text, in_code, points_text
from autograder.feedback.page import feedback_page, title_of
from autograder.gradebook.reader import read_only

TEMPLATES = Path(__file__).parent / "templates"


class LoadGrades(GetGrades):  # type: ignore[misc]
    """Does what nbgrader's GetGrades does with two queries in place of two per cell, and says what still waits for a person."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Write scores and comments to the cells, and the totals to the resources."""
        metadata = resources["nbgrader"]
        with self.opened(metadata["db_url"]) as gradebook:
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
            marks = {cell.metadata["nbgrader"]["grade_id"]: cell.metadata["nbgrader"] for cell in _named(nb)}
            for grade in grades:
                if mark := marks.get(grade.cell.name):
                    mark["score"], mark["points"] = grade.score, grade.max_score
                    mark["pending"] = bool(grade.needs_manual_grade)
                    mark["auto_score"], mark["by_hand"] = grade.auto_score, grade.manual_score is not None
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

    def opened(self, db_url: str) -> AbstractContextManager[Gradebook]:
        """Return the gradebook, for one page."""
        return read_only(db_url)


def with_gradebook(gradebook: Gradebook) -> type[LoadGrades]:
    """Return the same preprocessor for many pages: to open a gradebook takes longer than all that a page asks of it."""

    @contextmanager
    def one_page() -> Iterator[Gradebook]:
        try:
            yield gradebook
        finally:
            gradebook.db.remove()  # what has changed by the next page is to be seen there

    def opened(self: LoadGrades, db_url: str) -> AbstractContextManager[Gradebook]:
        return one_page()

    return type(LoadGrades.__name__, (LoadGrades,), {"opened": opened, "__module__": __name__})


def _named(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade_id")]


class FeedbackExporter(Exporter):  # type: ignore[misc]
    """Makes a feedback page of a graded notebook. It needs no network, no script and no other file."""

    output_mimetype = "text/html"

    def _file_extension_default(self) -> str:
        return ".html"

    def from_notebook_node(self, nb: Any, resources: Any = None, **kw: Any) -> tuple[str, Any]:
        """Return the page of a graded notebook."""
        graded, resources = super().from_notebook_node(nb, resources, **kw)
        metadata = resources["nbgrader"]
        page = feedback_page(graded, metadata | {"title": self._released_title(metadata["assignment"])})
        if (coursedir := getattr(self.parent, "coursedir", None)) is not None:
            page = counted_page(page, read_course_file(Path(coursedir.root)))
        return _template().render(page=page, site=site_address()), resources

    def _released_title(self, chapter: str) -> str:
        """Return the title of the chapter as it was released: a file that could not be read does not tell it."""
        coursedir = getattr(self.parent, "coursedir", None)
        if coursedir is None:
            return ""
        folder = coursedir.format_path(coursedir.release_directory, ".", chapter)
        return _title(Path(folder) / f"{chapter}.ipynb")


@lru_cache(maxsize=64)
def _title(path: Path) -> str:
    if not path.is_file():
        return ""
    return title_of(nbformat.read(path, as_version=4))


@cache
def _template() -> Any:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["section_address"] = section_address
    environment.filters["in_code"] = in_code
    environment.filters["points"] = points_text
    environment.filters["duration"] = duration_text
    return environment.get_template("feedback.html.j2")
