"""Figures that read on a light and on a dark page, and that a screen reader can speak.

Plots of measurements are matplotlib figures drawn inside `style`. Drawings of machines are a `Drawing` with parts from
`boxes`, `matrices` and `lines`; the drawings in the lessons are in `scenes`. `show` shows both kinds.
"""

from __future__ import annotations

from typing import Any

from tfcourse.lessons.figures.colours import weight_colour
from tfcourse.lessons.figures.drawing import Drawing
from tfcourse.lessons.figures.plots import INK, PALETTE, style, to_html, to_svg

__all__ = ["INK", "PALETTE", "Drawing", "show", "style", "to_html", "to_svg", "weight_colour"]


def show(figure: Any, *, alt: str) -> None:
    """Show a figure as the output of a notebook cell; a matplotlib figure is closed afterwards.

    Args:
        figure: a `Drawing`, or a matplotlib figure that was drawn inside `style`.
        alt: what the figure shows, for whoever cannot see it. One or two sentences, not the caption again.

    Raises:
        ValueError: if `alt` is blank, or if a matplotlib figure was not drawn inside `style`.
    """
    from IPython.display import display

    if isinstance(figure, Drawing):
        markup = figure.to_html(alt=alt)
    else:
        import matplotlib.pyplot as plt

        markup = to_html(figure, alt=alt)
        # Left open, the inline backend would show it a second time as a PNG without a description.
        plt.close(figure)
    display({"text/html": markup, "text/plain": alt}, raw=True)
