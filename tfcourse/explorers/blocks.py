"""Look into a Transformer layer and into position encodings: two figures for a notebook or a page.

`block_explorer` shows one layer part by part with the shape of every tensor, `position_explorer` the matrices of position encodings and
the dot products of their rows. Both write plain HTML with tables, and the same numbers as JSON beside them. Where the page loads
`transformer-explorer.js` (the course's site does) the tables become an interactive figure; everywhere else they are readable as they are.

Shapes: B batch, S source length (the encoder's), T target length (the decoder's), D model width, H heads, Dh = D / H head width,
F feed-forward width.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Literal, get_args

import torch
from torch import Tensor

from tfcourse.explorers.base import readable, script_json

__all__ = [
    "BlockExplorer",
    "Layer",
    "Norm",
    "Part",
    "PositionExplorer",
    "Stretch",
    "block_explorer",
    "layer_parts",
    "position_explorer",
]

Layer = Literal["encoder", "decoder"]
Norm = Literal["post", "pre"]
Shape = tuple[str, ...]

# What a page shows of an encoding; four decimals keep every dot product that it computes true to two.
_DIGITS = 4
_ROLES = {
    "Layer norm": "brings each position to mean 0 and variance 1, then applies a learned gain and bias",
    "Self-attention": "lets every position look at every other one that is no padding",
    "Causal self-attention": "lets every position look at itself and at what came before",
    "Cross-attention": "lets every position look at the encoder's output: the queries are the decoder's, keys and values the encoder's",
    "Feed-forward": "treats every position by itself: wider, a nonlinearity, and back",
    "Add": "adds what came in to what the part before has made of it: the residual connection",
}


@dataclass(frozen=True)
class Part:
    """One box of the figure: a part of a layer, with the letters of every shape in it."""

    name: str
    """What it is called."""
    about: str
    """What it does, to be read after its name."""
    tensors: tuple[tuple[str, Shape], ...]
    """The tensors that are made inside, in order; the last one is what leaves the part."""
    weights: tuple[tuple[str, Shape], ...] = ()
    """Its parameters, with biases."""
    also: tuple[tuple[str, Shape], ...] = ()
    """What comes in besides the sequence itself: masks, the encoder's output, what the residual connection carries."""


@dataclass(frozen=True)
class Stretch:
    """Parts in a row; a residual connection leads around them if the last of them adds."""

    parts: tuple[Part, ...]
    """The parts, in order."""
    bypass: bool
    """Whether what enters the stretch is added again at its end."""


def layer_parts(layer: Layer, norm: Norm) -> tuple[Stretch, ...]:
    """The parts of one Transformer layer in the order in which they run.

    Args:
        layer: "encoder" (self-attention, feed-forward) or "decoder" (causal self-attention, cross-attention, feed-forward).
        norm: "post" normalises after each addition, "pre" before each sublayer.

    Returns:
        Stretches of parts; their shapes are letters: B, T, S, D, H, Dh, F, and "1".

    Raises:
        ValueError: If `layer` or `norm` is something else.
    """
    if layer not in get_args(Layer) or norm not in get_args(Norm):
        raise ValueError(f"layer is one of {get_args(Layer)} and norm one of {get_args(Norm)}, got {layer!r}, {norm!r}")
    if layer == "encoder":
        own = "S"
        sublayers = [_attention("Self-attention", "S", "S", ("padding mask", ("B", "1", "S"))), _feed_forward("S")]
    else:
        own = "T"
        memory = (("encoder's output", ("B", "S", "D")), ("padding mask", ("B", "1", "S")))
        sublayers = [
            _attention("Causal self-attention", "T", "T", ("causal mask", ("T", "T"))),
            _attention("Cross-attention", "T", "S", *memory),
            _feed_forward("T"),
        ]
    stretches: list[Stretch] = []
    for sublayer in sublayers:
        module = sublayer.weights[0][0].split(".")[0]
        normalise, add = _layer_norm(own, f"{module}_norm"), _add(own)
        if norm == "pre":
            stretches.append(Stretch((normalise, sublayer, add), bypass=True))
        else:
            stretches += [Stretch((sublayer, add), bypass=True), Stretch((normalise,), bypass=False)]
    return tuple(stretches)


