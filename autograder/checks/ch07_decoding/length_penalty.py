"""The check of ``length_penalty``: two ways of making long texts and short ones comparable."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.combined_rows import also_asking
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


def no_penalty(draw: Draw) -> Case:
    """Alpha 0 divides by 1."""
    return _case(draw, alpha=0.0)


def no_token(draw: Draw) -> Case:
    """A text without tokens."""
    return _case(draw, length=0)


def unknown_kind(draw: Draw) -> Case:
    """A kind that there is not."""
    return _case(draw, kind="root")


def any_power(draw: Draw) -> Case:
    """Any length from 1 on, and any alpha: 0, 1 and more than 1 among them."""
    return Case(
        {
            "length": int(draw.integers(1, (2, 6, 60)[int(draw.integers(0, 3))])),
            "alpha": 0.25 * int(draw.integers(0, 9)),
        }
    )


def any_wu(draw: Draw) -> Case:
    """The same of the other kind."""
    return any_power(draw).with_arguments(kind="wu")


LENGTH_PENALTY = Exercise(
    reference=decoding.length_penalty,
    rows=(
        rows.numbers(1.25, power, power, title="The length to the power of alpha.", gradients=False),
        also_asking(
            rows.numbers(
                1, wu, name="wu", title="With kind 'wu', (5 + length) / 6 to the power of alpha.", gradients=False
            ),
            rows.many(0, any_wu, title=""),
        ),
        also_asking(
            rows.many(
                0.5,
                any_power,
                title="Many lengths and values of alpha are right, including 0; the kind may be given by name.",
            ),
            rows.numbers(0, named_power, no_penalty, gradients=False),
        ),
        rows.errors(
            0.25, power, no_token, unknown_kind, title="A text of no tokens, and an unknown kind, are a ValueError."
        ),
    ),
)
