"""Watch a decoder write, token by token, with and without a cache of keys and values.

`cache_explorer` makes a figure to play with (see `tfcourse.lessons.explorers.base`), with a table of all steps where no script runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tfcourse.lessons.explorers.base import Explorer, folded, readable, table

__all__ = ["CacheExplorer", "CacheStep", "cache_explorer"]

MOST_TOKENS = 24
"""More of them would not fit a phone."""

_BYTES = 4
"""Of a number in float32."""


@dataclass(frozen=True)
class CacheStep:
    """The cost of the logits after a token, if the model has already read the earlier tokens.

    Attributes:
        recomputed: multiplications without a cache: all tokens so far go through the model.
        cached: multiplications with a cache: the newest token alone does.
        kept: bytes of the keys and values of all tokens so far.
    """

    recomputed: int
    cached: int
    kept: int

    @classmethod
    def of(cls, length: int, d_model: int, n_layers: int) -> CacheStep:
        """Count for `length` tokens.

        In each layer a token costs 12 D² multiplications: 4 D² in the projections of its attention and 8 D² in its feed-forward network.
        Each key that its query attends to costs 2 D more: D for the score, and D for the value.
        """
        token, pair = 12 * d_model**2, 2 * d_model
        pairs = length * (length + 1) // 2
        return cls(
            recomputed=n_layers * (length * token + pairs * pair),
            cached=n_layers * (token + length * pair),
            kept=2 * n_layers * length * d_model * _BYTES,
        )


@dataclass(frozen=True, repr=False)
class CacheExplorer(Explorer):
    """A text and what each of its tokens costs, ready to be shown; made by `cache_explorer`."""

    element = "cache-explorer"

    words: tuple[str, ...]
    steps: tuple[CacheStep, ...]
    """One for each word."""

    def data(self) -> dict[str, Any]:
        """The words, and for each step the multiplications of both ways and the bytes of the cache."""
        return {
            "words": self.words,
            "steps": [[step.recomputed, step.cached, step.kept] for step in self.steps],
        }

    def plain(self) -> str:
        """A row for each token."""
        rows = [
            (f"{place + 1}: {word}", (step.recomputed, step.cached, step.kept))
            for place, (word, step) in enumerate(zip(self.words, self.steps, strict=True))
        ]
        columns = ("multiplications without a cache", "with a cache", "bytes of the cache")
        counts = table(f"Costs: {self.caption}", columns, rows, cell=lambda number: f"<td>{number:,.0f}</td>")
        return folded("What each token costs", counts, unfolded=True)

    def summary(self) -> str:
        """How many tokens there are, and what they cost."""
        whole = sum(step.recomputed for step in self.steps) / sum(step.cached for step in self.steps)
        return f"{len(self.words)} tokens, {whole:.1f} times the multiplications without a cache"


def cache_explorer(words: Sequence[str], *, d_model: int, n_layers: int, caption: str) -> CacheExplorer:
    """Show what a decoder computes for each token that it writes, with and without a cache of keys and values.

    Leave the result as the last value of a notebook cell. With the course's script the reader steps from token to token; without it there
    is a table. Multiplications are counted in layers of four D × D projections and a feed-forward network of width 4 D.

    Args:
        words: The text, token by token; 2 to 24 of them.
        d_model: Width D of the model.
        n_layers: Its layers.
        caption: One sentence that describes the figure.

    Returns:
        An object that notebooks display.

    Raises:
        ValueError: If there are fewer than 2 words or more than 24, a size is not positive, or the caption is blank.
    """
    if not 2 <= len(words) <= MOST_TOKENS:
        raise ValueError(f"expected 2 to {MOST_TOKENS} words, got {len(words)}")
    if d_model < 1 or n_layers < 1:
        raise ValueError(f"expected a width and layers of at least 1, got d_model={d_model} and n_layers={n_layers}")
    steps = tuple(CacheStep.of(length, d_model, n_layers) for length in range(1, len(words) + 1))
    return CacheExplorer(caption, tuple(map(readable, words)), steps)