def _attention(name: str, asking: str, asked: str, *also: tuple[str, Shape]) -> Part:
    """A multi-head attention of queries from one length on keys and values from another, or the same."""
    asks, answers = ("B", "H", asking, "Dh"), ("B", "H", asked, "Dh")
    scores = ("B", "H", asking, asked)
    tensors = (
        ("queries, after q_proj", ("B", asking, "D")),
        ("keys, after k_proj", ("B", asked, "D")),
        ("values, after v_proj", ("B", asked, "D")),
        ("queries of each head", asks),
        ("keys of each head", answers),
        ("values of each head", answers),
        ("scores", scores),
        ("weights, after mask and softmax", scores),
        ("what each head brings", asks),
        ("heads merged", ("B", asking, "D")),
        ("output, after o_proj", ("B", asking, "D")),
    )
    module = "cross_attention" if name.startswith("Cross") else "self_attention"
    maps = [f"{module}.{letter}_proj" for letter in "qkvo"]
    weights = tuple(chain.from_iterable(((f"{m}.weight", ("D", "D")), (f"{m}.bias", ("D",))) for m in maps))
    return Part(name, _ROLES[name], tensors, weights, also)


def _feed_forward(own: str) -> Part:
    tensors = (
        ("wider, after up_proj", ("B", own, "F")),
        ("after the nonlinearity", ("B", own, "F")),
        ("output, after down_proj", ("B", own, "D")),
    )
    weights = (
        ("feed_forward.up_proj.weight", ("F", "D")),
        ("feed_forward.up_proj.bias", ("F",)),
        ("feed_forward.down_proj.weight", ("D", "F")),
        ("feed_forward.down_proj.bias", ("D",)),
    )
    return Part("Feed-forward", _ROLES["Feed-forward"], tensors, weights)


def _layer_norm(own: str, module: str) -> Part:
    tensors = (
        ("mean and variance, one each a position", ("B", own, "1")),
        ("output, with gain and bias", ("B", own, "D")),
    )
    weights = ((f"{module}.weight", ("D",)), (f"{module}.bias", ("D",)))
    return Part("Layer norm", _ROLES["Layer norm"], tensors, weights)


def _add(own: str) -> Part:
    width = ("B", own, "D")
    return Part("Add", _ROLES["Add"], (("sum", width),), also=(("carried past", width),))


