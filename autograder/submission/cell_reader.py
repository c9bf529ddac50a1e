"""Read the cells of one notebook: each text once, and no more than a budget allows."""

from __future__ import annotations

from autograder.static_analysis.cell_names import LONGEST, Outline, definitions_in_text, outline

# What Python's parser may read of one notebook: about a second of it, and more code than a year's homework has.
BUDGET = 1_000_000


class CellReader:
    """Reads the cells of one notebook, each text once, and no more of them than a budget allows.

    Whoever looks through a notebook asks for the same cells again and again. A cache of a fixed size forgets all of them when a notebook
    has one cell more than it holds, and then every question costs another parse.

    Args:
        bodies: the definitions of which a digest is wanted.
        budget: how many characters Python's parser may read; what comes after them is read line by line.

    Attributes:
        skipped: how many different cells were not parsed for want of budget, or because they are too long.
    """

    def __init__(self, bodies: frozenset[str] = frozenset(), budget: int = BUDGET) -> None:
        self._bodies = bodies
        self._left = budget
        self._outlines: dict[str, Outline] = {}
        self._mentioned: dict[str, frozenset[str]] = {}
        self.skipped = 0

    def outline(self, source: str) -> Outline:
        """Return what a cell does at its top level."""
        result = self._outlines.get(source)
        if result is None:
            result = self._outlines[source] = outline(source, self._bodies, parse=self.may_parse(source))
        return result

    def mentioned(self, text: str) -> frozenset[str]:
        """Return what :func:`definitions_in_text` returns."""
        if text not in self._mentioned:
            self._mentioned[text] = definitions_in_text(text)
        return self._mentioned[text]

    def may_parse(self, source: str) -> bool:
        """Take the cost of parsing a cell out of the budget, and return whether there was enough of it."""
        allowed = len(source) <= min(LONGEST, self._left)
        self._left -= len(source) if allowed else 0
        self.skipped += not allowed
        return allowed
