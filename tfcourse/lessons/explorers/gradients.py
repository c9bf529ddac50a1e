"""Watch a gradient travel back through time, for several cells and several settings of one dial.

`gradient_explorer` makes a figure to play with (see `tfcourse.lessons.explorers.base`), with a table for each cell where no script runs.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from tfcourse.lessons.explorers.base import Explorer, folded, readable, required_text, table

__all__ = ["GradientExplorer", "gradient_explorer"]

# On a logarithmic axis three significant digits are more than the eye can tell apart.
_DIGITS = 3
# More lines could not be told apart by colour, marker and dash.
_MOST_CELLS = 4


@dataclass(frozen=True, repr=False)
class GradientExplorer(Explorer):
    """Gradient norms at every step, for some cells and settings, ready to be shown; made by `gradient_explorer`."""

    element = "gradient-explorer"

    cells: tuple[str, ...]
    """What is compared, such as "plain RNN" and "LSTM"."""
    settings: tuple[float, ...]
    """The positions of the dial."""
    setting_name: str
    """What the dial sets."""
    norms: tuple[tuple[tuple[float, ...], ...], ...]
    """Cell, setting, step: rounded norms."""
    start: tuple[int, int, int]
    """Cell, setting and step that are shown first."""

    def data(self) -> dict[str, Any]:
        """Cells, settings, norms, and what is shown first."""
        cell, setting, step = self.start
        return {
            "cells": self.cells,
            "settings": self.settings,
            "settingName": self.setting_name,
            "start": {"cell": cell, "setting": setting, "step": step},
            "norms": self.norms,
        }

    def plain(self) -> str:
        """Every cell as a plain table, the first one to be shown unfolded."""
        about = (
            "<p>Norm of the gradient with respect to the state at each step. Rows: "
            f"{html.escape(self.setting_name)}. Columns: the step.</p>"
        )
        steps = [str(step + 1) for step in range(len(self.norms[0][0]))]
        settings = [f"{setting:g}" for setting in self.settings]
        return about + "".join(
            folded(
                name,
                table(name, steps, zip(settings, rows, strict=True), cell=_norm_cell),
                unfolded=index == self.start[0],
            )
            for index, (name, rows) in enumerate(zip(self.cells, self.norms, strict=True))
        )

    def summary(self) -> str:
        """Which cells there are, and how many settings and steps."""
        settings = f"{len(self.settings)} settings of {self.setting_name}"
        return f"{', '.join(self.cells)}; {settings}; {len(self.norms[0][0])} steps"


def _norm_cell(norm: float) -> str:
    return f"<td>{norm:.2g}</td>"


def gradient_explorer(
    norms: Mapping[str, Tensor],
    settings: Sequence[float],
    *,
    setting_name: str,
    caption: str,
    start: tuple[int, int, int] | None = None,
) -> GradientExplorer:
    """Show how large a gradient is at every step on its way back, on a logarithmic axis.

    Leave the result as the last value of a notebook cell. With the course's script the reader turns a dial, chooses a cell and points
    at a step; without it there is one table per cell.

    Args:
        norms: For each cell, by its name, the norms of the gradient, (settings, T): one row per setting and one column per step, earliest
            first.
        settings: The positions of the dial, ascending.
        setting_name: What the dial sets.
        caption: One sentence that describes the figure.
        start: Cell, setting and step to show first, counted from 0; None means the first cell, the middle setting and the first step.

    Returns:
        An object that notebooks display.

    Raises:
        ValueError: If shapes do not fit the number of settings, or a norm is negative or not finite. If a text is blank, the settings do
            not ascend, there are no cells or more than four, or `start` points outside.
    """
    dial = required_text(setting_name, "a name for its dial")
    positions = tuple(float(setting) for setting in settings)
    if not positions or any(later <= earlier for earlier, later in pairwise(positions)):
        raise ValueError(f"the settings have to ascend, got {positions}")
    if not 1 <= len(norms) <= _MOST_CELLS:
        raise ValueError(f"from one to {_MOST_CELLS} cells can be told apart, got {len(norms)}: {list(norms)}")
    rounded = tuple(_rounded(cell, name, len(positions)) for name, cell in norms.items())
    lengths = {len(cell[0]) for cell in rounded}
    if len(lengths) > 1:
        raise ValueError(f"all cells need the same number of steps, got {sorted(lengths)}")
    start = (0, len(positions) // 2, 0) if start is None else start
    cell, setting, step = start
    if not (0 <= cell < len(rounded) and 0 <= setting < len(positions) and 0 <= step < len(rounded[0][0])):
        raise ValueError(
            f"start={start} points outside: cells {len(rounded)}, settings {len(positions)}, steps {len(rounded[0][0])}"
        )
    names = tuple(map(readable, norms))
    return GradientExplorer(caption, names, positions, dial, rounded, start)


def _rounded(cell: Tensor, name: str, settings: int) -> tuple[tuple[float, ...], ...]:
    """Check one cell's norms, (settings, T), and turn them into rounded numbers."""
    if cell.ndim != 2 or cell.shape[0] != settings or cell.shape[1] < 2:
        raise ValueError(
            f"expected norms of shape ({settings}, T) for {settings} settings and at least two steps, got {tuple(cell.shape)} for {name!r}"
        )
    values = cell.detach().to("cpu", torch.float64)  # (settings, T)
    if not bool((values.isfinite() & (values >= 0)).all()):
        raise ValueError(f"norms are finite and not negative; {name!r} has {values.min()} to {values.max()}")
    return tuple(tuple(float(f"{norm:.{_DIGITS}g}") for norm in row) for row in values.tolist())
