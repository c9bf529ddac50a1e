"""The check of ``random_span_mask``: the required number of tokens and spans, at random positions."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.variants import changed
from tfcourse import t5


def _case(draw: Draw, **options: float) -> Case:
    prop = {"kind": "Generator", "init": {"seed": int(draw.integers(1, 10**6))}}
    return Case({"length": 40 + int(draw.integers(0, 40)), **options}, props={"generator": prop})


def usual(draw: Draw) -> Case:
    """The shares of the paper."""
    return _case(draw)


def dense(draw: Draw) -> Case:
    """A larger share, and shorter spans."""
    return _case(draw, noise_density=0.4, mean_span_length=2.0)


def crowded(draw: Draw) -> Case:
    """So much is hidden that there are as many spans as kept tokens."""
    return _case(draw, noise_density=0.8, mean_span_length=1.0)


def short(draw: Draw) -> Case:
    """Two tokens, of which one is hidden."""
    return usual(draw).with_arguments(length=2)


def hardly_any(draw: Draw) -> Case:
    """A share so small that it would hide nothing."""
    return usual(draw).with_arguments(length=12, noise_density=0.01)


def nearly_all(draw: Draw) -> Case:
    """A share so large that it would hide everything."""
    return usual(draw).with_arguments(length=10 + int(draw.integers(0, 8)), noise_density=0.99)


def one_long_span(draw: Draw) -> Case:
    """A mean length beyond the number of hidden tokens."""
    return usual(draw).with_arguments(mean_span_length=40.0)


def halves(length: int, mean_span_length: float) -> rows.Maker:
    """A quarter of the tokens, or the number of spans, is half way between two integers."""

    def rounded(draw: Draw) -> Case:
        return usual(draw).with_arguments(length=length, noise_density=0.25, mean_span_length=mean_span_length)

    return rounded


def single(draw: Draw) -> Case:
    """One token: nothing can be kept beside it."""
    return usual(draw).with_arguments(length=1)


def everything(draw: Draw) -> Case:
    """A share of 1."""
    return usual(draw).with_arguments(noise_density=1.0)


def any_length(draw: Draw) -> Case:
    """From 4 tokens to 120, with the shares of the paper."""
    return _case(draw).with_arguments(length=int(draw.integers(4, 121)))


RANDOM_SPAN_MASK = Exercise(
    reference=t5.random_span_mask,
    rows=(
        rows.numbers(
            3.25,
            usual,
            gradients=False,
            title="With the draws in the order of the docstring, the mask is right.",
        ),
        rows.numbers(2, dense, name="shares", gradients=False, title="Other shares and mean lengths may be asked for."),
        rows.edge(
            0.5,
            short,
            hardly_any,
            crowded,
            nearly_all,
            one_long_span,
            halves(42, 1.5),
            halves(46, 1.5),
            halves(40, 4.0),
            halves(56, 4.0),
            name="limits",
            gradients=False,
            dtypes=(),
            title="At least one token is hidden and one is kept, no span is empty, and a half is rounded to the even number.",
        ),
        rows.many(0.75, any_length, count=40, title="The masks of many texts, short and long, are right."),
        rows.errors(
            0.5,
            usual,
            single,
            everything,
            changed(usual, noise_density=0.0),
            changed(usual, mean_span_length=0.5),
            title="A text of one token, a share of 0 or 1 and a mean length below 1 are a ValueError.",
        ),
    ),
)
