"""Look at alignments: which source words a target word comes from, pair by pair, and for several aligners side by side.

`alignment_explorer` makes a figure to play with (see `tfcourse.lessons.explorers.base`) that has a figure of
`tfcourse.lessons.explorers.heads` inside for each pair. The reader chooses a pair, an aligner and a word; where no script runs, there is
a table for each pair and aligner.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tfcourse.lessons.explorers.base import Explorer, readable
from tfcourse.lessons.explorers.heads import HeadExplorer, head_explorer

__all__ = ["AlignedPair", "AlignmentExplorer", "alignment_explorer", "count_crossings"]


def count_crossings(weights: Tensor) -> int:
    """Count how often the strongest links of an alignment cross.

    Two target words t < t' cross if t takes its strongest source word from further right than t' does: drawn between two lines of
    words, their links intersect. A monotone alignment has no crossing, a reversed one of n words has n (n - 1) / 2.

    Args:
        weights: Weights of one pair, (T, S): a row for each target word. Of equal weights the first counts; a row of zeros is linked
            to nothing and crosses nothing.

    Returns:
        The number of pairs of target words whose links cross.

    Raises:
        ValueError: If `weights` is not a matrix.
    """
    if weights.ndim != 2:
        raise ValueError(f"expected the weights of one pair, (T, S), got {tuple(weights.shape)}")
    linked = weights.detach().to("cpu")[weights.detach().ne(0).any(dim=-1).to("cpu")]  # (rows that are not empty, S)
    places = [row.index(max(row)) for row in linked.tolist()]
    return sum(earlier > later for t, later in enumerate(places) for earlier in places[:t])


@dataclass(frozen=True)
class AlignedPair:
    """A sentence and its translation, with the weights that link their words."""

    source: Sequence[str]
    """The S words that are looked at."""
    target: Sequence[str]
    """The T words that look."""
    weights: Mapping[str, Tensor]
    """For each aligner, by its name, a matrix of weights, (T, S)."""


@dataclass(frozen=True, repr=False)
class AlignmentExplorer(Explorer):
    """Alignments of some pairs, ready to be shown; made by `alignment_explorer`."""

    element = "alignment-explorer"

    titles: tuple[str, ...]
    """What the reader chooses a pair by."""
    figures: tuple[HeadExplorer, ...]
    """A figure for each pair, with a separate head for every aligner."""
    crossings: tuple[tuple[int, ...], ...]
    """For each pair and aligner, how many pairs of links cross."""

    def data(self) -> dict[str, Any]:
        """The titles of the pairs, and a sentence about each; their figures have separate data."""
        return {"titles": self.titles, "crossings": [self._crossed(index) for index in range(len(self.titles))]}

    def plain(self) -> str:
        """A section for each pair, with its figure."""
        return "".join(
            f'<section class="ae-pair" aria-label="{html.escape(title)}"><p class="ae-title">{html.escape(title)}</p>'
            f'<p class="ae-crossings">{html.escape(self._crossed(index))}</p>{figure._repr_html_()}</section>'
            for index, (title, figure) in enumerate(zip(self.titles, self.figures, strict=True))
        )

    def summary(self) -> str:
        """How many pairs there are, and which aligners."""
        pairs = "1 pair" if len(self.titles) == 1 else f"{len(self.titles)} pairs"
        return f"{pairs} of sentences, aligned by {', '.join(self.figures[0].names)}"

    def _crossed(self, index: int) -> str:
        """How many links of a pair cross, in words."""
        names = self.figures[index].names
        told = (f"{name}: {number or 'none'}" for name, number in zip(names, self.crossings[index], strict=True))
        return f"Pairs of links that cross – {'; '.join(told)}."


def alignment_explorer(pairs: Sequence[AlignedPair], *, caption: str, start: int | None = None) -> AlignmentExplorer:
    """Show alignments of pairs of sentences: which source words each target word is linked to, by one or several aligners.

    Leave the result as the last value of a notebook cell. With the course's scripts the reader chooses pair, aligner and word;
    without them there is one table for each pair and aligner.

    Args:
        pairs: The pairs to choose from; all have the same aligners in the same order.
        caption: One sentence that describes the figure.
        start: The target word that is shown first, counted from 0, or the last one of a target that is shorter; None means the first one.

    Returns:
        An object that notebooks display.

    Raises:
        ValueError: If there is no pair, aligners differ from pair to pair, the caption is blank, a pair's weights do not fit its
            words, or `start` is negative.
    """
    aligners = [tuple(pair.weights) for pair in pairs]
    if not aligners or not aligners[0] or any(names != aligners[0] for names in aligners):
        raise ValueError(f"every pair needs the same aligners, in the same order and at least one, got {aligners}")
    if start is not None and start < 0:
        raise ValueError(f"target words are counted from 0, got start={start}")
    figures, titles, crossings = [], [], []
    for index, pair in enumerate(pairs):
        shapes = {name: tuple(weights.shape) for name, weights in pair.weights.items()}
        if set(shapes.values()) != {(len(pair.target), len(pair.source))}:
            raise ValueError(
                f"pair {index} has {len(pair.target)} target and {len(pair.source)} source words, and weights of shapes {shapes}"
            )
        title = readable(f"{' '.join(pair.source)} \N{RIGHTWARDS ARROW} {' '.join(pair.target)}")
        figures.append(
            head_explorer(
                pair.source,
                [_stacked(pair.weights)],
                query_tokens=pair.target,
                caption=title,
                start=(0, 0, min(start or 0, len(pair.target) - 1)),
                names=aligners[0],
            )
        )
        titles.append(title)
        crossings.append(tuple(count_crossings(weights) for weights in pair.weights.values()))
    return AlignmentExplorer(caption, tuple(titles), tuple(figures), tuple(crossings))


def _stacked(weights: Mapping[str, Tensor]) -> Tensor:
    """The aligners of a pair as heads of a layer, (H, T, S), in one dtype and place."""
    return torch.stack([one.detach().to("cpu", torch.float64) for one in weights.values()])  # (H, T, S)
