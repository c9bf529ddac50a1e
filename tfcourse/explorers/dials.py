"""Turn a query and a key by their places, and see that their score depends on the difference alone.

`dial_explorer` makes a figure to play with (see `tfcourse.explorers.base`), with a table of the wavelengths where no script runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tfcourse.explorers.base import Explorer, folded, table
from tfcourse.rotary import ntk_theta, rotary_frequencies, scale_frequencies_llama3

__all__ = ["DialExplorer", "dial_explorer"]

MOST_PAIRS = 16
"""More hands could not be chosen on a phone."""


@dataclass(frozen=True, repr=False)
class DialExplorer(Explorer):
    """Frequencies of several ways to read a longer text, ready to be shown; made by `dial_explorer`."""

    element = "dial-explorer"

    trained: int
    """How many places training has shown."""
    longest: int
    """The last place that can be chosen."""
    ways: tuple[tuple[str, tuple[float, ...]], ...]
    """Names, and what each pair turns by from place to place, in radians."""

    def data(self) -> dict[str, Any]:
        """All numbers; frequencies to nine digits."""
        ways = [{"name": name, "turns": [float(f"{turn:.9g}") for turn in turns]} for name, turns in self.ways]
        return {"trained": self.trained, "longest": self.longest, "ways": ways}

    def score(self, way: int, offset: int) -> float:
        """The mean over all pairs of the cosine of the angle between query and key."""
        turns = self.ways[way][1]
        return sum(math.cos(offset * turn) for turn in turns) / len(turns)

    def plain(self) -> str:
        """A row for each way, a column for each pair: places to a full turn."""
        rows = [(name, tuple(2 * math.pi / turn for turn in turns)) for name, turns in self.ways]
        pairs = [f"pair {number}" for number in range(1, len(self.ways[0][1]) + 1)]
        shown = table(
            f"Places to a full turn: {self.caption}", pairs, rows, cell=lambda places: f"<td>{places:.1f}</td>"
        )
        return folded("Places to a full turn of each pair", shown, unfolded=True)

    def summary(self) -> str:
        """How many pairs and ways there are."""
        return f"{len(self.ways[0][1])} pairs, {len(self.ways)} ways to turn them"


def dial_explorer(*, caption: str, d_head: int = 16, theta: float = 10_000.0, trained: int = 64) -> DialExplorer:
    """Show what a query and a key are turned to at any two places, for rotations as trained and stretched by four.

    Leave the result as the last value of a notebook cell. With the course's script the reader moves both places and chooses a pair and
    a way to turn; without it there is a table of the wavelengths.

    Args:
        caption: One sentence that says what the figure shows.
        d_head: Width of a head; an even number from 4 to 32.
        theta: The base as trained.
        trained: Places that training has shown, at least 2; the figure reaches four times as far.

    Returns:
        An object that notebooks display.

    Raises:
        ValueError: If the width is odd or out of its range, if fewer than 2 places were trained, or the caption is blank.
    """
    if d_head % 2 or not 4 <= d_head <= 2 * MOST_PAIRS:
        raise ValueError(f"expected an even width from 4 to {2 * MOST_PAIRS}, got {d_head}")
    if trained < 2:
        raise ValueError(f"expected at least 2 trained places, got {trained}")
    plain = rotary_frequencies(d_head, theta)
    ways = (
        ("as trained", plain),
        ("places × 0.25", plain / 4),
        ("another base", rotary_frequencies(d_head, ntk_theta(theta, 4.0, d_head))),
        ("Llama 3.1", scale_frequencies_llama3(plain, factor=4.0, original_length=trained)),
    )
    return DialExplorer(caption, trained, 4 * trained, tuple((name, tuple(turns.tolist())) for name, turns in ways))
