"""Count the bytes of a Llama and its caches, and time its next token on a GPU: the cost calculator.

`cost_explorer` makes a figure to play with (see `tfcourse.lessons.explorers.base`), with tables of sizes and of milliseconds where no
script runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tfcourse.lessons.explorers.base import Explorer, folded, readable, table
from tfcourse.llama import (
    DecodeCost,
    Latency,
    decode_cost,
    inference_latency,
    kv_cache_bytes,
    largest_batch,
    llama_parameters,
)

__all__ = ["CARDS", "Card", "CostExplorer", "CostModel", "cost_explorer"]

GIB = 2**30
GB = 10**9
MOST_MODELS = 4
"""More of them would not stand in a row."""


@dataclass(frozen=True)
class Card:
    """A GPU: what its data sheet says, without sparsity.

    Attributes:
        name: its name.
        peak: FLOP per second in bfloat16.
        bandwidth: bytes per second between its memory and its arithmetic.
        memory: bytes of its memory.
    """

    name: str
    peak: float
    bandwidth: float
    memory: int


CARDS = (
    Card("A100 80 GB", 312e12, 2.039e12, 80 * GB),
    Card("H100 SXM", 989.4e12, 3.35e12, 80 * GB),
    Card("H200", 989.4e12, 4.8e12, 141 * GB),
)
"""Cards to choose from; 80 GB are counted as 80 · 10⁹ bytes, which are 74.5 GiB."""


@dataclass(frozen=True)
class CostModel:
    """A Llama with any number of key/value heads.

    Attributes:
        name: its name.
        layers: L.
        heads: query heads H.
        d_head: width of a head Dh.
        published: key/value heads G of the published model.
        parameters: for each possible number of key/value heads, the number of all parameters and of the parameters that a step multiplies.
    """

    name: str
    layers: int
    heads: int
    d_head: int
    published: int
    parameters: dict[int, tuple[int, int]]

    @classmethod
    def of(cls, name: str, sizes: Sequence[int]) -> CostModel:
        """Count a model of the sizes that `llama_parameters` takes, for every number of heads that can be shared evenly."""
        vocabulary, d_model, heads, published, d_ff, layers = sizes
        parameters = {}
        for shared in (n for n in range(1, heads + 1) if not heads % n):
            counts = llama_parameters(vocabulary, d_model, heads, shared, d_ff, layers)
            parameters[shared] = (sum(counts), counts.attention + counts.feed_forward + counts.output)
        return cls(name, layers, heads, d_model // heads, published, parameters)

    def cost(self, shared: int, length: int, *, batch: int = 1, bytes_per_number: int = 2) -> DecodeCost:
        """Count the cost of the next token of each text."""
        return decode_cost(
            self.parameters[shared][1],
            self.layers,
            self.heads,
            shared,
            self.d_head,
            length,
            batch=batch,
            bytes_per_number=bytes_per_number,
        )

    def latency(
        self, card: Card, shared: int, length: int, *, batch: int = 1, bytes_per_number: int = 2, cards: int = 1
    ) -> Latency:
        """Compute the least time for the next token of each text, and what it waits for."""
        cost = self.cost(shared, length, batch=batch, bytes_per_number=bytes_per_number)
        moved = cost.weight_bytes + cost.cache_bytes
        return inference_latency(cost.flops, moved, peak_flops=card.peak, bandwidth=card.bandwidth, n_devices=cards)

    def most_texts(self, card: Card, shared: int, length: int, *, bytes_per_number: int = 2, cards: int = 1) -> int:
        """Compute how many texts fit beside the weights."""
        cache = kv_cache_bytes(self.layers, shared, self.d_head, length, bytes_per_number=bytes_per_number)
        return largest_batch(cards * card.memory, self.parameters[shared][0] * bytes_per_number, cache)


@dataclass(frozen=True, repr=False)
class CostExplorer(Explorer):
    """Models and cards, ready to be shown; made by `cost_explorer`."""

    element = "cost-explorer"

    models: tuple[CostModel, ...]
    cards: tuple[Card, ...]
    start: tuple[int, int]
    """Which card is chosen at first, and the length of the context as a power of two."""
    longest: int
    """The longest context, as a power of two."""

    def data(self) -> dict[str, Any]:
        """The sizes of models and cards; the page's script does the arithmetic."""
        return {
            "models": [
                {
                    "name": model.name,
                    "layers": model.layers,
                    "heads": model.heads,
                    "width": model.d_head,
                    "published": model.published,
                    "shared": [[shared, *counts] for shared, counts in model.parameters.items()],
                }
                for model in self.models
            ],
            "cards": [
                {"name": card.name, "peak": card.peak, "bandwidth": card.bandwidth, "memory": card.memory}
                for card in self.cards
            ],
            "start": {"card": self.start[0], "length": self.start[1]},
            "longest": self.longest,
        }

    def plain(self) -> str:
        """The models as they are published: what they weigh, and milliseconds for a token of one text on each card."""
        lengths = [2 ** self.start[1], 2**self.longest]
        number = "<td>{:,.2f}</td>".format
        weights = [
            (
                model.name,
                [
                    model.parameters[model.published][0] * 2 / GIB,
                    *(model.cost(model.published, length).cache_bytes / GIB for length in lengths),
                    *(model.cost(model.heads, length).cache_bytes / GIB for length in lengths),
                ],
            )
            for model in self.models
        ]
        columns = [
            "weights",
            *(f"cache, {length:,} tokens" for length in lengths),
            *(f"{length:,} tokens, G = H" for length in lengths),
        ]
        milliseconds = [
            (
                f"{model.name}, {length:,} tokens",
                [1e3 * model.latency(card, model.published, length).seconds for card in self.cards],
            )
            for model in self.models
            for length in lengths
        ]
        sizes = table("GiB at 2 bytes per number", columns, weights, cell=number, corner="model")
        times = table("Milliseconds", [card.name for card in self.cards], milliseconds, cell=number, corner="one text")
        return folded("GiB of weights and of a text's cache, 2 bytes per number", sizes, unfolded=True) + folded(
            "Milliseconds for a token of one text, with the bandwidth of one GPU", times
        )

    def summary(self) -> str:
        """How many models and cards there are."""
        return f"{len(self.models)} models, {len(self.cards)} GPUs, contexts of up to {2**self.longest:,} tokens"


