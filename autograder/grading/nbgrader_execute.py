"""Run the engine as an nbgrader preprocessor, for ``nbgrader autograde`` and the formgrader."""

from __future__ import annotations

import atexit
import copy
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import Execute

from autograder.course.folder import Course
from autograder.engine.interface import Executor, Submission
from autograder.engine.sandbox.isolation import with_available_isolation
from autograder.engine.settings import GradingSettings, resolve_device
from autograder.engine.workers.executor import create_executor
from autograder.intake.notebook.attached_files import read_companion_files
from autograder.intake.notebook.test_cells import error_output, is_locked, is_test

# One worker for all submissions that this process grades with the same settings.
_workers: dict[tuple[int, GradingSettings], Executor] = {}


class GraderError(RuntimeError):
    """The grader could not run a submission, through no fault of the student."""


class EngineExecute(Execute):  # type: ignore[misc]
    """Replaces nbgrader's Execute: student code runs in a sandboxed worker, and graded cells next to the reference."""

    def __call__(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Run a notebook even with ``--no-execute``: nbgrader would give all points to one without outputs."""
        if not self.enabled:
            self.log.warning("--no-execute is ignored: a submission that does not run would get all points.")
        return self.preprocess(nb, resources)

    def preprocess(self, nb: Any, resources: Any = None, km: Any = None) -> tuple[Any, Any]:
        """Run all code cells of a sanitised notebook, in place.

        Raises:
            GraderError: if it could not be run.
        """
        from autograder.grading.released_points import impossible_scores, refuse_other_totals

        metadata = resources["nbgrader"]
        chapter = str(metadata["assignment"])
        worker = get_worker(self._read_settings(chapter))
        notebook = copy.deepcopy(nb)
        foreign = _remove_false_metadata(notebook, _course_cells(metadata))
        companions = read_companion_files([Path(resources["metadata"]["path"])]).files
        execution = worker.grade_one(
            Submission(str(metadata["student"]), chapter, nbformat.writes(notebook), companions)
        )
        if not execution.notebook:
            raise GraderError(execution.failure)
        done = nbformat.reads(execution.notebook, as_version=4)
        refuse_other_totals(Course(Path(self._find_coursedir().root).resolve()), chapter, done)
        if fault := impossible_scores(done):
            raise GraderError(fault)
        for index in foreign:
            done.cells[index].metadata["nbgrader"] = nb.cells[index].metadata["nbgrader"]
            if is_test(done.cells[index]):
                message = "This test cell does not belong to the course."
                done.cells[index].outputs = [error_output("not gradable", message)]
        nb.cells, nb.metadata = done.cells, done.metadata
        return nb, resources

    def _read_settings(self, chapter: str) -> GradingSettings:
        from autograder.grading.course_settings import add_seed, settings_from_config, student_package

        course = Course(Path(self._find_coursedir().root).resolve())
        settings = add_seed(course, settings_from_config(self.config))
        device = resolve_device(os.environ.get("TFCOURSE_DEVICE") or "auto")
        return with_available_isolation(
            replace(settings, package=student_package(course, chapter), device=device, jobs=1)
        )

    def _find_coursedir(self) -> Any:
        directory = getattr(getattr(self.parent, "parent", None), "coursedir", None)
        return directory if directory is not None else CourseDirectory(config=self.config)


def _course_cells(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return the sources of a notebook's locked cells in the gradebook, by name."""
    with Gradebook(metadata["db_url"], "") as gradebook:
        try:
            notebook = gradebook.find_notebook(metadata["notebook"], metadata["assignment"])
        except MissingEntry:
            return {}
        return {cell.name: cell.source for cell in notebook.source_cells if cell.locked}


def _remove_false_metadata(notebook: Any, course_cells: Mapping[str, str]) -> list[int]:
    """Remove nbgrader's metadata from cells that falsely claim to be the course's, and return their positions.

    The course's cells run in the process with the reference. nbgrader has restored the source of cells that it knows by name; this function
    handles the others.
    """
    foreign = []
    for index, cell in enumerate(notebook.cells):
        mark = cell.metadata.get("nbgrader")
        if (
            mark
            and cell.cell_type == "code"
            and (is_test(cell) or is_locked(cell))
            and course_cells.get(mark.get("grade_id")) != cell.source
        ):
            del cell.metadata["nbgrader"]
            foreign.append(index)
    return foreign


def get_worker(settings: GradingSettings) -> Executor:
    """Return this process's worker for the given settings, which ends with the process."""
    key = (os.getpid(), settings)
    if key not in _workers:
        # Another chapter or another configuration: close the previous worker.
        for worker_key in [worker_key for worker_key in _workers if worker_key[0] == key[0]]:
            _workers.pop(worker_key).close()
        _workers[key] = create_executor(settings)
        atexit.register(_workers[key].close)
    return _workers[key]
