"""Compare the texts of a notebook's cells with the texts of its chapter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any

# Texts with at least this similarity count as the same prompt.
ALIKE = 0.9
# Comparing two texts takes as many steps as the product of their lengths. After this many steps of a notebook, further cells are
# identified by name only.
STEPS = 5_000_000


class TextComparison:
    """Compares texts of one notebook: each text is normalised once, and slow comparisons have a budget."""

    def __init__(self) -> None:
        self._squeezed: dict[str, str] = {}
        self._steps = STEPS

    def same(self, a: str, b: str) -> bool:
        """Return whether two texts are equal apart from empty lines and white space at the ends of lines."""
        if a == b:
            return True
        if abs(len(a) - len(b)) > max(len(a), len(b)) // 2 + 100:
            return False
        # Most texts already differ in their first words.
        if a[:200].split(None, 2)[:2] != b[:200].split(None, 2)[:2]:
            return False
        return self._squeeze(a) == self._squeeze(b)

    def _squeeze(self, text: str) -> str:
        if text not in self._squeezed:
            lines = (line.rstrip() for line in text.strip().splitlines() if line.strip())
            self._squeezed[text] = "\n".join(lines)
        return self._squeezed[text]

    def first_alike(self, cells: Sequence[Any], text: str) -> Any:
        """Return the first cell whose text differs from this one in a few words, or None."""
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