@dataclass(frozen=True)
class BlockExplorer:
    """A Transformer layer with the shape of every tensor, ready to be shown; made by `block_explorer`."""

    sizes: tuple[tuple[str, int], ...]
    """The numbers that B, T, S, D, H and F stand for at first."""
    layer: Layer
    """The layer that is shown first."""
    norm: Norm
    """Where it normalises."""
    caption: str
    """One sentence that says what the figure shows."""

    def to_json(self) -> str:
        """The figure's data as one line of JSON that is safe inside an HTML `<script>` element."""
        kinds = [(layer, norm) for layer in get_args(Layer) for norm in get_args(Norm)]
        return script_json(
            {
                "version": 1,
                "figure": "block",
                "caption": self.caption,
                "sizes": dict(self.sizes),
                "start": {"layer": self.layer, "norm": self.norm},
                "layers": {f"{layer} {norm}": [asdict(s) for s in layer_parts(layer, norm)] for layer, norm in kinds},
            }
        )

    def _repr_html_(self) -> str:
        kinds = [(layer, norm) for layer in get_args(Layer) for norm in get_args(Norm)]
        tables = "".join(
            _details(_title(layer, norm), self._table(layer, norm), unfolded=(layer, norm) == (self.layer, self.norm))
            for layer, norm in kinds
        )
        sizes = ", ".join(f"{letter} = {size:,}" for letter, size in self.sizes)
        return _element(self.to_json(), self.caption, f"<p>Every tensor from top to bottom, with {sizes}.</p>{tables}")

    def __repr__(self) -> str:
        sizes = ", ".join(f"{letter}={size}" for letter, size in self.sizes)
        return f"BlockExplorer: {_title(self.layer, self.norm)}, {sizes}. {self.caption}"

    def _table(self, layer: Layer, norm: Norm) -> str:
        """Every tensor of one kind of layer, and what its parts have in parameters."""
        sizes = dict(self.sizes)
        sizes |= {"Dh": sizes["D"] // sizes["H"], "1": 1}
        rows, total = [], 0
        for part in chain.from_iterable(stretch.parts for stretch in layer_parts(layer, norm)):
            count = sum(math.prod(sizes[letter] for letter in shape) for _, shape in part.weights)
            total += count
            for index, (label, shape) in enumerate(part.tensors):
                first = "" if index else f'<th scope="rowgroup" rowspan="{len(part.tensors)}">{part.name}</th>'
                last = "" if index else f'<td rowspan="{len(part.tensors)}">{count:,}</td>'
                numbers = ", ".join(f"{sizes[letter]:,}" for letter in shape)
                rows.append(
                    f"<tr>{first}<td>{html.escape(label)}</td><td>({', '.join(shape)})</td><td>({numbers})</td>{last}</tr>"
                )
        heads = "".join(f'<th scope="col">{name}</th>' for name in ("part", "tensor", "shape", "here", "parameters"))
        foot = f'<tfoot><tr><th scope="row" colspan="4">parameters of the layer</th><td>{total:,}</td></tr></tfoot>'
        return _scroll(
            _title(layer, norm), f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody>{foot}</table>"
        )


def block_explorer(
    *,
    B: int = 2,
    T: int = 9,
    S: int = 7,
    D: int = 512,
    H: int = 8,
    F: int = 2048,
    layer: Layer = "encoder",
    norm: Norm = "post",
    caption: str,
) -> BlockExplorer:
    """Show a Transformer layer part by part, with the shape of every tensor and the number of parameters.

    Leave the result as the last value of a notebook cell. With the course's script the reader changes every size, and chooses between
    an encoder and a decoder layer and between post- and pre-norm; without it there is one table a kind of layer.

    Args:
        B: Batch.
        T: Target length: that of the sequence in a decoder layer.
        S: Source length: that of the sequence in an encoder layer, and of the encoder's output, which a decoder layer asks.
        D: Model width.
        H: Heads; divides D.
        F: Feed-forward width.
        layer: The layer to show first, "encoder" or "decoder".
        norm: Where it normalises, "post" or "pre".
        caption: One sentence that says what the figure shows.

    Returns:
        An object that notebooks display.

    Raises:
        ValueError: If a size is not positive, H does not divide D, the caption is blank, or `layer` or `norm` is unknown.
    """
    sizes = {"B": B, "T": T, "S": S, "D": D, "H": H, "F": F}
    if min(sizes.values()) < 1 or D % H:
        raise ValueError(f"sizes are positive and H divides D, got {sizes}")
    layer_parts(layer, norm)  # for its complaint
    return BlockExplorer(tuple(sizes.items()), layer, norm, _titled(caption))


@dataclass(frozen=True)
class PositionExplorer:
    """Position encodings and the dot products of their rows, ready to be shown; made by `position_explorer`."""

    encodings: tuple[tuple[str, tuple[tuple[float, ...], ...]], ...]
    """Name and rows of each encoding: one row of D rounded numbers a position."""
    caption: str
    """One sentence that says what the figure shows."""
    start: tuple[int, int]
    """The two positions that are compared first."""

    def to_json(self) -> str:
        """The figure's data as one line of JSON that is safe inside an HTML `<script>` element."""
        first, second = self.start
        return script_json(
            {
                "version": 1,
                "figure": "positions",
                "caption": self.caption,
                "start": {"first": first, "second": second},
                "encodings": [{"name": name, "rows": rows} for name, rows in self.encodings],
            }
        )

    def _repr_html_(self) -> str:
        parts = []
        for index, (name, rows) in enumerate(self.encodings):
            parts.append(_details(f"{name}: dot products", self._by_distance(name, rows), unfolded=not index))
            parts.append(_details(f"{name}: the matrix", self._matrix(name, rows), unfolded=False))
        about = "<p>How alike are two positions that lie so far apart? The smallest and the largest dot product of all such pairs.</p>"
        return _element(self.to_json(), self.caption, about + "".join(parts))

    def __repr__(self) -> str:
        names = ", ".join(name for name, _ in self.encodings)
        rows = self.encodings[0][1]
        return f"PositionExplorer: {names}; {len(rows)} positions of width {len(rows[0])}. {self.caption}"

    def _by_distance(self, name: str, rows: tuple[tuple[float, ...], ...]) -> str:
        matrix = torch.tensor(rows, dtype=torch.float64)  # (n, D)
        products = matrix @ matrix.T  # (n, n)
        body = []
        for distance in range(len(rows)):
            of_pairs = products.diagonal(distance)
            body.append(
                f'<tr><th scope="row">{distance}</th><td>{of_pairs.min():.2f}</td><td>{of_pairs.max():.2f}</td></tr>'
            )
        heads = "".join(f'<th scope="col">{title}</th>' for title in ("distance", "smallest", "largest"))
        table = f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(body)}</tbody></table>"
        return _scroll(f"Dot products of {name}", table)

    def _matrix(self, name: str, rows: tuple[tuple[float, ...], ...]) -> str:
        heads = "".join(f'<th scope="col">{column}</th>' for column in range(len(rows[0])))
        body = "".join(
            f'<tr><th scope="row">{position}</th>{"".join(f"<td>{value:.2f}</td>" for value in row)}</tr>'
            for position, row in enumerate(rows)
        )
        table = f"<table><thead><tr><td></td>{heads}</tr></thead><tbody>{body}</tbody></table>"
        return _scroll(f"Matrix of {name}", table)


