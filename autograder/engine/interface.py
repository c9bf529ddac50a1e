"""Define the interface of executors in plain data, without imports that slow down a worker's start.

An :class:`Executor` takes plain data and returns plain data, so that it may work in another process, in a sandbox, or on another machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class Submission:
    """A submission to run."""

    student: str  # the student's id; of one of several notebooks, the id, a slash and the file's name
    chapter: str
    notebook: str  # the sanitised notebook, as JSON
    files: Mapping[str, str] = field(default_factory=dict)  # the files beside the notebook, in base64, by relative path


@dataclass(frozen=True)
class Execution:
    """The result of running a submission."""

    student: str  # the submission's ``student``
    # the notebook with its outputs, verdicts and problems, as JSON; empty if the executor failed. If the submission may have caused the
    # failure, it is a notebook without points, which counts if the next run also fails.
    notebook: str
    seconds: float  # duration of the run in seconds
    # the reason why the submission was not graded, or empty. It is attributed to the grader, not to the student.
    failure: str = ""
    isolation: str = "none"  # the level of isolation of the run: ``"sandbox"``, ``"restricted"`` or ``"none"``
    layers: tuple[str, ...] = ()  # the layers of isolation that were active, by name
    # per exercise a description of what wrong answers returned (``autograder.engine.checker.behaviour``); not used for grades
    signatures: Mapping[str, Any] = field(default_factory=dict)


class Executor(Protocol):
    """Runs submissions, one at a time."""

    def grade_one(self, submission: Submission) -> Execution:
        """Run a submission. Submission code never makes it raise."""
        ...

    def close(self) -> None:
        """Release the executor's resources, and end a running submission."""
        ...
