"""Running one submission: the seam between what is graded and how it is run.

An :class:`Executor` takes plain data and returns plain data, so that it may work in another process, in a sandbox, or on another machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import Any, Protocol

import nbformat

from autograder.grading.kernel import KernelExecute
from autograder.grading.settings import GradingSettings


@dataclass(frozen=True)
class Submission:
    """What is to be run.

    Attributes:
        student: the student's id.
        chapter: the chapter.
        notebook: the sanitised notebook, as JSON.
    """

    student: str
    chapter: str
    notebook: str


@dataclass(frozen=True)
class Execution:
    """What came of running it.

    Attributes:
        student: the student's id.
        notebook: the notebook with its outputs, verdicts and problems, as JSON; empty if the executor failed.
        seconds: how long it took.
        failure: why there is no notebook, if there is none. It is then the grader that failed, not the student.
    """

    student: str
    notebook: str
    seconds: float
    failure: str = ""


class Executor(Protocol):
    """Anything that runs submissions. It must be picklable, for it goes to worker processes."""

    def grade_one(self, submission: Submission) -> Execution:
        """Run a submission. Never raises for what the submission does."""
        ...


@dataclass(frozen=True)
class KernelExecutor:
    """Runs each submission in a fresh Jupyter kernel.

    Attributes:
        settings: limits, device and seed.
    """

    settings: GradingSettings

    def grade_one(self, submission: Submission) -> Execution:
        """Run a submission in a kernel of its own and return its notebook."""
        begin = monotonic()
        notebook: Any = nbformat.reads(submission.notebook, as_version=4)
        try:
            self._kernel().preprocess(notebook, {})
        except Exception as error:  # no kernel, no folder, no memory: the grader's misfortune, told as such
            return Execution(submission.student, "", monotonic() - begin, f"{type(error).__name__}: {error}")
        return Execution(submission.student, nbformat.writes(notebook), monotonic() - begin)

    def _kernel(self) -> KernelExecute:
        settings = self.settings
        return KernelExecute(
            timeout=settings.cell_seconds,
            submission_timeout=settings.submission_seconds,
            device=settings.device,
            seed=settings.seed,
            kept_output=settings.kept_output,
            flood_output=settings.flood_output,
            restarts=settings.restarts,
        )
