"""Hide words of a text, and watch the question and the answer that span corruption makes of it.

`span_explorer` makes a figure to play with (see `tfcourse.lessons.explorers.base`), with a table of the drawn masks where no script runs.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tfcourse.lessons.explorers.base import Explorer, folded, readable, table
from tfcourse.t5 import random_span_mask

__all__ = ["SpanExplorer", "span_explorer"]

MOST_WORDS = 24
"""More of them would not fit a phone."""

SENTINELS = tuple(f"<{number}>" for number in range(13))
"""One more than a text of `MOST_WORDS` can have spans; `<0>` is short for T5's `<extra_id_0>`."""


@dataclass(frozen=True, repr=False)
class SpanExplorer(Explorer):
    """A text and masks that were drawn for it, ready to be shown; made by `span_explorer`."""

    element = "span-explorer"

    words: tuple[str, ...]
    drawn: tuple[tuple[bool, ...], ...]
    """Masks, True at hidden words."""

    def data(self) -> dict[str, Any]:
        """The words, the sentinels, and the numbers of the hidden words of each mask."""
        hidden = [[place for place, gone in enumerate(mask) if gone] for mask in self.drawn]
        return {"words": self.words, "sentinels": SENTINELS, "drawn": hidden}

    def corrupted(self, mask: Sequence[bool]) -> tuple[list[str], list[str]]:
        """Source and target, in words."""
        source: list[str] = []
        target: list[str] = []
        used = 0
        for place, (word, gone) in enumerate(zip(self.words, mask, strict=True)):
            if gone and not (place and mask[place - 1]):
                source.append(SENTINELS[used])
                target.append(SENTINELS[used])
                used += 1
            (target if gone else source).append(word)
        return source, [*target, SENTINELS[used]]

    def plain(self) -> str:
        """A row for each mask."""
        rows = [
            (f"{number}", tuple(" ".join(part) for part in self.corrupted(mask)))
            for number, mask in enumerate(self.drawn, start=1)
        ]
        shown = table(
            f"Hidden: {self.caption}", ("source", "target"), rows, cell=lambda text: f"<td>{html.escape(text)}</td>"
        )
        return folded("Source and target of each mask", shown, unfolded=True)

    def summary(self) -> str:
        """How many words and masks there are."""
        return f"{len(self.words)} words, hidden in {len(self.drawn)} ways"


def span_explorer(
    words: Sequence[str],
    *,
    caption: str,
    masks: int = 4,
    noise_density: float = 0.3,
    mean_span_length: float = 2.0,
    seed: int = 0,
) -> SpanExplorer:
    """Show the source and the target that span corruption makes of a text, for drawn masks and for any that the reader clicks.

    Leave the result as the last value of a notebook cell. With the course's script the reader hides and shows words; without it there is
    a table of the drawn masks.

    Args:
        words: The text, word by word; 2 to 24 of them.
        caption: One sentence that describes the figure.
        masks: How many masks are drawn, at least 1.
        noise_density: As in `random_span_mask`.
        mean_span_length: As in `random_span_mask`.
        seed: Of the draws.

    Returns:
        An object that notebooks display.

    Raises:
        ValueError: If there are fewer than 2 words or more than 24, no mask, or the caption is blank, and as in `random_span_mask`.
    """
    if not 2 <= len(words) <= MOST_WORDS:
        raise ValueError(f"expected 2 to {MOST_WORDS} words, got {len(words)}")
    if masks < 1:
        raise ValueError(f"expected at least 1 mask, got {masks}")
    draws = torch.Generator().manual_seed(seed)
    drawn = [
        random_span_mask(len(words), draws, noise_density=noise_density, mean_span_length=mean_span_length)
        for _ in range(masks)
    ]
    return SpanExplorer(caption, tuple(map(readable, words)), tuple(tuple(mask.tolist()) for mask in drawn))
