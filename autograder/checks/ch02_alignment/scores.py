"""Queries and keys to score, and the rows that the six scores of chapter 02 share."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checks.ch05_transformer.ready_made import ATTENTION

OVER = "examples, queries or keys"
FORBIDDEN = ATTENTION

# Widths whose square root is no whole number: rounded to another precision it shows, and no width has the size of another axis.
_WIDTHS = (6, 7, 11)


def _pair(draw: Draw, b: int, t: int, s: int) -> Case:
    d = _WIDTHS[int(draw.integers(0, len(_WIDTHS)))]
    return Case({"queries": draw.normal(b, t, d), "keys": draw.normal(b, s, d)})


def pair(draw: Draw) -> Case:
    """Queries and keys of one width."""
    return _pair(draw, *draw.sizes(3))


def one_example(draw: Draw) -> Case:
    """Queries and keys of a single example."""
    return _pair(draw, 1, *draw.sizes(2))


def as_many(draw: Draw) -> Case:
    """As many queries as keys: the shapes do not show that two axes changed places."""
    b, t = draw.sizes(2)
    return _pair(draw, b, t, t)


def lengths(size: int) -> tuple[int, int, int]:
    """Numbers of examples, queries and keys that grow with a size."""
    return size, 2 * size, 2 * size + 1


def more_pairs(draw: Draw, size: int) -> Case:
    """More examples, queries and keys."""
    b, t, s = lengths(size)
    return Case({"queries": draw.normal(b, t, 5), "keys": draw.normal(b, s, 5)})


def of_other_batch(maker: rows.Maker) -> rows.Maker:
    """Make what a maker makes, with the keys of one more example."""

    def unmatched(draw: Draw) -> Case:
        case = maker(draw)
        keys = case.arguments["keys"]
        return case.with_arguments(keys=draw.normal(len(keys) + 1, *keys.shape[1:]))

    return unmatched


def single_size(draw: Draw) -> Case:
    """One example with as many queries as keys, and as wide as long: the shapes do not show which axis is which."""
    return Case({"queries": draw.normal(1, 4, 4), "keys": draw.normal(1, 4, 4)})


def scores(points: tuple[float, float], plain: rows.Maker, *others: rows.Maker) -> tuple[rows.Row, rows.Row]:
    """Return the rows of numbers of a score that compares queries with keys.

    Args:
        points: the points of the scores and of their gradients.
        plain: makes the plain case.
        others: make cases of other sizes.
    """
    return (
        rows.numbers(
            points[0],
            plain,
            name="scores",
            gradients=False,
            title="Every query is scored against every key of its example, (B, T, S).",
        ),
        rows.numbers(
            points[1],
            plain,
            *others,
            name="gradients",
            title="Gradients are right, and so are the scores of a single example and of equal sizes.",
        ),
    )


def matrices_fit(points: float, *makers: rows.Maker) -> rows.Row:
    """Return the row that requires the error about a matrix; the first case is valid."""
    return rows.errors(
        points,
        *makers,
        title="A matrix that does not fit, and queries and keys that are not of one batch, are a ValueError.",
    )
