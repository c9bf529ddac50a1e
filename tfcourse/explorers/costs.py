"""Weigh the weights and the caches of a model, and see which of two clocks a word waits for: the cache calculator.

`cost_explorer` makes a figure to play with (see `tfcourse.explorers.base`), with a table of models and cards where no script runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tfcourse.explorers.base import Explorer, folded, readable, table
from tfcourse.llama import decode_cost, inference_latency, kv_cache_bytes, largest_batch, llama_parameters

__all__ = ["Card", "CostExplorer", "Decoder", "Reading", "cost_explorer"]

LENGTHS = tuple(2**n for n in range(9, 18))
BATCHES = tuple(2**n for n in range(11))
WIDTHS = (2, 1, 4)
"""Bytes of a number, the usual ones first."""
MOST_CARDS = 16


@dataclass(frozen=True)
class Card:
    """A graphics card.

    Attributes:
        name: what it is called.
        peak_flops: operations a second, of dense matrices in bf16.
        bandwidth: bytes a second.
        memory: bytes.
    """

    name: str
    peak_flops: float
    bandwidth: float
    memory: int


@dataclass(frozen=True)
class Decoder:
    """The sizes of a Llama, in the order of `llama_parameters`.

    Attributes:
        name: what it is called.
        vocabulary: rows of its embedding.
        d_model: width D.
        n_heads: query heads H.
        n_kv_heads: heads of keys and values G, as it was published.
        d_ff: feed-forward width F.
        n_layers: layers L.
    """

    name: str
    vocabulary: int
    d_model: int
    n_heads: int
    n_kv_heads: int
    d_ff: int
    n_layers: int

    @property
    def groups(self) -> tuple[int, ...]:
        """All numbers of heads of keys and values that divide H."""
        return tuple(g for g in range(1, self.n_heads + 1) if self.n_heads % g == 0)

    def weights(self, groups: int) -> tuple[int, int]:
        """All parameters with so many heads of keys and values, and those that a step of writing reads: all but the embedding."""
        counts = llama_parameters(self.vocabulary, self.d_model, self.n_heads, groups, self.d_ff, self.n_layers)
        return sum(counts), counts.attention + counts.feed_forward + counts.output


@dataclass(frozen=True)
class Reading:
    """What the calculator shows.

    Attributes:
        weight_bytes: bytes of all weights.
        cache_bytes: bytes of all caches.
        fits: how many texts fit beside the weights.
        seconds: of one step, which writes a word of every text.
        bound: the slower clock, "compute" or "bandwidth".
        intensities: operations for each byte of the weights, of the caches, and of reading a prompt of this length.
    """

    weight_bytes: int
    cache_bytes: int
    fits: int
    seconds: float
    bound: str
    intensities: tuple[float, float, float]


@dataclass(frozen=True, repr=False)
class CostExplorer(Explorer):
    """Models and cards, ready to be shown; made by `cost_explorer`."""

    element = "cost-explorer"

    models: tuple[Decoder, ...]
    cards: tuple[Card, ...]

    def data(self) -> dict[str, Any]:
        """The models with their weights for each number of heads of keys, the cards, and what there is to choose from."""
        return {
            "models": [
                {
                    "name": model.name,
                    "layers": model.n_layers,
                    "heads": model.n_heads,
                    "width": model.d_model // model.n_heads,
                    "published": model.n_kv_heads,
                    "groups": [[groups, *model.weights(groups)] for groups in model.groups],
                }
                for model in self.models
            ],
            "cards": [
                {"name": card.name, "peak": card.peak_flops, "bandwidth": card.bandwidth, "memory": card.memory}
                for card in self.cards
            ],
            "lengths": LENGTHS,
            "batches": BATCHES,
            "widths": WIDTHS,
            "mostCards": MOST_CARDS,
        }

    def reading(
        self,
        model: int,
        card: int,
        *,
        groups: int | None = None,
        length: int = 8_192,
        batch: int = 1,
        width: int = 2,
        cards: int = 1,
    ) -> Reading:
        """Work out what the calculator shows for a model and a card, which are counted from 0."""
        decoder, device = self.models[model], self.cards[card]
        shared = decoder.n_kv_heads if groups is None else groups
        layers, heads, d_head = decoder.n_layers, decoder.n_heads, decoder.d_model // decoder.n_heads
        every, read = decoder.weights(shared)
        cost = decode_cost(read, layers, heads, shared, d_head, length, batch=batch, bytes_per_number=width)
        latency = inference_latency(
            cost.flops,
            cost.weight_bytes + cost.cache_bytes,
            peak_flops=device.peak_flops,
            bandwidth=device.bandwidth,
            n_devices=cards,
        )
        one = kv_cache_bytes(layers, shared, d_head, length, bytes_per_number=width)
        # Each token of a prompt looks at half of it on average.
        prompt = 2 * read * length + 2 * layers * heads * d_head * length**2
        return Reading(
            weight_bytes=every * width,
            cache_bytes=cost.cache_bytes,
            fits=largest_batch(cards * device.memory, every * width, one),
            seconds=latency.seconds,
            bound=latency.bound,
            intensities=(2 * batch / width, 2 * heads / shared / width, prompt / (read * width + one)),
        )

    def plain(self) -> str:
        """For each model and card: one text of 8,192 tokens with numbers of two bytes."""
        columns = ("weights, GiB", "cache, GiB", "ms a word", "texts that fit")
        rows = []
        for number, model in enumerate(self.models):
            for place, card in enumerate(self.cards):
                seen = self.reading(number, place)
                values = (seen.weight_bytes / 2**30, seen.cache_bytes / 2**30, 1e3 * seen.seconds, seen.fits)
                rows.append((f"{model.name}, {card.name}", values))
        label = "One text of 8,192 tokens, two bytes a number, one card"
        return folded(label, table(label, columns, rows), unfolded=True)

    def summary(self) -> str:
        """How many models and cards there are."""
        return f"{len(self.models)} models, {len(self.cards)} cards, contexts up to {LENGTHS[-1]:,} tokens"


def cost_explorer(models: Mapping[str, Sequence[int]], cards: Sequence[Card], *, caption: str) -> CostExplorer:
    """Show what writing costs: bytes of weights and caches, whether they fit, milliseconds a word, and a roofline.

    Leave the result as the last value of a notebook cell. With the course's script the reader chooses a model, its heads of keys, the
    context, the batch, bytes a number and cards; without it there is a table.

    Args:
        models: By name, the numbers that `llama_parameters` takes: V, D, H, G, F, L.
        cards: The cards to choose from.
        caption: One sentence that says what the figure shows.

    Returns:
        An object that notebooks display.

    Raises:
        ValueError: If there is no model or no card, a model has not six whole numbers from 1 on, its heads do not divide, a card has a
            rate or a memory that is not positive, or the caption is blank.
    """
    if not models or not cards:
        raise ValueError("expected a model and a card at least")
    decoders = []
    for name, sizes in models.items():
        if len(sizes) != 6 or min(sizes) < 1:
            raise ValueError(f"expected six numbers from 1 on for {name!r}: V, D, H, G, F, L; got {list(sizes)}")
        decoder = Decoder(readable(name), *sizes)
        if decoder.d_model % decoder.n_heads or decoder.n_heads % decoder.n_kv_heads:
            raise ValueError(f"expected heads of {name!r} that divide, got D, H, G = {list(sizes[1:4])}")
        decoders.append(decoder)
    for card in cards:
        if min(card.peak_flops, card.bandwidth, card.memory) <= 0:
            raise ValueError(f"expected positive rates and memory, got {card}")
    shown = tuple(Card(readable(card.name), card.peak_flops, card.bandwidth, card.memory) for card in cards)
    return CostExplorer(caption, tuple(decoders), shown)
