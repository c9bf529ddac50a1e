"""Rotate a query and a key by their positions, pair by pair, and watch their score: the rotary dial.

`dial_explorer` makes a figure to play with (see `tfcourse.lessons.explorers.base`), with tables of frequencies and scores where no script
runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tfcourse.lessons.explorers.base import Explorer, folded, table
from tfcourse.rotary import ntk_theta, rotary_frequencies, rotary_score, scale_frequencies_llama3

__all__ = ["DialExplorer", "dial_explorer"]

MOST_PAIRS = 16
"""With more pairs, the steps of the slider become too small."""


@dataclass(frozen=True)
class Clock:
    """Frequencies, and the factor of the positions."""

    theta: float
    way: str
    frequencies: tuple[float, ...]
    scale: float


@dataclass(frozen=True, repr=False)
class DialExplorer(Explorer):
    """A query, a key and the frequencies to choose from; made by `dial_explorer`."""

    element = "dial-explorer"

    query: tuple[float, ...]
    key: tuple[float, ...]
    clocks: tuple[Clock, ...]
    """All methods for the first base, then all methods for the next."""
    trained: int
    longest: int
    start: tuple[int, int]
    """First positions of the query and of the key."""

    def data(self) -> dict[str, Any]:
        """The vectors, the frequencies by base and method, and the first values of the sliders."""
        return {
            "query": self.query,
            "key": self.key,
            "bases": [
                {
                    "theta": theta,
                    "ways": [
                        {"name": clock.way, "frequencies": clock.frequencies, "scale": clock.scale}
                        for clock in self.clocks
                        if clock.theta == theta
                    ],
                }
                for theta in self.thetas
            ],
            "trained": self.trained,
            "longest": self.longest,
            "start": {"m": self.start[0], "n": self.start[1]},
        }

    @property
    def thetas(self) -> tuple[float, ...]:
        """The bases, in order."""
        return tuple(dict.fromkeys(clock.theta for clock in self.clocks))

    def score(self, clock: Clock, offset: int, *, interleaved: bool = False) -> float:
        """The score of the query and a key `offset` positions before it."""
        q, k = (torch.tensor(row, dtype=torch.float64) for row in (self.query, self.key))
        if not interleaved:  # column j and column j + Dh / 2 are a pair: bring them side by side
            q, k = (row.view(2, -1).T.reshape(-1) for row in (q, k))
        frequencies = torch.tensor(clock.frequencies, dtype=torch.float64)
        return float(rotary_score(q, k, torch.tensor(offset * clock.scale, dtype=torch.float64), frequencies))

    def plain(self) -> str:
        """For the first base: the turns of each pair and the score by distance, for each method."""
        clocks = [clock for clock in self.clocks if clock.theta == self.thetas[0]]
        names = [clock.way for clock in clocks]
        pairs = [
            (str(pair), [clock.frequencies[pair] * clock.scale * self.trained / (2 * math.pi) for clock in clocks])
            for pair in range(len(self.query) // 2)
        ]
        offsets = sorted({0, 1, 2, 4, self.trained // 2, self.trained, self.longest})
        scores = [(str(offset), [self.score(clock, offset) for clock in clocks]) for offset in offsets]
        turns = table(f"Turns within {self.trained} positions", names, pairs, corner="pair")
        by_distance = table("Scores by m \u2212 n, half-split", names, scores, corner="m \u2212 n")
        return folded(f"Turns of each pair within {self.trained} positions", turns, unfolded=True) + folded(
            "The score by distance", by_distance
        )

    def summary(self) -> str:
        """The numbers of pairs and of sets of frequencies."""
        return f"{len(self.query) // 2} pairs of columns, {len(self.clocks)} sets of frequencies, positions 0 to {self.longest}"


def dial_explorer(
    query: Tensor,
    key: Tensor,
    *,
    caption: str,
    thetas: Sequence[float] = (10_000.0, 500_000.0),
    trained: int = 64,
    longest: int = 256,
    start: tuple[int, int] = (20, 8),
) -> DialExplorer:
    """Show a query and a key rotated by their positions: one pair as two hands, and the score of all pairs by distance.

    Leave the result as the last value of a notebook cell. With the course's script the reader moves the query and the key and chooses a
    pair, a base, a pairing, and a method that extends the context window. Without it there are tables.

    Args:
        query: The query before rotation, (Dh,); Dh is even, from 4 to 32.
        key: The key before rotation, (Dh,).
        caption: One sentence that describes the figure.
        thetas: Bases to choose from, at least one, pairwise different.
        trained: Training length.
        longest: The last position that the sliders reach, beyond `trained`.
        start: First positions of the query and of the key.

    Returns:
        An object that notebooks display.

    Raises:
        ValueError: If the vectors are not finite or not of one even width from 4 to 32. If `thetas` is empty, repeats a base or has one
            that is not above 1. If `longest` is not beyond `trained`, `start` is outside, or the caption is blank.
    """
    if query.ndim != 1 or query.shape != key.shape or len(query) % 2 or not 4 <= len(query) <= 2 * MOST_PAIRS:
        raise ValueError(
            f"expected two vectors of one even width from 4 to {2 * MOST_PAIRS}, got {tuple(query.shape)} and {tuple(key.shape)}"
        )
    if not torch.isfinite(torch.stack([query, key])).all():
        raise ValueError("the query or the key is not finite")
    if not thetas or len(set(thetas)) < len(thetas) or min(thetas) <= 1:
        raise ValueError(f"expected different bases above 1, got {list(thetas)}")
    if not 1 <= trained < longest:
        raise ValueError(f"expected a last position beyond the trained ones, got trained={trained}, longest={longest}")
    if not all(0 <= place <= longest for place in start):
        raise ValueError(f"start {start} is outside of 0 \u2026 {longest}")
    width, factor = len(query), longest / trained
    clocks = []
    for theta in map(float, thetas):
        own = rotary_frequencies(width, theta, "cpu")
        ways = {
            "as trained": (own, 1.0),
            f"positions \u00d7 {1 / factor:.3g}": (own, 1 / factor),
            "larger base": (rotary_frequencies(width, ntk_theta(theta, factor, width), "cpu"), 1.0),
            "Llama 3.1": (scale_frequencies_llama3(own, factor=factor, original_length=trained), 1.0),
        }
        clocks += [Clock(theta, way, _rounded(hands), scale) for way, (hands, scale) in ways.items()]
    return DialExplorer(caption, _rounded(query), _rounded(key), tuple(clocks), trained, longest, start)


def _rounded(numbers: Tensor) -> tuple[float, ...]:
    """To nine digits, which are the same on every machine."""
    return tuple(float(f"{number:.9g}") for number in numbers.tolist())
