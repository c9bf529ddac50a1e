"""The check of ``T5Attention``: scores that are not scaled and get a bias by position."""

from __future__ import annotations

from dataclasses import replace

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch05_transformer.ready_made import ATTENTION
from autograder.checks.ch12_rotary.manners import kept_on_any_device, merged
from tfcourse import t5

# The heads together are not as wide as the model.
D, H, DH = 6, 2, 5


def own(draw: Draw) -> Case:
    """Self-attention without a mask or a bias."""
    init = {"d_model": D, "n_heads": H, "d_head": DH}
    return Case({"x": draw.normal(3, 4, D)}, init=init, state=draw.weights(t5.T5Attention(D, H, DH), scale=0.4))


def context(draw: Draw) -> Case:
    """A context of another length."""
    return own(draw).with_arguments(context=draw.normal(3, 7, D))


def as_long(draw: Draw) -> Case:
    """A context as long as the sequence that asks: what comes from which goes unseen by the shapes."""
    return own(draw).with_arguments(context=draw.normal(3, 4, D))


def biased(draw: Draw) -> Case:
    """A bias for each head, query and key."""
    return own(draw).with_arguments(bias=2 * draw.normal(H, 4, 4))


def biased_examples(draw: Draw) -> Case:
    """A bias that differs between examples."""
    return context(draw).with_arguments(bias=2 * draw.normal(3, H, 4, 7))


def masked(draw: Draw) -> Case:
    """A mask for each of as many examples as there are heads: an axis that is missing goes unseen by the shapes."""
    return own(draw).with_arguments(x=draw.normal(H, 4, D), context=draw.normal(H, 7, D), mask=draw.mask(H, 4, 7))


def padded(draw: Draw) -> Case:
    """A mask over keys, and one for all examples."""
    return context(draw).with_arguments(mask=draw.mask(3, 1, 7))


def shared_mask(draw: Draw) -> Case:
    """A mask for all examples, with as many queries as there are heads: a superfluous axis goes unseen by the shapes."""
    return context(draw).with_arguments(x=draw.normal(3, H, D), mask=draw.mask(H, 7))


def empty_row(draw: Draw) -> Case:
    """A query that may attend to nothing."""
    mask = draw.mask(3, 4, 7)
    mask[:, 1] = False
    return context(draw).with_arguments(mask=mask)


def gentle(draw: Draw) -> Case:
    """Small weights, so that half precision stays near the right numbers."""
    case = empty_row(draw)
    return replace(case, state={name: value / 2 for name, value in (case.state or {}).items()})


def longer(draw: Draw, size: int) -> Case:
    """More examples, heads and positions."""
    init = {"d_model": 2 * size, "n_heads": 2 * size, "d_head": 3}
    case = Case({"x": draw.normal(size, size + 2, 2 * size)}, init=init)
    return replace(case, state=draw.weights(t5.T5Attention(**init), scale=0.3))


def _of_size(draw: Draw, b: int, t: int, h: int, dh: int) -> Case:
    init = {"d_model": D, "n_heads": h, "d_head": dh}
    return Case({"x": draw.normal(b, t, D)}, init=init, state=draw.weights(t5.T5Attention(**init), scale=0.4))


def equal_sizes(draw: Draw) -> Case:
    """As many examples as positions, heads and columns of a head."""
    return _of_size(draw, 3, 3, 3, 3)


def one_head(draw: Draw) -> Case:
    """One example, one head."""
    return _of_size(draw, 1, 4, 1, DH)


T5_ATTENTION = Exercise(
    reference=t5.T5Attention,
    rows=(
        rows.numbers(
            3.25,
            own,
            context,
            as_long,
            gradients=False,
            title="Self-attention and cross-attention give the right numbers, without any scaling.",
        ),
        rows.numbers(
            2,
            biased,
            biased_examples,
            name="bias",
            gradients=False,
            title="The bias is added to the scores before the softmax.",
        ),
        rows.numbers(
            1.5,
            masked,
            padded,
            shared_mask,
            name="mask",
            gradients=False,
            title="What may not be looked at counts nothing.",
        ),
        merged(
            rows.edge(
                0.5,
                gentle,
                name="edges",
                dtypes=(torch.float64, torch.bfloat16, torch.float16),
                title="Gradients are right, sizes may be equal or 1, and a query that may attend to nothing gets zeros.",
            ),
            rows.numbers(0, biased, equal_sizes, one_head),
        ),
        kept_on_any_device(0.5, own, biased, masked),
        rows.no_loop(0.25, longer, over="examples, positions or heads"),
    ),
    forbidden=ATTENTION,
    rule_case=(own, masked),
)
