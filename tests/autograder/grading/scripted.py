"""An executor that runs nothing: it gives the points that a test tells it to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_output

from autograder.checking.verdict import VERDICT_MIME, Finding, Verdict
from autograder.engine.interface import Execution, Submission
from autograder.engine.settings import GradingSettings
from autograder.engine.workers.engine import mark_ungradable


@dataclass
class Scripted:
    """Gives points by student and exercise, one where nothing is said; ``None`` for a student is a failure of the grader.

    Attributes:
        points: the points.
        said: what each finding says.
        totals: the totals of checks, by exercise, where they are not the points of the test cell.
        seen: the settings of every executor that was made.
        gone: students whose submission brings the engine down.
        ran: the students whose submissions were run.
    """

    points: Mapping[str, Mapping[str, float] | None] = field(default_factory=dict)
    said: str = "As it should be."
    totals: Mapping[str, float] = field(default_factory=dict)
    seen: list[GradingSettings] = field(default_factory=list)
    gone: tuple[str, ...] = ()
    ran: list[str] = field(default_factory=list)

    def __call__(self, settings: GradingSettings) -> Scripted:
        """Be the executor of these settings."""
        self.seen.append(settings)
        return self

    def grade_one(self, submission: Submission) -> Execution:
        """Give the points."""
        self.ran.append(submission.student)
        points = self.points.get(submission.student, {})
        if points is None:
            return Execution(submission.student, "", 0.0, "OSError: no space left on device")
        if submission.student in self.gone:
            return Execution(
                submission.student, mark_ungradable(submission.notebook, "ClosedError"), 0.1, "ClosedError"
            )
        notebook = nbformat.reads(submission.notebook, as_version=4)
        for cell in notebook.cells:
            name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
            if name.startswith("test_"):
                worth = float(cell.metadata["nbgrader"]["points"])
                cell.outputs = [self._output(name.removeprefix("test_"), points, worth)]
        return Execution(submission.student, nbformat.writes(notebook), 0.1, "", "sandbox", ("one layer", "another"))

    def close(self) -> None:
        """Hold nothing."""

    def _output(self, name: str, points: Mapping[str, float], worth: float) -> Any:
        score, total = points.get(name, 1), self.totals.get(name, worth)
        verdict = Verdict(name, "03", (Finding("values", "Values.", total, True, self.said, earned=score),))
        data = {"text/plain": f"{score:g}", VERDICT_MIME: verdict.to_dict()}
        return new_output("execute_result", data, execution_count=1)


def without_workers(patch: pytest.MonkeyPatch, executor: Scripted) -> None:
    """Have commands ask an executor, and start no worker, which takes seconds."""
    patch.setattr("autograder.engine.workers.executor.WorkerPool.start", lambda *_: None)
    patch.setattr("autograder.grading.run._run_locally", lambda _, __, work: map(executor.grade_one, work))
