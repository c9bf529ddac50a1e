"""Turn the dial of a soft dictionary: from the average of all pages to the hard choice of one.

`lookup_explorer` makes a figure to play with (see `tfcourse.lessons.explorers.base`), with a table for some settings of the dial where no
script runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tfcourse.lessons.explorers.base import Explorer, folded, readable, required_text, table, weight_cell

__all__ = ["LookupExplorer", "lookup_explorer"]


@dataclass(frozen=True, repr=False)
class LookupExplorer(Explorer):
    """A soft lookup whose query is multiplied by a number c, ready to be shown; made by `lookup_explorer`."""

    element = "lookup-explorer"

    names: tuple[str, ...]
    """What the S pages are called."""
    scores: tuple[float, ...]
    """The score of each page at c = 1."""
    values: tuple[float, ...]
    """The number on each page."""
    answer: str
    """What the weighted sum of the values is."""
    unit: str
    """The unit of the values; empty for plain numbers."""
    largest: float
    """Where the dial ends; it begins at 0."""

    def data(self) -> dict[str, Any]:
        """Pages with their scores and values, and how far the dial goes."""
        return {
            "names": self.names,
            "scores": self.scores,
            "values": self.values,
            "answer": self.answer,
            "unit": self.unit,
            "largest": self.largest,
        }

    def plain(self) -> str:
        """A table with a row for each of four settings of the dial."""
        rows = []
        for c in (0.0, 0.5, 1.0, self.largest):
            weights = torch.softmax(c * torch.tensor(self.scores, dtype=torch.float64), dim=0)  # (S,)
            result = float(weights @ torch.tensor(self.values, dtype=torch.float64))
            rows.append((f"c = {c:g}: {self._told(result)}", weights.tolist()))
        weights_table = table(f"Weights: {self.caption}", self.names, rows, cell=weight_cell)
        return "<p>The scores are multiplied by c before the softmax. Each row is one c.</p>" + folded(
            "Weights and answers", weights_table, unfolded=True
        )

    def summary(self) -> str:
        """Which pages there are, and how far the dial goes."""
        return f"{', '.join(self.names)}; c from 0 to {self.largest:g}"

    def _told(self, result: float) -> str:
        return f"{self.answer} {result:.2f} {self.unit}".rstrip()


def lookup_explorer(
    names: Sequence[str],
    scores: Tensor,
    values: Tensor,
    *,
    answer: str,
    unit: str = "",
    largest: float = 4.0,
    caption: str,
) -> LookupExplorer:
    """Show a soft lookup whose scores are multiplied by c: how the pages share the weight, and what the answer becomes.

    Leave the result as the last value of a notebook cell. With the course's script the reader turns a dial for c; without it there is
    a table.

    Args:
        names: What the S pages are called.
        scores: Query times key for each page at c = 1, (S,).
        values: The number on each page, (S,).
        answer: What the weighted sum of the values is, such as "Forecast".
        unit: The unit of the values; empty for plain numbers.
        largest: Where the dial ends; it begins at 0.
        caption: One sentence that describes the figure.

    Returns:
        An object that notebooks display.

    Raises:
        ValueError: If there are no pages, a number of them differs, a number is not finite, the dial does not end above 1, or a text is
            blank.
    """
    shapes = (tuple(scores.shape), tuple(values.shape))
    if not names or shapes != ((len(names),), (len(names),)):
        raise ValueError(
            f"expected a score and a value for each of {len(names)} pages, at least one, got shapes {shapes}"
        )
    asked, held = (tuple(vector.detach().to("cpu", torch.float64).tolist()) for vector in (scores, values))
    if not all(map(math.isfinite, (*asked, *held, largest))) or largest <= 1:
        raise ValueError(
            f"scores and values are finite and the dial ends above 1, got {asked}, {held}, largest={largest}"
        )
    pages = tuple(required_text(name, "a name for each page") for name in names)
    what = required_text(answer, "a word for its answer")
    return LookupExplorer(caption, pages, asked, held, what, readable(unit), float(largest))
