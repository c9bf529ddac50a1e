"""Look into a Transformer layer, part by part, with the shape of every tensor.

`block_explorer` makes a figure to play with (see `tfcourse.lessons.explorers.base`), with a table for each kind of layer where no script
runs.

Shapes: B batch, S source length (the encoder's), T target length (the decoder's), D model width, H heads, Dh = D / H head width,
F feed-forward width.
"""

from __future__ import annotations

import html
import math
from dataclasses import asdict, dataclass
from itertools import chain, product
from typing import Any, Literal, get_args

from tfcourse.lessons.explorers.base import Explorer, folded, scrollable

__all__ = ["BlockExplorer", "Layer", "Norm", "Part", "Stretch", "block_explorer", "layer_parts"]

Layer = Literal["encoder", "decoder"]
Norm = Literal["post", "pre"]
Shape = tuple[str, ...]

_KINDS: tuple[tuple[Layer, Norm], ...] = tuple(product(get_args(Layer), get_args(Norm)))
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


@dataclass(frozen=True, repr=False)
class BlockExplorer(Explorer):
    """A Transformer layer with the shape of every tensor, ready to be shown; made by `block_explorer`."""

    element = "block-explorer"

    sizes: tuple[tuple[str, int], ...]
    """The numbers that B, T, S, D, H and F stand for at first."""
    layer: Layer
    """The layer that is shown first."""
    norm: Norm
    """Where it normalises."""

    def data(self) -> dict[str, Any]:
        """The sizes, what is shown first, and the parts of every kind of layer."""
        return {
            "sizes": dict(self.sizes),
            "start": {"layer": self.layer, "norm": self.norm},
            "layers": {f"{layer} {norm}": [asdict(s) for s in layer_parts(layer, norm)] for layer, norm in _KINDS},
        }

    def plain(self) -> str:
        """A table for each kind of layer, that of the first one to be shown unfolded."""
        sizes = ", ".join(f"{letter} = {size:,}" for letter, size in self.sizes)
        return f"<p>Every tensor from top to bottom, with {sizes}.</p>" + "".join(
            folded(_title(*kind), self._table(*kind), unfolded=kind == (self.layer, self.norm)) for kind in _KINDS
        )

    def summary(self) -> str:
        """Which layer is shown first, and its sizes."""
        sizes = ", ".join(f"{letter}={size}" for letter, size in self.sizes)
        return f"{_title(self.layer, self.norm)}, {sizes}"

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
        return scrollable(
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
        caption: One sentence that describes the figure.

    Returns:
        An object that notebooks display.

    Raises:
        ValueError: If a size is not positive, H does not divide D, the caption is blank, or `layer` or `norm` is unknown.
    """
    sizes = {"B": B, "T": T, "S": S, "D": D, "H": H, "F": F}
    if min(sizes.values()) < 1 or D % H:
        raise ValueError(f"sizes are positive and H divides D, got {sizes}")
    layer_parts(layer, norm)  # for its complaint
    return BlockExplorer(caption, tuple(sizes.items()), layer, norm)


def _title(layer: Layer, norm: Norm) -> str:
    return f"{layer.capitalize()} layer, {norm}-norm"
