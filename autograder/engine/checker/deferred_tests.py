"""Test cells whose hidden tests are deferred until all cells have run, and their state until then."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from nbformat import NotebookNode

from autograder.checking.request import Observation
from autograder.engine.cell_outputs import Outputs
from autograder.engine.checker.remote_objects import RemoteObject, reference_of
from autograder.engine.checker.rpc_client import LimitError, StudentClient
from autograder.engine.checker.student_process import StudentProcess
from autograder.engine.settings import GradingSettings
from autograder.intake.notebook.test_cells import is_test
from autograder.static_analysis.cell_names import checked_names, only_calls_check


@dataclass
class VisibleAnswers:
    """The answers of a student's process to the visible tests of a test cell."""

    outputs: Outputs  # collects the cell's outputs
    names: dict[str, Any] = field(default_factory=dict)  # the exercises' names, with proxies for their values
    # the answers, by number of the object and packed request
    answers: dict[Any, Observation] = field(default_factory=dict)
    broken: LimitError | None = None  # the exceeded limit, if any

    def refer_to(self, names: dict[str, Any]) -> None:
        """Make the proxies refer to the same objects in a replacement process."""
        numbers = {
            reference_of(self.names[name]).number: reference_of(proxy).number
            for name, proxy in names.items()
            if isinstance(proxy, RemoteObject) and isinstance(self.names.get(name), RemoteObject)
        }
        self.answers = {
            (numbers.get(number, number), packed): answer for (number, packed), answer in self.answers.items()
        }
        self.names = names


@dataclass
class WaitingProcess:
    """A process that waits for its hidden tests, with its answers to the visible tests."""

    forbidden: tuple[str, ...]  # the functions that it refuses
    child: StudentProcess | None  # the process; None if it has ended
    conversation: StudentClient | None  # the client of this process
    visible: dict[int, VisibleAnswers]  # its answers to the visible tests, by test cell
    start_again: bool = False  # whether a new process replaces it, because it used too much memory


def is_deferred(cell: NotebookNode) -> bool:
    """Return whether a test cell only calls checks, so that its hidden tests can be deferred until all cells have run."""
    return is_test(cell) and bool(checked_names(cell.source)) and only_calls_check(cell.source)


def forbidden_by(cell: NotebookNode) -> tuple[str, ...]:
    """Return the names of the functions that the exercises in a test cell forbid, in alphabetical order."""
    from autograder.checks import exercises

    registry = exercises()
    checked = [registry[name] for name in checked_names(cell.source) if name in registry]
    return tuple(sorted({function for exercise in checked for function in exercise.forbidden}))


def collect_visible_answers(name: str, candidate: RemoteObject, settings: GradingSettings) -> None:
    """Run the visible tests of an exercise on a student's function or class; its client keeps the answers."""
    from autograder.checking.decision import collect_answers
    from autograder.checks import exercises

    if (exercise := exercises().get(name)) is not None:
        collect_answers(
            exercise.sheet(hidden=False, seed=settings.seed or 0, device=settings.device), candidate.__subject__()
        )
