"""Parse the cells of one notebook, each text once and within a budget."""

from __future__ import annotations

from functools import lru_cache

from autograder.static_analysis.cell_names import Outline, definitions_in_text, outline
from autograder.static_analysis.limited_parse import LONGEST

# Characters of one notebook for Python's parser: about a second, and more code than a year's homework.
BUDGET = 1_000_000
# Longer cells are not kept for the next notebook.
_SHORT = 5_000


@lru_cache(maxsize=2_048)
def _outline_of_short_cell(source: str, bodies: frozenset[str], *, parse: bool) -> Outline:
    """Return a cell's outline, cached: most cells (tests, empty answers) are identical in all notebooks of a chapter."""
    return outline(source, bodies, parse=parse)


class CellReader:
    """Parses the cells of one notebook, each text once and within a budget.

    Restoring a notebook needs the same cells again and again. A cache of a fixed size would drop all of them if a notebook had one cell
    more than the cache holds, and then every lookup would parse again.

    Args:
        bodies: the definitions that need a digest.
        budget: how many characters Python's parser may read; later cells are searched line by line.

    Attributes:
        skipped: how many different cells were not parsed, because they were too long or the budget was used up.
    """

    def __init__(self, bodies: frozenset[str] = frozenset(), budget: int = BUDGET) -> None:
        self._bodies = bodies
        self._left = budget
        self._outlines: dict[str, Outline] = {}
        self._mentioned: dict[str, frozenset[str]] = {}
        self.skipped = 0

    def outline(self, source: str) -> Outline:
        """Return the outline of a cell: what it does at its top level."""
        result = self._outlines.get(source)
        if result is None:
            read = _outline_of_short_cell if len(source) <= _SHORT else outline
            result = self._outlines[source] = read(source, self._bodies, parse=self.may_parse(source))
        return result

    def mentioned(self, text: str) -> frozenset[str]:
        """Return the definitions in a text, as :func:`definitions_in_text` does."""
        if text not in self._mentioned:
            self._mentioned[text] = definitions_in_text(text)
        return self._mentioned[text]

    def may_parse(self, source: str) -> bool:
        """Subtract a cell's parsing cost from the budget, and return whether the budget was sufficient."""
        allowed = len(source) <= min(LONGEST, self._left)
        self._left -= len(source) if allowed else 0
        self.skipped += not allowed
        return allowed
