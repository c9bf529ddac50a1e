"""Run the autograder's intake and execution inside nbgrader.

A course's ``nbgrader_config.py`` calls :func:`configure`; then ``nbgrader autograde``, the formgrader and ``tfcourse autograde`` give the
same scores to the same submissions.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nbconvert.exporters import NotebookExporter
from nbconvert.preprocessors import ClearMetadataPreprocessor
from nbformat import reader
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
from autograder.grading.feedback.exporter import FeedbackExporter, LoadGrades
from autograder.grading.feedback.safe_notebook import FILTERS, SafeNotebook
from autograder.grading.late_work import ApplyDeadline, CourseLateness
from autograder.grading.nbgrader_execute import EngineExecute
from autograder.grading.record.results import dumps_by_line
from autograder.intake.notebook.intake import attach_to_answers, prepare_submission, read_submission
from autograder.intake.notebook.manifest import Manifest, read_manifest
from autograder.intake.notebook.problem import Problem

# The exporter passes a file's problems to the preprocessor under this key.
_FOUND = "tfcourse_problems"


class SubmissionExporter(NotebookExporter):  # type: ignore[misc]
    """A faster version of nbconvert's notebook exporter that also accepts submissions that nbformat rejects."""

    def from_filename(self, filename: str, resources: Any = None, **kw: Any) -> tuple[Any, Any]:
        """Read a submission. For other notebooks, and the grader's copy in the second pass, use nbconvert's reader."""
        if not _is_chapter((resources or {}).get("nbgrader") or {}):
            other: tuple[Any, Any] = super().from_filename(filename, resources, **kw)
            return other
        path = Path(filename)
        resources["metadata"] = {"name": path.stem, "path": str(path.parent)}
        if getattr(self.parent, "_sanitizing", False):
            notebook, resources[_FOUND] = read_submission(path)
        else:
            notebook = reader.reads(path.read_text(encoding="utf-8"))
        return self.from_notebook_node(notebook, resources=resources, **kw)

    def from_notebook_node(self, nb: Any, resources: Any = None, **kw: Any) -> tuple[str, Any]:
        """Export like nbconvert, but without its four copies of the notebook and with one validation.

        The second pass validates the sanitised notebook after execution.
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
        return dumps_by_line(strip_transient(nb), "cells", sort_keys=True), resources


class RestoreCells(NbGraderPreprocessor):  # type: ignore[misc]
    """Restores a submission's chapter cells, or adds the problem that makes it ungradable."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Restore a submission in place."""
        problems: list[Problem] = resources.pop(_FOUND, [])
        metadata = resources["nbgrader"]
        if _is_chapter(metadata):
            manifest = self._read_manifest(metadata)
            prepare_submission(nb, problems, manifest)
            attach_to_answers(nb, manifest, Path(resources["metadata"]["path"]))
        return nb, resources

    def _read_manifest(self, metadata: Any) -> Manifest:
        coursedir = getattr(getattr(self.parent, "parent", None), "coursedir", None)
        source: Path | None = None
        if coursedir is not None:
            folder = coursedir.format_path(coursedir.source_directory, ".", metadata["assignment"])
            source = Path(folder) / f"{metadata['notebook']}.ipynb"
        root = Path(coursedir.root) if coursedir is not None else None
        return read_manifest(metadata["db_url"], metadata["assignment"], source, root)


class _ExtraNotebooksOnly:
    """A preprocessor mixin that skips chapters' notebooks, because RestoreCells has already processed them."""

    # Not `preprocess`: nbgrader's method must find the shared gradebook.
    def __call__(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        if _is_chapter(resources["nbgrader"]):
            return nb, resources
        done: tuple[Any, Any] = super().__call__(nb, resources)  # type: ignore[misc]
        return done


class OthersKernelspec(_ExtraNotebooksOnly, OverwriteKernelspec):  # type: ignore[misc]
    """nbgrader's OverwriteKernelspec for extra notebooks."""


class OthersCells(_ExtraNotebooksOnly, OverwriteCells):  # type: ignore[misc]
    """nbgrader's OverwriteCells for extra notebooks."""


class OthersMetadata(_ExtraNotebooksOnly, CheckCellMetadata):  # type: ignore[misc]
    """nbgrader's CheckCellMetadata for extra notebooks; RestoreCells writes the metadata of chapters' notebooks."""


def _is_chapter(metadata: Any) -> bool:
    """Return whether a notebook is the chapter's own. nbgrader alone grades an assignment's extra notebooks."""
    return bool(metadata.get("notebook") == metadata.get("assignment"))


def configure(config: Any) -> None:
    """Add the autograder's intake, execution and feedback to an nbgrader configuration.

    Args:
        config: the ``c`` of ``nbgrader_config.py``; its own lists stay unchanged.
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
    # The formgrader shows students' content in the lecturer's browser session.
    config.HTMLExporter.sanitize_html = True
    config.HTMLExporter.filters = {**config.HTMLExporter.get("filters", {}), **FILTERS}
    others = [step for step in config.HTMLExporter.get("preprocessors", ()) if step is not SafeNotebook]
    config.HTMLExporter.preprocessors = [*others, SafeNotebook]
    config.GenerateFeedback.setdefault("exporter_class", FeedbackExporter)
    config.GenerateFeedback.setdefault("preprocessors", [LoadGrades])


def autograder_config(course: Course) -> Config:
    """Return a course's nbgrader configuration with the autograder's intake, execution and feedback."""
    config = course.config()
    configure(config)
    return config
