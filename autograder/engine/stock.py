"""What a worker keeps in stock for the checkers that it forks: questions, the reference's answers, and those of the known mistakes."""

from __future__ import annotations

from collections.abc import Iterable

from nbformat import NotebookNode

from autograder.checking.sheet import Sheet
from autograder.engine.subject import packed_request
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
        self._learned: set[str] = set()

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
        return bool(missing)

    def learn(self, failed: Iterable[str]) -> None:
        """Work out what the known mistakes answer, for exercises that somebody has failed: the next one to fail does not wait for it."""
        for name in sorted(set(failed) - self._learned):
            self._learned.add(name)
            for sheet in self._sheets.get(name, []):
                for index in range(len(sheet.misconceptions)):
                    sheet.failed_by(index)
