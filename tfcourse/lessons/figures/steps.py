"""Networks over time: one cell per step, with what it reads and what it writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from tfcourse.lessons.figures.boxes import box, chip
from tfcourse.lessons.figures.drawing import SMALL, Drawing
from tfcourse.lessons.figures.geometry import Rect
from tfcourse.lessons.figures.lines import arrow


def draw_steps(
    drawing: Drawing,
    xs: Sequence[float],
    y: float,
    *,
    inputs: Mapping[int, str],
    outputs: Mapping[int, str],
    side: tuple[float, float] = (44, 34),
    rise: float = 58,
    label: str = "cell",
) -> list[Rect]:
    """Draw a network over time: a cell per step, words that go in from below and words that come out above.

    Args:
        drawing: to draw on.
        xs: the middle of each step.
        y: the middle of the cells.
        inputs: words that are read, by step.
        outputs: words that are written, by step.
        side: width and height of a cell.
        rise: from the middle of a cell to that of a word.
        label: what a cell says.

    Returns:
        The places of the cells.
    """
    cells = []
    for i, x in enumerate(xs):
        where = Rect(x - side[0] / 2, y - side[1] / 2, *side)
        cells.append(box(drawing, label, where, tone="key", size=SMALL))
        if i in inputs:
            arrow(drawing, chip(drawing, inputs[i], (x, y + rise), size=SMALL, height=24).top, where.bottom)
        if i in outputs:
            word = chip(drawing, outputs[i], (x, y - rise), size=SMALL, height=24, tone="query")
            arrow(drawing, where.top, word.bottom)
    for before, after in pairwise(cells):
        arrow(drawing, before.right, after.left)
    return cells
