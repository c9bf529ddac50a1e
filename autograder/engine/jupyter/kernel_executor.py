"""Run one submission in an ordinary Jupyter kernel."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import Any

import nbformat

from autograder.engine.interface import Execution, Executor, Submission
from autograder.engine.jupyter.kernel_execute import KernelExecute
from autograder.engine.settings import GradingSettings

__all__ = ["Execution", "Executor", "KernelExecutor", "Submission"]


@dataclass(frozen=True)
class KernelExecutor:
    """Runs each submission in a fresh Jupyter kernel."""

    settings: GradingSettings  # limits, device and seed

    def grade_one(self, submission: Submission) -> Execution:
        """Run a submission in its own kernel and return its notebook."""
        begin = monotonic()
        notebook: Any = nbformat.reads(submission.notebook, as_version=4)
        try:
            kernel = KernelExecute(settings=self.settings, timeout=self.settings.cell_seconds)
            kernel.preprocess(notebook, {})
        except Exception as error:  # no kernel, no folder, no memory: reported as a failure of the grader
            return Execution(submission.student, "", monotonic() - begin, f"{type(error).__name__}: {error}")
        return Execution(submission.student, nbformat.writes(notebook), monotonic() - begin)

    def close(self) -> None:
        """Do nothing: it holds no resources between two submissions."""
