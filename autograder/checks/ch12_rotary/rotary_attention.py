"""The check of ``RotaryAttention``: queries and keys that know their places."""

from __future__ import annotations

from dataclasses import replace

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch05_transformer.ready_made import ATTENTION
from autograder.checks.ch12_rotary.manners import kept_on_any_device, merged
from tfcourse import rotary

D, H = 12, 3


def _case(draw: Draw, **init: float) -> Case:
    sizes = {"d_model": D, "n_heads": H, **init}
    return Case({"x": draw.normal(2, 5, D)}, init=sizes, state=draw.weights(rotary.RotaryAttention(D, H)))


def plain(draw: Draw) -> Case:
    """A short text."""
    return _case(draw)


def other_base(draw: Draw) -> Case:
    """Another base."""
    return _case(draw, theta=20.0)


def with_bias(draw: Draw) -> Case:
    """Maps with a bias."""
    case = _case(draw, bias=True)
    return replace(case, state=draw.weights(rotary.RotaryAttention(D, H, bias=True)))


def own_frequencies(draw: Draw) -> Case:
    """Frequencies that are handed in."""
    return plain(draw).with_arguments(frequencies=torch.exp(-draw.normal(2).abs()).to(torch.float64))


def squeezed(draw: Draw) -> Case:
    """Places multiplied by a scale."""
    return plain(draw).with_arguments(scale=0.25)


def far(draw: Draw) -> Case:
    """A text that starts at an odd place beyond 2^24, where float32 knows only even numbers."""
    return plain(draw).with_arguments(start=2**24 + 1 + 2 * int(draw.integers(0, 5000)))


def odd_heads(draw: Draw) -> Case:
    """Heads of three columns, of which one frequency could turn two."""
    case = plain(draw).with_arguments(frequencies=torch.tensor([0.5], dtype=torch.float64))
    return replace(case, init={"d_model": D, "n_heads": 4})


def uneven(draw: Draw) -> Case:
    """Heads that do not divide the width."""
    return replace(plain(draw), init={"d_model": D, "n_heads": 5})


def longer(draw: Draw, size: int) -> Case:
    """More examples, heads and places."""
    case = Case({"x": draw.normal(size, size + 2, 4 * size)}, init={"d_model": 4 * size, "n_heads": size})
    return replace(case, state=draw.weights(rotary.RotaryAttention(4 * size, size)))


def one_head(draw: Draw) -> Case:
    """One example, one head, and as many places as columns."""
    case = Case({"x": draw.normal(1, 4, 4)}, init={"d_model": 4, "n_heads": 1})
    return replace(case, state=draw.weights(rotary.RotaryAttention(4, 1)))


ROTARY_ATTENTION = Exercise(
    reference=rotary.RotaryAttention,
    rows=(
        rows.numbers(3.75, plain, gradients=False, title="Causal attention of turned queries and keys is right."),
        rows.numbers(
            1.75,
            own_frequencies,
            other_base,
            name="frequencies",
            gradients=False,
            title="Base and frequencies may be others.",
        ),
        rows.numbers(1.25, squeezed, name="scale", gradients=False, title="Positions may be squeezed."),
        merged(
            rows.edge(
                0.75,
                far,
                name="edges",
                gradients=False,
                title="Far positions are as exact as near ones; gradients reach input, maps and their biases.",
            ),
            rows.numbers(0, plain, with_bias, one_head),
        ),
        rows.errors(0.5, plain, odd_heads, uneven, title="A width that is not heads of an even width is a ValueError."),
        kept_on_any_device(0.5, plain, own_frequencies),
        rows.no_loop(0.5, longer, over="examples, heads or positions"),
    ),
    forbidden=ATTENTION,
    rule_case=(plain,),
)
