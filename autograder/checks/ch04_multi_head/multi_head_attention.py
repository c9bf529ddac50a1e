"""The check of ``MultiHeadAttention``: heads that attend side by side, each with its own columns."""

from __future__ import annotations

from dataclasses import replace

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checking.rows import Maker, Probe
from autograder.checks.ch03_scaled_dot_product.cases import FUSED, joined
from tfcourse import multihead


def _sizes(draw: Draw, *, batch: int | None = None) -> dict[str, int]:
    """Sizes by letter: pairwise distinct, at least two heads of at least two columns, and a width of 6 (H = 2 or 3).

    Tests that are not about the batch use ``batch=1``: the answers of every known mistake are recorded, so they are kept small.
    """
    lengths, (first, second) = (4, 5, 7), draw.sizes(2, low=0)
    sizes = {"B": batch or lengths[3 - first - second], "T": lengths[first], "S": lengths[second]}
    return {**sizes, "H": 2 + int(draw.integers(0, 2)), "D": 6}


def _layer(draw: Draw, n: dict[str, int], *, context: int | None = None, bias: bool | None = None) -> Case:
    """A layer with random weights, and inputs for it. Without ``bias`` the constructor's default is used."""
    init: dict[str, int | bool] = {"d_model": n["D"], "n_heads": n["H"]}
    if bias is not None:
        init["bias"] = bias
    arguments = {"x": draw.normal(n["B"], n["T"], n["D"])}
    if context is not None:
        arguments["context"] = draw.normal(n["B"], context, n["D"])
    reference = multihead.MultiHeadAttention(n["D"], n["H"], bias=bias is not False)
    return Case(arguments, init=init, state=draw.weights(reference))


def self_attention(draw: Draw) -> Case:
    """No context, no mask."""
    return _layer(draw, _sizes(draw))


def cross_attention(draw: Draw) -> Case:
    """A context of another length."""
    n = _sizes(draw, batch=1)
    return _layer(draw, n, context=n["S"])


def equal_lengths(draw: Draw) -> Case:
    """A context that is as long as ``x``: confusing the two goes unseen by the shapes."""
    n = _sizes(draw, batch=1)
    return _layer(draw, n, context=n["T"])


def no_bias(draw: Draw) -> Case:
    """A layer that is asked to have no biases."""
    return _layer(draw, _sizes(draw, batch=1), bias=False)


def one_head(draw: Draw) -> Case:
    """A single head, as wide as the layer."""
    return _layer(draw, {**_sizes(draw, batch=1), "H": 1})


def single_size(draw: Draw) -> Case:
    """As many examples as heads, positions and columns of a head: the shapes do not show which axis is which."""
    return _layer(draw, {"B": 2, "T": 2, "H": 2, "D": 4})


def masked(axes: str, *, batch: int | None = None) -> Maker:
    """Self-attention with a mask of the axes named, for example ``"B1T"``, in which every query may attend to something."""

    def make(draw: Draw) -> Case:
        n = _sizes(draw, batch=batch)
        case = _layer(draw, n)
        return case.with_arguments(mask=draw.mask(*(n.get(axis, 1) for axis in axes)))

    return make


def as_many_heads(draw: Draw) -> Case:
    """As many examples as heads: a mask (B, T, T) whose batch is taken for heads goes unseen by the shapes."""
    n = _sizes(draw)
    n["B"] = n["H"]
    return _layer(draw, n).with_arguments(mask=draw.mask(n["B"], n["T"], n["T"]))


def empty_row(draw: Draw) -> Case:
    """One query may attend to nothing. Small weights, for four maps and a softmax in a row are rounded to half precision."""
    n = _sizes(draw, batch=1)
    case, mask = _layer(draw, n, context=n["S"]), draw.mask(1, n["T"], n["S"])
    mask[:, 1] = False
    return replace(
        case.with_arguments(mask=mask), state={name: value / 2 for name, value in (case.state or {}).items()}
    )


def longer(draw: Draw, size: int) -> Case:
    """More of everything, and of heads most: a loop that does little for each head shall be seen among all that the layer does."""
    n = {"B": size, "T": size + 1, "S": size + 2, "H": 2 * size, "D": 2 * size}
    return _layer(draw, n, context=n["S"])


def indivisible_model(draw: Draw) -> Case:
    """A model width that cannot be cut into so many heads."""
    return Case({"x": draw.normal(2, 5, 10)}, init={"d_model": 10, "n_heads": 3})


def device_and_loops(points: float) -> rows.Row:
    """Return the row of two manners."""
    over = "examples, positions or heads"
    row = joined(rows.no_loop(points, longer, over=over), rows.device(points, self_attention))
    title = f"It runs on the device of its inputs, and there is no Python loop over {over}."
    return replace(row, name="device and loops", title=title)


def errors(points: float, *, title: str) -> rows.Row:
    """Return the row of errors: errors of a call, and a width that the constructor must refuse."""

    def probes(draw: Draw) -> list[Probe]:
        case = draw.case(indivisible_model)
        construction = Probe((case.request("attributes", ("n_heads",)),), "answers")
        return [*called.probes(draw), construction]

    called = rows.errors(points, cross_attention, indivisible_model, title=title)
    return replace(called, probes=probes)


MULTI_HEAD_ATTENTION = Exercise(
    reference=multihead.MultiHeadAttention,
    rows=(
        rows.numbers(6, self_attention, gradients=False, title="Self-attention gives the right numbers."),
        rows.numbers(
            2.25,
            cross_attention,
            equal_lengths,
            name="context",
            gradients=False,
            title="In cross-attention x asks, and the context answers.",
        ),
        rows.numbers(
            3,
            masked("TT"),
            masked("B1T"),
            masked("BTT", batch=1),
            as_many_heads,
            masked("BHTT", batch=1),
            masked("B11T"),
            name="mask",
            gradients=False,
            title="A mask of up to three dimensions holds for every head; one of four tells the heads apart.",
        ),
        rows.numbers(
            1.5,
            single_size,
            one_head,
            no_bias,
            name="sizes",
            title="Gradients are right; equal sizes and a single head work, and with bias=False no map has a bias.",
        ),
        rows.edge(
            0.75,
            empty_row,
            name="empty row",
            dtypes=(torch.float64, torch.bfloat16, torch.float16),
            title="A query that may attend to nothing gets the bias of the output map, in every precision.",
        ),
        device_and_loops(0.75),
        errors(
            0.75,
            title="A model width that cannot be divided by the number of heads is a ValueError.",
        ),
    ),
    forbidden=FUSED,
    rule_case=(self_attention, masked("BTT", batch=1)),
)
