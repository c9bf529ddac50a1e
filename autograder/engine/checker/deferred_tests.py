"""Define the state of test cells that check an exercise, between their visible and their hidden tests."""

from __future__ import annotations

from dataclasses import dataclass, field

from nbformat import NotebookNode

from autograder.checking.exercise import Exercise
from autograder.checking.request import Observation
from autograder.engine.cell_outputs import Outputs
from autograder.engine.checker.rpc_client import LimitError, StudentClient
from autograder.engine.checker.student_process import StudentProcess
from autograder.static_analysis.cell_names import find_only_check


@dataclass
class CheckCell:
    """A test cell that checks an exercise, and a student's answers to its visible tests."""

    exercise: Exercise
    hidden: bool  # whether it checks with hidden tests
    outputs: Outputs  # collects what the student's code prints during the visible tests
    defined: bool = False  # whether the exercise's name is bound in the student's process
    answers: dict[bytes, Observation] = field(default_factory=dict)  # the answers, by serialized request
    broken: LimitError | None = None  # the exceeded limit, if any

    @property
    def forbidden(self) -> tuple[str, ...]:
        """The names of the functions that the exercise forbids, in alphabetical order."""
        return tuple(sorted(self.exercise.forbidden))


@dataclass
class WaitingProcess:
    """A process that waits for its hidden tests, with its answers to the visible tests."""

    forbidden: tuple[str, ...]  # the functions that it refuses
    child: StudentProcess | None  # the process; None if it has ended
    conversation: StudentClient | None  # the client of this process
    visible: dict[int, CheckCell]  # its test cells, by index
    start_again: bool = False  # whether a new process replaces it, because it used too much memory


def parse_check_cell(cell: NotebookNode, kept_output: int) -> CheckCell | None:
    """Return the CheckCell of a test cell that only checks a course exercise; None for a lecturer's own tests."""
    from autograder.checks import exercises

    name, hidden = find_only_check(cell.source) or ("", False)
    exercise = exercises().get(name)
    return CheckCell(exercise, hidden, Outputs(kept_output)) if exercise is not None else None
