"""Run a submission in a process without a sandbox, on systems that offer none; the student's process judges itself.

Any behaviour of the submission's code becomes a result, and never a failure of the grader.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import nbformat

from autograder.checking.rehearsal import Failure, Limits, Rehearsal, rehearse, start_process
from autograder.engine.checker.cell_results import is_refused, limit_outputs, set_grader_error
from autograder.engine.environment import kernel_environment
from autograder.engine.interface import Execution, Submission
from autograder.engine.settings import GradingSettings, resolve_device
from autograder.intake.notebook.problem import Problem, add_problems
from autograder.intake.notebook.test_cells import cell_label, enforce_verdict, is_test

_PROGRAM = "autograder.engine.student.plain_process"


@dataclass(frozen=True, kw_only=True)
class _ProcessLimits(Limits):
    longest: int  # how many of a cell's characters are kept
    seed: int  # seeds the process's random numbers


@dataclass(frozen=True)
class PlainExecutor:
    """Runs each submission in a new, unsandboxed process."""

    settings: GradingSettings  # limits, device and seed

    def grade_one(self, submission: Submission) -> Execution:
        """Run a submission in its own process and return its notebook."""
        begin = monotonic()
        notebook: Any = nbformat.reads(submission.notebook, as_version=4)
        try:
            self._run_notebook(notebook)
        except Exception as error:  # no process, no folder, no memory: reported as a failure of the grader
            return Execution(submission.student, "", monotonic() - begin, f"{type(error).__name__}: {error}")
        return Execution(submission.student, nbformat.writes(notebook), monotonic() - begin)

    def _run_notebook(self, notebook: Any) -> None:
        """Run all code cells of a sanitised notebook in place, unless it has a fatal problem."""
        if is_refused(notebook):
            return
        code = {
            index: cell for index, cell in enumerate(notebook.cells) if cell.cell_type == "code" and cell.source.strip()
        }
        with TemporaryDirectory(prefix="tfcourse-", ignore_cleanup_errors=True) as folder:
            outcome = self._run_cells([(index, cell.source) for index, cell in code.items()], Path(folder))
        problems = [problem for index, cell in code.items() for problem in _set_outputs(cell, index, outcome)]
        not_run = code.keys() - outcome.outputs.keys() - outcome.errors.keys()
        if not_run:
            message = f"{self.settings.restarts + 1} cells brought the process down; what follows was not run."
            problems.append(Problem("kernel died", message))
            for cell in filter(is_test, map(code.__getitem__, not_run)):
                set_grader_error(cell, "kernel died", message)
        limit_outputs(notebook)
        add_problems(notebook, problems)

    def _run_cells(self, cells: list[tuple[int, str]], folder: Path) -> Rehearsal:
        settings = self.settings
        limits = _ProcessLimits(
            cell_seconds=settings.cell_seconds,
            seconds=settings.submission_seconds,
            output=settings.flood_output,
            restarts=settings.restarts,
            longest=settings.kept_output,
            seed=settings.student_seed,
        )
        device, work = resolve_device(settings.device), folder / "work"
        work.mkdir()
        environment = kernel_environment(folder, device=device, seed=settings.student_seed)
        return rehearse(cells, [], limits, partial(start_process, _PROGRAM, environment, work))

    def close(self) -> None:
        """Do nothing: no resources are held between submissions."""


def _set_outputs(cell: Any, index: int, outcome: Rehearsal) -> list[Problem]:
    """Set a cell's outputs and return its problems; a test cell with a problem gets no points."""
    cell.outputs = nbformat.from_dict(outcome.outputs.get(index, []))
    failure = outcome.errors.get(index)
    if is_test(cell) and (failure is None or failure.kind == "cell error"):
        failure = Failure(*missing) if (missing := enforce_verdict(cell)) else None
    if failure is None:
        return []
    if failure.kind != "cell error":
        set_grader_error(cell, *failure)
    return [Problem(failure.kind, failure.text[:300], where=cell_label(cell, index))]
