"""The same intake and the same execution inside nbgrader itself.

A course's ``nbgrader_config.py`` calls :func:`configure`; then ``nbgrader autograde``, the formgrader and ``tfcourse autograde`` give the
same scores to the same submissions.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nbconvert.exporters import NotebookExporter
from nbconvert.preprocessors import ClearMetadataPreprocessor
from nbformat import reader
from nbformat.v4 import new_notebook
from nbformat.v4.rwbase import strip_transient
from nbgrader.preprocessors import (
    AssignLatePenalties,
    CheckCellMetadata,
    ClearOutput,
    DeduplicateIds,
    IgnorePattern,
    LimitOutput,
    NbGraderPreprocessor,
    OverwriteCells,
    OverwriteKernelspec,
    SaveAutoGrades,
)
from traitlets.config import Config

from autograder.course.folder import Course
from autograder.feedback.exporter import FeedbackExporter, LoadGrades
from autograder.feedback.safe_notebook import SafeNotebook, markdown_in_cell
from autograder.grading.late_work import ApplyDeadline, CourseLateness
from autograder.grading.nbgrader_execute import EngineExecute
from autograder.record.compact_json import dumps_by_line
from autograder.record.gradebook_writer import EXPORTED
from autograder.submission.intake import prepare_submission
from autograder.submission.manifest import Manifest, cell_order, read_manifest
from autograder.submission.notebook_reader import UnreadableError, read_file, read_notebook
from autograder.submission.problem import Problem

# Where the exporter leaves what reading a file brought up, for the preprocessor behind it.
_FOUND = "tfcourse_problems"


class SubmissionExporter(NotebookExporter):  # type: ignore[misc]
    """Reads submissions that nbformat would refuse; everything else about it is nbconvert's notebook exporter, in less time."""

    def from_filename(self, filename: str, resources: Any = None, **kw: Any) -> tuple[Any, Any]:
        """Read a submission; the second pass over the grader's own copy reads it as it is, and so do both over other notebooks."""
        if not _is_chapter((resources or {}).get("nbgrader") or {}):
            other: tuple[Any, Any] = super().from_filename(filename, resources, **kw)
            return other
        path = Path(filename)
        resources["metadata"] = {"name": path.stem, "path": str(path.parent)}
        if getattr(self.parent, "_sanitizing", False):
            try:
                notebook, problems = read_notebook(read_file(path, above=2))
            except UnreadableError as error:
                notebook, problems = new_notebook(), [error.problem]
            resources[_FOUND] = problems
        else:
            notebook = reader.reads(path.read_text(encoding="utf-8"))
        return self.from_notebook_node(notebook, resources=resources, **kw)

    def from_notebook_node(self, nb: Any, resources: Any = None, **kw: Any) -> tuple[str, Any]:
        """As nbconvert's, without the four copies that it makes for those who want to go on with what they handed in, and validated once.

        What is sanitised is validated in the second pass, with what has become of it.
        """
        resources = self._init_resources(resources)
        if not _is_chapter(resources.get("nbgrader") or {}):
            exported: tuple[str, Any] = super().from_notebook_node(nb, resources, **kw)
            return exported
        for step in self._preprocessors:
            nb, resources = step(nb, resources)
        if not getattr(self.parent, "_sanitizing", False):
            self._validate_preprocessor(nb, "the last one")
        resources["output_suffix"] = ".nbconvert"
        resources[EXPORTED] = strip_transient(nb)
        return dumps_by_line(nb, "cells", sort_keys=True), resources


class RestoreCells(NbGraderPreprocessor):  # type: ignore[misc]
    """Gives a submission all the cells of its chapter, or the problem that keeps it from being graded."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Put a submission in order, in place."""
        found: list[Problem] = resources.pop(_FOUND, [])
        about = resources["nbgrader"]
        if _is_chapter(about):
            prepare_submission(nb, found, self._manifest(about))
        return nb, resources

    def _manifest(self, about: Any) -> Manifest:
        converter = getattr(self.parent, "parent", None)
        known: Manifest | None = getattr(converter, "manifest", None)
        if known is not None and known.chapter == about["assignment"] == about["notebook"]:
            return known
        coursedir = getattr(converter, "coursedir", None)
        order: list[str] = []
        if coursedir is not None:
            folder = coursedir.format_path(coursedir.source_directory, ".", about["assignment"])
            order = cell_order(Path(folder) / f"{about['notebook']}.ipynb")
        return read_manifest(about["db_url"], about["assignment"], order)


class _ExtraNotebooksOnly:
    """A step for notebooks that are not their chapter's: in those RestoreCells has done its work."""

    # Not `preprocess`, which is nbgrader's own: it is to find the shared gradebook.
    def __call__(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        if _is_chapter(resources["nbgrader"]):
            return nb, resources
        done: tuple[Any, Any] = super().__call__(nb, resources)  # type: ignore[misc]
        return done


class OthersKernelspec(_ExtraNotebooksOnly, OverwriteKernelspec):  # type: ignore[misc]
    """nbgrader's OverwriteKernelspec for notebooks that are not their chapter's."""


class OthersCells(_ExtraNotebooksOnly, OverwriteCells):  # type: ignore[misc]
    """nbgrader's OverwriteCells for notebooks that are not their chapter's."""


class OthersMetadata(_ExtraNotebooksOnly, CheckCellMetadata):  # type: ignore[misc]
    """nbgrader's CheckCellMetadata for notebooks that are not their chapter's: in those RestoreCells writes the metadata itself."""


def _is_chapter(about: Any) -> bool:
    """Whether a notebook is its chapter's. One beside it, in an assignment of the course's own, is nbgrader's business alone."""
    return bool(about.get("notebook") == about.get("assignment"))


def configure(config: Any) -> None:
    """Put the course's intake, execution and feedback into an nbgrader configuration.

    Args:
        config: the ``c`` of ``nbgrader_config.py``; lists that it already has are left as they are.
    """
    settings = config.Autograde
    settings.setdefault("exporter_class", SubmissionExporter)
    settings.setdefault(
        "sanitize_preprocessors",
        [RestoreCells, ClearOutput, DeduplicateIds, OthersKernelspec, OthersCells, OthersMetadata],
    )
    settings.setdefault(
        "autograde_preprocessors",
        [
            EngineExecute,
            IgnorePattern,
            ClearMetadataPreprocessor,
            LimitOutput,
            SaveAutoGrades,
            ApplyDeadline,
            AssignLatePenalties,
            OthersMetadata,
        ],
    )
    config.AssignLatePenalties.setdefault("plugin_class", CourseLateness)
    # The formgrader shows what students wrote in the lecturer's own browser session.
    config.HTMLExporter.sanitize_html = True
    config.HTMLExporter.filters = {**config.HTMLExporter.get("filters", {}), "markdown2html": markdown_in_cell}
    others = [step for step in config.HTMLExporter.get("preprocessors", ()) if step is not SafeNotebook]
    config.HTMLExporter.preprocessors = [*others, SafeNotebook]
    config.GenerateFeedback.setdefault("exporter_class", FeedbackExporter)
    config.GenerateFeedback.setdefault("preprocessors", [LoadGrades])


def configured(course: Course) -> Config:
    """Return a course's nbgrader configuration with the course's intake, execution and feedback in it."""
    config = course.config()
    configure(config)
    return config
