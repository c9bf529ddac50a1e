"""What a worker keeps in stock for the checkers that it forks: questions, the reference's answers, and those of the known mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice
from typing import Any

from nbformat import NotebookNode

from autograder.checking.request import Observation
from autograder.checking.sheet import Sheet
from autograder.engine.checker.remote_subject import expect, packed_request, read
from autograder.engine.settings import GradingSettings
from autograder.engine.student.rpc_server import told
from autograder.engine.transport.serialization import SerializationError, pack, unpack
from autograder.static_analysis.cell_names import checked_names
from autograder.submission.test_cells import is_test


class AnswerCache:
    """Question sheets that have been made and asked for.

    Args:
        settings: the seed of the hidden questions, and the device.
    """

    def __init__(self, settings: GradingSettings) -> None:
        self._settings = settings
        self._sheets: dict[str, list[Sheet]] = {}
        self._learned: dict[tuple[str, int], int] = {}
        # About exercises for which there are no questions yet.
        self._early: dict[str, list[Any]] = {}

    def lacks(self, notebook: NotebookNode) -> list[str]:
        """Return the exercises that a notebook's test cells ask about, and for which there are no questions yet."""
        from autograder.checks import exercises

        asked = {name for cell in notebook.cells if is_test(cell) for name in checked_names(cell.source)}
        return sorted(asked & exercises().keys() - self._sheets.keys())

    def lay_in(self, names: Sequence[str]) -> None:
        """Make the questions about exercises."""
        from autograder.checks import exercises

        known = exercises()
        for name in names:
            seed, device = self._settings.seed or 0, self._settings.device
            # The plain one first: what is learned about the other builds on it.
            sheets = [
                known[name].sheet(hidden=False, seed=seed, device=device),
                known[name].sheet(hidden=True, seed=seed, device=device),
            ]
            self._sheets[name] = sheets
            for sheet in sheets:
                for probe in (*sheet.rules, *(probe for section in sheet.sections for probe in section.probes)):
                    for request in probe.requests:
                        packed_request(request)
                for answer in chain.from_iterable(given for section in sheet.sections for given in section.expected):
                    expect(answer)
            for lists in self._early.pop(name, ()):
                self._learn(name, lists)

    def news(self) -> bytes:
        """Return what known mistakes have answered since this was called, or :meth:`learn`; empty if it is nothing."""
        answers: dict[str, list[Any]] = {}
        for name, sheets in self._sheets.items():
            told = [self._told(sheet, self._learned.get((name, i), 0)) for i, sheet in enumerate(sheets)]
            if any(told):
                answers[name] = told
                self._learned |= {(name, i): len(sheet.answered) for i, sheet in enumerate(sheets)}
        return pack(answers) if answers else b""

    def _told(self, sheet: Sheet, known: int) -> list[list[Any]]:
        # Where nothing is new nothing is looked at: to count an object's references is to write to its page.
        new = islice(sheet.answered.items(), known, None) if len(sheet.answered) > known else ()
        return [[*place, _packed(given)] for place, given in new]

    def learn(self, news: bytes) -> None:
        """Take over what known mistakes have answered in another process: here nobody need ask them.

        Args:
            news: what :meth:`news` returned there.
        """
        for name, lists in unpack(news, trusted=True).items():
            if name in self._sheets:
                self._learn(name, lists)
            else:
                self._early.setdefault(name, []).append(lists)

    def _learn(self, name: str, lists: Sequence[Any]) -> None:
        for i, (sheet, answers) in enumerate(zip(self._sheets[name], lists, strict=True)):
            sheet.learn({tuple(place): [read(unpack(seen)) for seen in packed] for *place, packed in answers})
            self._learned[name, i] = len(sheet.answered)


def _packed(given: Sequence[Observation]) -> list[bytes]:
    """Return observations as bytes; none if one cannot be sent, and has to be made again."""
    try:
        return [pack(told(seen)) for seen in given]
    except SerializationError:
        return []
