"""Choose a kind of attention and a position on an image, and see on which positions it depends.

`reach_explorer` makes a figure to play with (see `tfcourse.lessons.explorers.base`), with a table of costs where no script runs.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tfcourse.lessons.explorers.base import Explorer, folded, required_text, table

__all__ = ["WAYS", "ReachExplorer", "layers_until_all_met", "pairs", "reach", "reach_explorer"]

WAYS = ("all to all", "windows", "shifted windows", "neighbours")
WINDOW = 4
"""Side of a window, in places."""
FAR = 3
"""How far neighbours look to each side: 7 x 7 places."""
WIDTH = 768
"""The width D for which operations are counted."""
SHOWN = 256
"""Pixels of the picture's side on the page."""
MOST_LAYERS = 12


@dataclass(frozen=True, repr=False)
class ReachExplorer(Explorer):
    """A picture and the sizes of patches to choose from, ready to be shown; made by `reach_explorer`."""

    element = "reach-explorer"

    picture: str
    """The picture as a data URI."""
    alt: str
    sides: tuple[int, ...]
    """Sides of a patch, in pixels."""

    def data(self) -> dict[str, Any]:
        """The picture, and the numbers that the rules need."""
        numbers = {"size": SHOWN, "window": WINDOW, "far": FAR, "width": WIDTH, "mostLayers": MOST_LAYERS}
        return {"picture": self.picture, "alt": self.alt, "sides": self.sides, "ways": WAYS, **numbers}

    def plain(self) -> str:
        """For each way and side: tokens, pairs of a layer, and layers until everything has met everything."""
        rows = []
        for way in WAYS:
            for side in self.sides:
                n = SHOWN // side
                met = layers_until_all_met(way, n)
                counts = (f"{n * n:,}", f"{pairs(way, n):,}", str(met) if met else "never")
                rows.append((f"{way}, patches of {side}", counts))
        columns = ("tokens", "pairs in a layer", "layers until every patch depends on every other")
        label = "What each kind of attention costs, and how far it reaches"
        return folded(label, table(label, columns, rows, cell=lambda text: f"<td>{text}</td>"), unfolded=True)

    def summary(self) -> str:
        """How many ways and sizes there are."""
        return f"a picture of {SHOWN} pixels, {len(self.sides)} sizes of patches, {len(WAYS)} ways to look"


def reach(way: str, n: int, layer: int) -> NDArray[np.bool_]:
    """Which of `n` places in a line look at which, in one layer; in a grid, both its line and its column have to allow it.

    Args:
        way: One of `WAYS`.
        n: Places.
        layer: Number of the layer, counted from 0; shifted windows are shifted in every second one.

    Returns:
        True if the position of the row attends to the position of the column, (n, n).
    """
    place = np.arange(n)
    if way == "all to all":
        return np.ones((n, n), dtype=bool)
    if way == "neighbours":
        found: NDArray[np.bool_] = np.abs(place[:, None] - place) <= FAR
        return found
    window = min(WINDOW, n)
    shift = window // 2 if way == "shifted windows" and layer % 2 and window < n else 0
    group = (place - shift) // window
    same: NDArray[np.bool_] = group[:, None] == group
    return same


def pairs(way: str, n: int) -> int:
    """The number of pairs for which the first layer computes scores, on a grid of `n` x `n` positions."""
    return int(reach(way, n, 0).sum()) ** 2


def layers_until_all_met(way: str, n: int) -> int | None:
    """Layers until every position of the grid depends on every other, or None if that never happens."""
    heard = np.eye(n, dtype=bool)
    for layer in range(2 * n):
        if heard.all():
            return layer
        heard = (reach(way, n, layer).astype(int) @ heard.astype(int)) > 0
    return None


def reach_explorer(
    picture: NDArray[np.uint8], *, caption: str, alt: str, sides: Sequence[int] = (8, 16, 32, 64)
) -> ReachExplorer:
    """Show a picture under a grid of patches, and whom a place reaches: with all to all, windows, shifted windows, and neighbours.

    Leave the result as the last value of a notebook cell. With the course's script the reader chooses a way to look, a size and a place,
    and adds layers; without it there is a table.

    Args:
        picture: Pixels from 0 to 255, (side, side, 3); it is shown with 256 pixels to a side.
        caption: One sentence that describes the figure.
        alt: What is on the picture, for whoever cannot see it.
        sides: Sides of a patch to choose from, in pixels; they divide 256, and leave at least 2 x 2 patches.

    Returns:
        An object that notebooks display.

    Raises:
        ValueError: If the picture is not a square of bytes in three colours, a side does not fit or is twice there, or a text is blank.
    """
    if picture.ndim != 3 or picture.shape[0] != picture.shape[1] or picture.shape[2] != 3 or picture.dtype != np.uint8:
        raise ValueError(f"expected a square of bytes, (side, side, 3), got {picture.shape} of {picture.dtype}")
    if (
        not sides
        or len(set(sides)) < len(sides)
        or any(side < 4 or SHOWN % side or side > SHOWN // 2 for side in sides)
    ):
        raise ValueError(f"expected different sides from 4 to {SHOWN // 2} that divide {SHOWN}, got {list(sides)}")
    small = Image.fromarray(picture).resize((SHOWN, SHOWN), Image.Resampling.LANCZOS)
    file = io.BytesIO()
    small.save(file, "JPEG", quality=80)
    uri = "data:image/jpeg;base64," + base64.b64encode(file.getvalue()).decode()
    return ReachExplorer(caption, uri, required_text(alt, "a text that says what is on the picture"), tuple(sides))
