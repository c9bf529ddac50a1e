"""Look at attention heads: record what a layer's heads do, and show their weights in a notebook or on a page.

`head_explorer` makes a figure to play with (see `tfcourse.lessons.explorers.base`), with a table for each head where no script runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from tfcourse.attention import masked_attention_weights
from tfcourse.lessons.explorers.base import Explorer, folded, readable, table, weight_cell
from tfcourse.multihead import MultiHeadAttention, split_heads

__all__ = ["HeadExplorer", "HeadRecord", "head_explorer", "record_heads"]

# Attention weights are shown to two decimals; four keep every figure of the page true and the page small.
_DIGITS = 4


@dataclass
class HeadRecord:
    """What the heads of one layer did in its last forward pass, detached from the graph."""

    weights: Tensor
    """Attention weights, (B, H, T, S)."""
    outputs: Tensor
    """What the heads handed to the output projection, (B, H, T, Dh)."""


@contextmanager
def record_heads(layers: Sequence[MultiHeadAttention]) -> Iterator[list[HeadRecord | None]]:
    """Watch layers from outside while a model runs: forward hooks on their linear maps, no change to the layers.

    Args:
        layers: The attention layers to watch, in the order in which the records are wanted.

    Yields:
        A list with one entry per layer: None until the layer has run, then the `HeadRecord` of its last forward pass.

    Example:
        >>> with record_heads([layer]) as records:
        ...     layer(x)
        >>> records[0].weights  # (B, H, T, S)
    """
    records: list[HeadRecord | None] = [None] * len(layers)
    with ExitStack() as stack:
        for index, layer in enumerate(layers):
            for handle in _watch(layer, records, index):
                stack.callback(handle.remove)
        yield records


def _watch(layer: MultiHeadAttention, records: list[HeadRecord | None], index: int) -> list[Any]:
    """Hook one layer, so that each of its forward passes fills `records[index]`; returns the handles of the hooks."""
    seen: dict[str, Tensor | None] = {}

    def keep_mask(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        mask = kwargs.get("mask", args[2] if len(args) > 2 else None)
        seen["mask"] = mask.unsqueeze(1) if mask is not None and mask.ndim == 3 else mask

    def keep(name: str) -> Any:
        def hook(_: nn.Module, __: Any, output: Tensor) -> None:
            seen[name] = split_heads(output.detach(), layer.n_heads)  # (B, H, T or S, Dh)

        return hook

    def keep_merged(_: nn.Module, args: tuple[Tensor, ...]) -> None:
        seen["outputs"] = split_heads(args[0].detach(), layer.n_heads)  # (B, H, T, Dh)

    def finish(*_: Any) -> None:
        q, k, outputs = seen["q"], seen["k"], seen["outputs"]
        assert q is not None
        assert k is not None
        assert outputs is not None
        records[index] = HeadRecord(masked_attention_weights(q, k, seen["mask"]), outputs)

    return [
        layer.register_forward_pre_hook(keep_mask, with_kwargs=True),
        layer.q_proj.register_forward_hook(keep("q")),
        layer.k_proj.register_forward_hook(keep("k")),
        layer.o_proj.register_forward_pre_hook(keep_merged),
        layer.register_forward_hook(finish),
    ]


@dataclass(frozen=True, repr=False)
class HeadExplorer(Explorer):
    """Attention weights of some heads on one sequence, ready to be shown; made by `head_explorer`."""

    element = "head-explorer"

    keys: tuple[str, ...]
    """The S tokens that are looked at."""
    queries: tuple[str, ...]
    """The T tokens that look."""
    weights: tuple[tuple[tuple[tuple[float, ...], ...], ...], ...]
    """Layer, head, query, key: rounded weights."""
    start: tuple[int, int, int]
    """Layer, head and query that are shown first."""
    names: tuple[str, ...] = ()
    """What the heads are called, the same in every layer; empty if they have numbers only."""

    def data(self) -> dict[str, Any]:
        """Tokens, weights and what is shown first."""
        layer, head, query = self.start
        data = {
            "keys": self.keys,
            "queries": self.queries,
            "start": {"layer": layer, "head": head, "query": query},
            "weights": self.weights,
        }
        return data | {"names": self.names} if self.names else data

    def plain(self) -> str:
        """Every head as a plain table, the first one to be shown unfolded."""
        parts = [
            "<p>Each row shows where one word looks: the weights that it gives to the words above the columns.</p>"
        ]
        for layer, heads in enumerate(self.weights):
            for head, rows in enumerate(heads):
                name = self._name(layer, head)
                # Figures of one page may have heads of the same names; their tables are still landmarks of their own.
                label = f"{name}: {self.caption}" if self.names else name
                weights = table(label, self.keys, zip(self.queries, rows, strict=True), cell=weight_cell)
                parts.append(folded(name, weights, unfolded=(layer, head) == self.start[:2]))
        return "".join(parts)

    def summary(self) -> str:
        """How many layers, heads, queries and keys there are."""
        sizes = sorted({len(heads) for heads in self.weights})
        heads = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
        return (
            f"{_count(len(self.weights), 'layer')} of {heads} {'head' if heads == '1' else 'heads'}, "
            f"{_count(len(self.queries), 'query', 'queries')} on {_count(len(self.keys), 'key')}"
        )

    def _name(self, layer: int, head: int) -> str:
        """The name of a head, in the words of the figure's script."""
        if not self.names:
            return f"Layer {layer + 1}, head {head + 1}"
        return self.names[head] if len(self.weights) == 1 else f"Layer {layer + 1}, {self.names[head]}"


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def head_explorer(
    tokens: Sequence[str],
    weights: Tensor | Sequence[Tensor],
    *,
    query_tokens: Sequence[str] | None = None,
    caption: str,
    start: tuple[int, int, int] | None = None,
    names: Sequence[str] | None = None,
) -> HeadExplorer:
    """Show the attention weights of heads: which word attends to which, layer by layer and head by head.

    Leave the result as the last value of a notebook cell. With the course's script the reader chooses a head and a word; without
    it there is one table per head. Rows whose weights do not sum to 1 are accepted, and pointed out to the reader, because an explorer also
    helps to find mistakes.

    Args:
        tokens: The S tokens that are looked at.
        weights: Attention weights of one sequence: (L, H, T, S) for L layers, (H, T, S) for a single one, or one (H, T, S) per layer, in
            which H may differ.
        query_tokens: The T tokens that look; None means self-attention, the same as `tokens`.
        caption: One sentence that describes the figure.
        start: Layer, head and query to show first, counted from 0; None means layer 0, head 0 and the last query.
        names: What the H heads are called, where their numbers say too little; the same in every layer.

    Returns:
        An object that notebooks display.

    Raises:
        ValueError: If shapes and numbers of tokens do not fit, a weight is not between 0 and 1, the caption is blank, `start` points
            outside, or there is not one name per head.
    """
    keys = tuple(readable(token) for token in tokens)
    queries = keys if query_tokens is None else tuple(readable(token) for token in query_tokens)
    layers = [weights] if isinstance(weights, Tensor) and weights.ndim == 3 else list(weights)
    if not layers:
        raise ValueError("there is no layer to show: weights is empty")
    rounded = tuple(_rounded(layer, index, len(queries), len(keys)) for index, layer in enumerate(layers))
    start = (0, 0, len(queries) - 1) if start is None else start
    layer, head, query = start
    if not (0 <= layer < len(rounded) and 0 <= head < len(rounded[layer]) and 0 <= query < len(queries)):
        raise ValueError(f"start={start} points outside: layers {len(rounded)}, heads, queries {len(queries)}")
    called = tuple(readable(name) for name in names or ())
    if names is not None and (any(len(heads) != len(called) for heads in rounded) or not all(map(str.strip, called))):
        raise ValueError(
            f"every layer needs a name for each of its {[len(heads) for heads in rounded]} heads, got {called}"
        )
    return HeadExplorer(caption, keys, queries, rounded, start, called)


def _rounded(layer: Tensor, index: int, T: int, S: int) -> tuple[tuple[tuple[float, ...], ...], ...]:
    """Check one layer's weights, (H, T, S), and turn them into rounded numbers."""
    if layer.ndim != 3 or layer.shape[0] < 1 or tuple(layer.shape[1:]) != (T, S) or not T or not S:
        raise ValueError(
            f"expected weights of shape (H, {T}, {S}) for {T} query and {S} key tokens, got {tuple(layer.shape)} "
            f"in layer {index} (a batch? show one of its sequences)"
        )
    values = layer.detach().to("cpu", torch.float64)  # (H, T, S)
    # Rounding of half-precision weights may exceed 1 by a hair.
    if not bool(((values >= 0) & (values <= 1 + 1e-2)).all()):
        raise ValueError(f"attention weights lie between 0 and 1; layer {index} has {values.min()} to {values.max()}")
    return tuple(tuple(tuple(map(_short, row)) for row in head) for head in values.tolist())


def _short(weight: float) -> float:
    """A weight to four digits; 0 and 1 as integers, which are shorter."""
    rounded = round(weight, _DIGITS)
    return int(rounded) if rounded in (0.0, 1.0) else rounded