def position_explorer(
    encodings: Mapping[str, Tensor], *, caption: str, start: tuple[int, int] = (0, 0)
) -> PositionExplorer:
    """Show position encodings: the matrix, one row a position, and the dot product of any two of its rows.

    Leave the result as the last value of a notebook cell. With the course's script the reader chooses an encoding and two positions,
    and sees whether the dot product depends on their distance alone; without it there are tables.

    Args:
        encodings: By name, matrices (n, D) of n positions of width D; n is the same in all of them.
        caption: One sentence that says what the figure shows.
        start: The two positions to compare first, counted from 0.

    Returns:
        An object that notebooks display.

    Raises:
        ValueError: If there is no encoding, one is not a finite matrix of as many positions as the others, the caption is blank or
            `start` points outside.
    """
    shapes = {name: tuple(matrix.shape) for name, matrix in encodings.items()}
    counts = {shape[0] for shape in shapes.values() if len(shape) == 2 and min(shape) > 0}
    if len(counts) != 1 or any(len(shape) != 2 or min(shape) < 1 for shape in shapes.values()):
        raise ValueError(f"expected matrices (n, D) with the same n for every encoding, got {shapes}")
    rounded = []
    for name, matrix in encodings.items():
        values = matrix.detach().to("cpu", torch.float64)  # (n, D)
        if not bool(values.isfinite().all()):
            raise ValueError(f"the encoding {name!r} has entries that are not finite")
        rows = tuple(tuple(round(value, _DIGITS) + 0.0 for value in row) for row in values.tolist())
        rounded.append((_titled(name), rows))
    n = counts.pop()
    if not all(0 <= position < n for position in start):
        raise ValueError(f"start={start} points outside of {n} positions")
    return PositionExplorer(tuple(rounded), _titled(caption), start)


def _title(layer: Layer, norm: Norm) -> str:
    return f"{layer.capitalize()} layer, {norm}-norm"


def _element(data: str, caption: str, inside: str) -> str:
    """The custom element with its data, and the plain figure that stands in for it."""
    caption = html.escape(caption)
    return (
        f'<transformer-explorer style="display:block"><script type="application/json">{data}</script>'
        f'<figure class="te-plain" role="group" aria-label="{caption}"><figcaption>{caption}</figcaption>'
        f"{inside}</figure></transformer-explorer>"
    )


def _details(title: str, inside: str, *, unfolded: bool) -> str:
    return f"<details{' open' if unfolded else ''}><summary>{html.escape(title)}</summary>{inside}</details>"


def _scroll(name: str, table: str) -> str:
    """A table in a box that scrolls, with the keyboard too."""
    name = html.escape(name)
    return (
        f'<div class="te-scroll" role="region" aria-label="{name}" tabindex="0" style="overflow-x:auto">{table}</div>'
    )


def _titled(text: str) -> str:
    """A text of a figure as HTML can carry it.

    Raises:
        ValueError: If there is nothing to read in it.
    """
    if not text.strip():
        raise ValueError("a figure needs a caption and names that say what it shows, got a blank text")
    return readable(text)
