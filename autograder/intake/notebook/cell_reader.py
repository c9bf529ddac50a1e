"""Parse and compare the cells of one notebook, each text once and within a budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any

from autograder.static_analysis.cell_names import CellSummary, definitions_in_text, summarise_cell
from autograder.static_analysis.limited_parse import LONGEST

# Characters of one notebook for Python's parser: about a second, and more code than a year's homework.
BUDGET = 1_000_000
# Longer cells are not kept for the next notebook.
_SHORT = 5_000
# Texts with at least this similarity count as the same prompt.
ALIKE = 0.9
# Comparing two texts takes as many steps as the product of their lengths. After this many steps of a notebook, further cells are
# identified by name only.
STEPS = 5_000_000


@lru_cache(maxsize=2_048)
def _cached_outline(source: str, bodies: frozenset[str], *, parse: bool) -> CellSummary:
    """Return a cell's outline, cached: most cells are identical in all notebooks of a chapter."""
    return summarise_cell(source, bodies, parse=parse)


class CellReader:
    """Parses the cells of one notebook, each once and within a budget.

    Restoring a notebook needs the same cells again and again. A cache of a fixed size would drop all of them if a notebook had one cell
    more than the cache holds, and then every lookup would parse again.

    Args:
        bodies: the definitions that need a digest.
    """

    def __init__(self, bodies: frozenset[str] = frozenset()) -> None:
        self._bodies = bodies
        self._left = BUDGET
        self._outlines: dict[str, CellSummary] = {}
        self._mentioned: dict[str, frozenset[str]] = {}
        # How many different cells were not parsed, because they were too long or the budget was used up.
        self.skipped = 0

    def outline(self, source: str) -> CellSummary:
        """Return the outline of a cell: its top-level definitions, checks and bodies."""
        result = self._outlines.get(source)
        if result is None:
            read = _cached_outline if len(source) <= _SHORT else summarise_cell
            result = self._outlines[source] = read(source, self._bodies, parse=self.may_parse(source))
        return result

    def find_mentioned(self, text: str) -> frozenset[str]:
        """Return the names of the definitions in a text, as :func:`definitions_in_text` does."""
        if text not in self._mentioned:
            self._mentioned[text] = definitions_in_text(text)
        return self._mentioned[text]

    def may_parse(self, source: str) -> bool:
        """Subtract a cell's parsing cost from the budget, and return whether the budget was sufficient."""
        allowed = len(source) <= min(LONGEST, self._left)
        self._left -= len(source) if allowed else 0
        self.skipped += not allowed
        return allowed


class TextComparison:
    """Compares texts of one notebook: each text is normalised once, and slow comparisons have a budget."""

    def __init__(self) -> None:
        self._squeezed: dict[str, str] = {}
        self._steps = STEPS

    def is_same(self, a: str, b: str) -> bool:
        """Return whether two texts are equal apart from empty lines and trailing white space."""
        if a == b:
            return True
        if abs(len(a) - len(b)) > max(len(a), len(b)) // 2 + 100:
            return False
        # Most texts already differ in their first words.
        if a[:200].split(None, 2)[:2] != b[:200].split(None, 2)[:2]:
            return False
        return self._squeeze_text(a) == self._squeeze_text(b)

    def is_same_as_any(self, text: str, others: Sequence[str]) -> bool:
        """Return whether a text is the same as any of several others."""
        return any(self.is_same(text, other) for other in others)

    def _squeeze_text(self, text: str) -> str:
        if text not in self._squeezed:
            lines = (line.rstrip() for line in text.strip().splitlines() if line.strip())
            self._squeezed[text] = "\n".join(lines)
        return self._squeezed[text]

    def find_similar(self, cells: Sequence[Any], text: str) -> Any:
        """Return the first cell whose text differs from this one in a few words; None without one."""
        text_parts = text.split()
        for cell in cells:
            if self._steps <= 0:
                return None
            if len(cell["source"]) >= 2 * len(text):
                continue
            others = cell["source"].split()
            self._steps -= len(text_parts) + len(others)
            common = sum((Counter(text_parts) & Counter(others)).values())
            if 2 * common < ALIKE * (len(text_parts) + len(others)):
                continue
            self._steps -= len(text_parts) * len(others)
            if SequenceMatcher(None, text_parts, others, autojunk=False).ratio() >= ALIKE:
                return cell
        return None
