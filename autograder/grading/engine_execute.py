"""The engine as a preprocessor of nbgrader's: ``nbgrader autograde`` and the formgrader run submissions in it, and know nothing of it."""

from __future__ import annotations

import atexit
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import Execute

from autograder.course import Course
from autograder.engine.executor import WorkerExecutor
from autograder.engine.isolation import settled
from autograder.grading.execution import Submission
from autograder.grading.settings import GradingSettings, resolve_device

# One worker for as many submissions as this process grades in the same way.
_workers: dict[tuple[int, GradingSettings], WorkerExecutor] = {}


class GraderError(RuntimeError):
    """The grader could not run a submission; that is no fault of the student's."""


class EngineExecute(Execute):  # type: ignore[misc]
    """nbgrader's Execute, which hands the notebook to a worker: student code runs in a sandbox, graded cells where the reference is."""

    def preprocess(self, nb: Any, resources: Any = None, km: Any = None) -> tuple[Any, Any]:
        """Run all code cells of a sanitised notebook, in place.

        Raises:
            GraderError: if it could not be run.
        """
        about = (resources or {}).get("nbgrader", {})
        chapter = str(about.get("assignment", ""))
        worker = worker_for(self._settings(chapter))
        execution = worker.grade_one(Submission(str(about.get("student", "")), chapter, nbformat.writes(nb)))
        if execution.failure:
            raise GraderError(execution.failure)
        done = nbformat.reads(execution.notebook, as_version=4)
        nb.cells, nb.metadata = done.cells, done.metadata
        return nb, resources

    def _settings(self, chapter: str) -> GradingSettings:
        from autograder.grading.autograde import settings_of, student_package, with_seed

        course = Course(Path(self._coursedir().root).resolve())
        settings = with_seed(course, settings_of(self.config))
        device = resolve_device(os.environ.get("TFCOURSE_DEVICE") or "auto")
        return settled(replace(settings, package=student_package(course, chapter), device=device, jobs=1))

    def _coursedir(self) -> Any:
        found = getattr(getattr(self.parent, "parent", None), "coursedir", None)
        return found if found is not None else CourseDirectory(config=self.config)


def worker_for(settings: GradingSettings) -> WorkerExecutor:
    """Return this process's worker for these settings; it ends with the process."""
    key = (os.getpid(), settings)
    if key not in _workers:
        # Another chapter, or another configuration: the worker before is not needed any more.
        for known in [known for known in _workers if known[0] == key[0]]:
            _workers.pop(known).close()
        _workers[key] = WorkerExecutor(settings)
        atexit.register(_workers[key].close)
    return _workers[key]
