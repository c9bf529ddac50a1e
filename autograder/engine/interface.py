"""The seam between what is graded and how it is run: plain data, and nothing heavy to import when a worker process starts.

An :class:`Executor` takes plain data and returns plain data, so that it may work in another process, in a sandbox, or on another machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class Submission:
    """What is to be run.

    Attributes:
        student: the student's id; of one of several notebooks, the id, a slash and the file's name.
        chapter: the chapter.
        notebook: the sanitised notebook, as JSON.
        files: the files that lie beside it, in base64, by their relative path.
    """

    student: str
    chapter: str
    notebook: str
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Execution:
    """What came of running it.

    Attributes:
        student: whose it is, as the submission had it.
        notebook: the notebook with its outputs, verdicts and problems, as JSON; empty if the executor failed. After a failure that the
            submission may have brought about, it is the one without points that counts if the next run fails in the same way.
        seconds: how long it took.
        failure: why it was not graded, if it was not. It is then the grader that failed, as far as can be known, and not the student.
        isolation: how well the submission was shut in: ``"sandbox"``, ``"restricted"`` or ``"none"``.
        layers: the layers of isolation that were active, by name.
        signatures: what wrong answers returned, by exercise, as ``autograder.engine.checker.behaviour`` describes it. It decides no grade.
    """

    student: str
    notebook: str
    seconds: float
    failure: str = ""
    isolation: str = "none"
    layers: tuple[str, ...] = ()
    signatures: Mapping[str, Any] = field(default_factory=dict)


class Executor(Protocol):
    """Anything that runs submissions, one at a time."""

    def grade_one(self, submission: Submission) -> Execution:
        """Run a submission. Never raises for what the submission does."""
        ...

    def close(self) -> None:
        """Give back what it holds; a submission that is being run comes to an end."""
        ...
