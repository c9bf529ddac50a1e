"""Cache test cases and the answers of the reference and the known mistakes, for the checkers that a worker forks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import Any

from nbformat import NotebookNode

from autograder.checking.request import Observation
from autograder.checking.sheet import Sheet
from autograder.engine.checker.remote_subject import pack_request, register_answer
from autograder.engine.transport.observations import observation_from_dict, observation_to_dict
from autograder.engine.transport.serialization import SerializationError, pack, unpack
from autograder.intake.notebook.test_cells import is_test
from autograder.static_analysis.cell_names import checked_names


def list_chapter_exercises(chapter: str) -> list[str]:
    """Return the names of a chapter's exercises; this imports all checks."""
    from autograder.checks import exercises

    return [name for name, exercise in exercises().items() if exercise.chapter == chapter]


def list_forbidden_functions(chapter: str) -> set[frozenset[str]]:
    """Return the sets of functions that a chapter's exercises forbid; each set has its own process."""
    from autograder.checks import exercises

    every = (frozenset(one.forbidden) for one in exercises().values() if one.chapter == chapter)
    return {names for names in every if names}


class AnswerCache:
    """A cache of test sheets and their answers.

    Args:
        seed: the seed of the hidden tests.
        device: the device for the checks' tensors.
    """

    def __init__(self, seed: int, device: str) -> None:
        self._seed, self._device = seed, device
        self._sheets: dict[str, list[Sheet]] = {}
        self._learned: dict[tuple[str, int], int] = {}

    def fill_chapter(self, chapter: str) -> bool:
        """Load the test cases of a chapter's exercises; return whether any were missing."""
        missing = self.filter_missing(list_chapter_exercises(chapter))
        self.fill(missing)
        return bool(missing)

    def missing_exercises(self, notebook: NotebookNode) -> list[str]:
        """Return the exercises that a notebook's test cells check and whose test cases are not loaded yet."""
        from autograder.checks import exercises

        checked = {name for cell in notebook.cells if is_test(cell) for name in checked_names(cell.source)}
        return self.filter_missing(checked & exercises().keys())

    def filter_missing(self, names: Iterable[str]) -> list[str]:
        """Return the exercises among ``names`` whose test cases are not loaded yet, in alphabetical order."""
        return sorted(set(names) - self._sheets.keys())

    def fill(self, names: Sequence[str]) -> None:
        """Load the test cases of exercises."""
        from autograder.checks import exercises

        registry = exercises()
        for name in names:
            seed, device = self._seed, self._device
            # The visible sheet comes first: the hidden sheet builds on its answers.
            sheets = [
                registry[name].sheet(hidden=False, seed=seed, device=device),
                registry[name].sheet(hidden=True, seed=seed, device=device),
            ]
            self._sheets[name] = sheets
            for sheet in sheets:
                for probe in (*sheet.rules, *(probe for section in sheet.sections for probe in section.probes)):
                    for request in probe.requests:
                        pack_request(request)
                for answer in chain.from_iterable(
                    observations for section in sheet.sections for observations in section.expected
                ):
                    register_answer(answer)

    def new_answers(self) -> bytes:
        """Return the known mistakes' answers since the last call of this method or of :meth:`merge`, serialised."""
        answers: dict[str, list[Any]] = {}
        for name, sheets in self._sheets.items():
            lists = [self._unsent_answers(sheet, self._learned.get((name, i), 0)) for i, sheet in enumerate(sheets)]
            if any(lists):
                answers[name] = lists
                self._learned |= {(name, i): len(sheet.computed_answers) for i, sheet in enumerate(sheets)}
        return pack(answers) if answers else b""

    def _unsent_answers(self, sheet: Sheet, count: int) -> list[list[Any]]:
        # Without new answers no object is touched: counting a reference would copy the memory page that the fork shares.
        new = islice(sheet.computed_answers.items(), count, None) if len(sheet.computed_answers) > count else ()
        return [[*key, _pack_observations(observations)] for key, observations in new]

    def merge(self, serialized: bytes) -> None:
        """Add answers of known mistakes that a forked process has computed, so that this process need not.

        Args:
            serialized: what :meth:`new_answers` returned there.
        """
        for name, lists in unpack(serialized, trusted=True).items():
            for i, (sheet, answers) in enumerate(zip(self._sheets[name], lists, strict=True)):
                sheet.add_answers(
                    {
                        tuple(key): [observation_from_dict(unpack(observation)) for observation in packed]
                        for *key, packed in answers
                    }
                )
                self._learned[name, i] = len(sheet.computed_answers)


def _pack_observations(observations: Sequence[Observation]) -> list[bytes]:
    """Serialise observations; return an empty list if one cannot be sent, so that the receiver recomputes them."""
    try:
        return [pack(observation_to_dict(observation)) for observation in observations]
    except SerializationError:
        return []