def cost_explorer(
    sizes: Mapping[str, Sequence[int]], *, caption: str, cards: Sequence[Card] = CARDS, card: int = 1
) -> CostExplorer:
    """Show the bytes of a Llama and its caches on a GPU, the time of the next token, and what it waits for.

    Leave the result as the last value of a notebook cell. With the course's script the reader chooses a model, its key/value heads, the
    context, the batch, bytes per number and cards; without it there are tables of the models as they are given.

    Args:
        sizes: By name, the vocabulary, width, query heads, key/value heads, inner width and layers: what `llama_parameters` takes; 1 to 4
            models.
        caption: One sentence that describes the figure.
        cards: Cards to choose from.
        card: Which of them is chosen at first.

    Returns:
        An object that notebooks display.

    Raises:
        ValueError: If there are no models or more than 4, a size is not positive, or heads cannot be shared evenly. If `card` is not an
            index of `cards`, a number of a card is not positive, or the caption is blank.
    """
    if not 1 <= len(sizes) <= MOST_MODELS:
        raise ValueError(f"expected 1 to {MOST_MODELS} models, got {len(sizes)}")
    for name, numbers in sizes.items():
        if len(numbers) != 6 or min(numbers) < 1:
            raise ValueError(f"{name!r} needs six positive sizes, got {tuple(numbers)}")
        _, d_model, heads, shared, _, _ = numbers
        if heads % shared or d_model % heads:
            raise ValueError(f"{name!r}: a width of {d_model} and {heads} query heads cannot share {shared} heads")
    if not 0 <= card < len(cards):
        raise ValueError(f"there is no card {card} among {len(cards)}")
    for one in cards:
        if min(one.peak, one.bandwidth, one.memory) <= 0:
            raise ValueError(f"numbers of a card are positive, got {one}")
    models = tuple(CostModel.of(readable(name), numbers) for name, numbers in sizes.items())
    named = tuple(Card(readable(one.name), one.peak, one.bandwidth, one.memory) for one in cards)
    return CostExplorer(caption, models, named, (card, 13), 17)
