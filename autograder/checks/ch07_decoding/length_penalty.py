"""The check of ``length_penalty``: two ways of making long texts and short ones comparable."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import decoding


def _case(draw: Draw, **options: float | str) -> Case:
    return Case({"length": int(draw.integers(3, 30, 1)), "alpha": 0.1 * int(draw.integers(2, 10, 1)), **options})


def power(draw: Draw) -> Case:
    """The default kind."""
    return _case(draw)


def named_power(draw: Draw) -> Case:
    """The same kind by its name, and an alpha above 1."""
    return _case(draw, kind="power", alpha=1.7)


def wu(draw: Draw) -> Case:
    """The other kind."""
    return _case(draw, kind="wu")


def wu_of_one(draw: Draw) -> Case:
    """A text of one token has the penalty 1."""
    return _case(draw, kind="wu", length=1)


def no_penalty(draw: Draw) -> Case:
    """Alpha 0 divides by 1."""
    return _case(draw, alpha=0.0)


def no_token(draw: Draw) -> Case:
    """A text without tokens."""
    return _case(draw, length=0)


def unknown_kind(draw: Draw) -> Case:
    """A kind that there is not."""
    return _case(draw, kind="root")


LENGTH_PENALTY = Exercise(
    reference=decoding.length_penalty,
    rows=(
        rows.numbers(1.5, power, named_power, title="The length to the power of alpha."),
        rows.numbers(1, wu, wu_of_one, name="wu", title="With kind 'wu', (5 + length) / 6 to the power of alpha."),
        rows.edge(0.25, no_penalty, name="zero", title="With alpha 0 it is 1.", dtypes=()),
        rows.errors(
            0.25, power, no_token, unknown_kind, title="A text of no tokens, and an unknown kind, are a ValueError."
        ),
    ),
)
