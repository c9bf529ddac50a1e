"""What a worker keeps in stock for the checkers that it forks: questions, the reference's answers, and those of the known mistakes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, islice

from nbformat import NotebookNode

from autograder.checking.sheet import Place, Sheet
from autograder.engine.subject import expect, packed_request
from autograder.grading.definitions import checked_names
from autograder.grading.graded_cells import is_test
from autograder.grading.settings import GradingSettings


class Stock:
    """Question sheets that have been made and asked for.

    Args:
        settings: the seed of the hidden questions, and the device.
    """

    def __init__(self, settings: GradingSettings) -> None:
        self._settings = settings
        self._sheets: dict[str, list[Sheet]] = {}
        self._learned: dict[tuple[str, int], int] = {}

    def lay_in(self, notebook: NotebookNode) -> bool:
        """Make the questions that a notebook's test cells ask, unless they are there; return whether any had to be made."""
        from autograder.checks import exercises

        asked = {name for cell in notebook.cells if is_test(cell) for name in checked_names(cell.source)}
        known = exercises()
        missing = sorted(asked & known.keys() - self._sheets.keys())
        for name in missing:
            seed, device = self._settings.seed or 0, self._settings.device
            sheets = [
                known[name].sheet(hidden=True, seed=seed, device=device),
                known[name].sheet(hidden=False, seed=0, device=device),
            ]
            self._sheets[name] = sheets
            for sheet in sheets:
                for probe in (*sheet.rules, *(probe for section in sheet.sections for probe in section.probes)):
                    for request in probe.requests:
                        packed_request(request)
                for answer in chain.from_iterable(given for section in sheet.sections for given in section.expected):
                    expect(answer)
        return bool(missing)

    def news(self) -> dict[str, list[list[Place]]]:
        """Return, for each exercise, which questions of its sheets known mistakes have been asked since :meth:`learn` was called."""
        return {
            name: [
                list(islice(sheet.answered, self._learned.get((name, i), 0), None)) for i, sheet in enumerate(sheets)
            ]
            for name, sheets in self._sheets.items()
        }

    def learn(self, news: Mapping[str, Sequence[Sequence[Place]]]) -> None:
        """Ask known mistakes what a checker has asked them: the next one need not.

        Args:
            news: what :meth:`news` returned in the checker.
        """
        for name, asked in news.items():
            for i, (sheet, places) in enumerate(zip(self._sheets[name], asked, strict=True)):
                sheet.work_out((mistake, section, probe) for mistake, section, probe in places)
                self._learned[name, i] = len(sheet.answered)
