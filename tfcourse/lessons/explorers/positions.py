"""Look at position encodings: the matrix of each, and the dot products of its rows.

`position_explorer` makes a figure to play with (see `tfcourse.lessons.explorers.base`), with two tables for each encoding where no script
runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tfcourse.lessons.explorers.base import Explorer, folded, required_text, table

__all__ = ["PositionExplorer", "position_explorer"]

# What a page shows of an encoding; four decimals keep every dot product that it computes true to two.
_DIGITS = 4


@dataclass(frozen=True, repr=False)
class PositionExplorer(Explorer):
    """Position encodings and the dot products of their rows, ready to be shown; made by `position_explorer`."""

    element = "position-explorer"

    encodings: tuple[tuple[str, tuple[tuple[float, ...], ...]], ...]
    """Name and rows of each encoding: one row of D rounded numbers for each position."""
    start: tuple[int, int]
    """The two positions that are compared first."""

    def data(self) -> dict[str, Any]:
        """The matrices, and the positions that are compared first."""
        first, second = self.start
        return {
            "start": {"first": first, "second": second},
            "encodings": [{"name": name, "rows": rows} for name, rows in self.encodings],
        }

    def plain(self) -> str:
        """Two tables for each encoding: its dot products by distance, and its matrix."""
        parts = [
            "<p>How alike are two positions that lie so far apart? The smallest and the largest dot product of all such pairs.</p>"
        ]
        for index, (name, rows) in enumerate(self.encodings):
            columns = [str(column) for column in range(len(rows[0]))]
            matrix = table(f"Matrix of {name}", columns, ((str(n), row) for n, row in enumerate(rows)))
            parts.append(folded(f"{name}: dot products", _by_distance(name, rows), unfolded=not index))
            parts.append(folded(f"{name}: the matrix", matrix))
        return "".join(parts)

    def summary(self) -> str:
        """Which encodings there are, and how large they are."""
        rows = self.encodings[0][1]
        names = ", ".join(name for name, _ in self.encodings)
        return f"{names}; {len(rows)} positions of width {len(rows[0])}"


def _by_distance(name: str, rows: tuple[tuple[float, ...], ...]) -> str:
    """The smallest and the largest dot product of all pairs of positions that lie so far apart."""
    matrix = torch.tensor(rows, dtype=torch.float64)  # (n, D)
    products = matrix @ matrix.T  # (n, n)
    pairs = [products.diagonal(distance) for distance in range(len(rows))]
    body = ((str(distance), [float(of.min()), float(of.max())]) for distance, of in enumerate(pairs))
    return table(f"Dot products of {name}", ["smallest", "largest"], body, corner="distance")


def position_explorer(
    encodings: Mapping[str, Tensor], *, caption: str, start: tuple[int, int] = (0, 0)
) -> PositionExplorer:
    """Show position encodings: the matrix, one row for each position, and the dot product of any two of its rows.

    Leave the result as the last value of a notebook cell. With the course's script the reader chooses an encoding and two positions,
    and sees whether the dot product depends on their distance alone; without it there are tables.

    Args:
        encodings: By name, matrices (n, D) of n positions of width D; n is the same in all of them.
        caption: One sentence that describes the figure.
        start: The two positions to compare first, counted from 0.

    Returns:
        An object that notebooks display.

    Raises:
        ValueError: If there is no encoding, one is not a finite matrix of as many positions as the others, the caption is blank or
            `start` points outside.
    """
    shapes = {name: tuple(matrix.shape) for name, matrix in encodings.items()}
    counts = {shape[0] for shape in shapes.values() if len(shape) == 2 and min(shape) > 0}
    if len(counts) != 1 or any(len(shape) != 2 or min(shape) < 1 for shape in shapes.values()):
        raise ValueError(f"expected matrices (n, D) with the same n for every encoding, got {shapes}")
    rounded = []
    for name, matrix in encodings.items():
        values = matrix.detach().to("cpu", torch.float64)  # (n, D)
        if not bool(values.isfinite().all()):
            raise ValueError(f"the encoding {name!r} has entries that are not finite")
        rows = tuple(tuple(round(value, _DIGITS) + 0.0 for value in row) for row in values.tolist())
        rounded.append((required_text(name, "a name for each encoding"), rows))
    n = counts.pop()
    if not all(0 <= position < n for position in start):
        raise ValueError(f"start={start} points outside of {n} positions")
    return PositionExplorer(caption, tuple(rounded), start)
