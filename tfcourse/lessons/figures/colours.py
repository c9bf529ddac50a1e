"""The course's one colour map: the more weight, the stronger the indigo on the ground of the page.

The indigo is partly transparent, so the same figure works on a white and on a near-black page, and the text of the
page stays readable on every shade of it.
"""

from __future__ import annotations

import math
from typing import Any

#: The indigo of the site's keys, between the shades that `custom.css` uses on light and on dark pages.
INDIGO: tuple[int, int, int] = (84, 104, 234)

#: How opaque a weight of 1 is. With more, dark text on a light page or light text on a dark one falls below 4.5:1.
STRONGEST = 0.8


def weight_colour(weight: float) -> str:
    """Return the colour of an attention weight, or of any other share between 0 and 1.

    Args:
        weight: from 0, which is transparent, to 1, the strongest indigo. Rounding errors beyond are cut off.

    Returns:
        A CSS colour, `rgb(84 104 234 / 0.4)`. Text in the page's colour keeps a contrast of 4.5:1 on it.

    Raises:
        ValueError: if the weight is not a number, or outside of 0 to 1.
    """
    if not -1e-4 <= weight <= 1 + 1e-4:  # also refuses NaN
        raise ValueError(f"a weight lies between 0 and 1, not {weight}")
    red, green, blue = INDIGO
    return f"rgb({red} {green} {blue} / {_opacity(weight):.4g})"


def weight_colormap() -> Any:
    """Return the matplotlib colour map with the colours of `weight_colour`; NaN is transparent."""
    from matplotlib.colors import LinearSegmentedColormap

    rgb = tuple(channel / 255 for channel in INDIGO)
    ends = [(*rgb, _opacity(0.0)), (*rgb, _opacity(1.0))]
    return LinearSegmentedColormap.from_list("tfcourse", ends, N=1024).with_extremes(bad=(0, 0, 0, 0))


def _opacity(weight: float) -> float:
    return math.floor(1e4 * STRONGEST * min(max(weight, 0.0), 1.0) + 0.5) / 1e4
