"""Watch a gradient travel back through time, for several cells and several settings of one dial.

`gradient_explorer` writes plain HTML, a table for each cell, with the same numbers as JSON beside it. Where the page loads
`gradient-explorer.js` (the course's site does) the tables become an interactive figure; everywhere else they are readable as they are.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from tfcourse.explorers.base import readable, script_json

__all__ = ["GradientExplorer", "gradient_explorer"]

# On a logarithmic axis three significant digits are more than the eye can tell apart.
_DIGITS = 3
# More lines could not be told apart by colour, marker and dash.
_MOST_CELLS = 4


@dataclass(frozen=True)
class GradientExplorer:
    """Gradient norms at every step, for some cells and settings, ready to be shown; made by `gradient_explorer`."""

    cells: tuple[str, ...]
    """What is compared, such as "plain RNN" and "LSTM"."""
    settings: tuple[float, ...]
    """The positions of the dial."""
    setting_name: str
    """What the dial sets."""
    norms: tuple[tuple[tuple[float, ...], ...], ...]
    """Cell, setting, step: rounded norms."""
    caption: str
    """One sentence that says what the figure shows."""
    start: tuple[int, int, int]
    """Cell, setting and step that are shown first."""

    def to_json(self) -> str:
        """The figure's data as one line of JSON that is safe inside an HTML `<script>` element.

        Returns:
            The same bytes on every run; `<`, `>` and `&` as escapes, so that no name can end the element or open one.
        """
        cell, setting, step = self.start
        data = {
            "version": 1,
            "caption": self.caption,
            "cells": self.cells,
            "settings": self.settings,
            "settingName": self.setting_name,
            "start": {"cell": cell, "setting": setting, "step": step},
            "norms": self.norms,
        }
        return script_json(data)

    def _repr_html_(self) -> str:
        caption = html.escape(self.caption)
        return (
            f'<gradient-explorer style="display:block"><script type="application/json">{self.to_json()}</script>'
            f'<figure class="ge-plain" role="group" aria-label="{caption}"><figcaption>{caption}</figcaption>'
            f"<p>Norm of the gradient with respect to the state at each step. Rows: {html.escape(self.setting_name)}. "
            "Columns: the step.</p>"
            f"{self._tables()}</figure></gradient-explorer>"
        )

    def __repr__(self) -> str:
        return (
            f"GradientExplorer: {', '.join(self.cells)}; {len(self.settings)} settings of {self.setting_name}; "
            f"{len(self.norms[0][0])} steps. {self.caption}"
        )

    def _tables(self) -> str:
        """Every cell as a plain table, the first one to be shown unfolded."""
        parts = []
        for index, (name, rows) in enumerate(zip(self.cells, self.norms, strict=True)):
            unfolded = " open" if index == self.start[0] else ""
            title = html.escape(name)
            parts.append(f"<details{unfolded}><summary>{title}</summary>{self._table(title, rows)}</details>")
        return "".join(parts)

    def _table(self, title: str, rows: tuple[tuple[float, ...], ...]) -> str:
        header = "".join(f'<th scope="col">{step + 1}</th>' for step in range(len(rows[0])))
        body = "".join(
            f'<tr><th scope="row">{setting:g}</th>{"".join(f"<td>{norm:.2g}</td>" for norm in row)}</tr>'
            for setting, row in zip(self.settings, rows, strict=True)
        )
        return (
            f'<div class="ge-scroll" role="region" aria-label="{title}" tabindex="0" style="overflow-x:auto"><table>'
            f"<thead><tr><td></td>{header}</tr></thead><tbody>{body}</tbody></table></div>"
        )


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
    at a step; without it there is one table a cell.

    Args:
        norms: For each cell, by its name, the norms of the gradient, (settings, T): a row a setting, a column a step,
            earliest first.
        settings: The positions of the dial, ascending.
        setting_name: What the dial sets.
        caption: One sentence that says what the figure shows.
        start: Cell, setting and step to show first, counted from 0; None means the first cell, the middle setting and the first step.

    Returns:
        An object that notebooks display.

    Raises:
        ValueError: If shapes and numbers of settings do not fit, a norm is negative or not finite, a text is blank, the settings do
            not ascend, there is no cell or there are more than four, or `start` points outside.
    """
    if not caption.strip() or not setting_name.strip():
        raise ValueError("a figure needs a caption, and its dial a name: pass caption='...' and setting_name='...'")
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
    return GradientExplorer(names, positions, readable(setting_name), rounded, readable(caption), start)


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
