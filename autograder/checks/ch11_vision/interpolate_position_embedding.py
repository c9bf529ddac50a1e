"""The check of ``interpolate_position_embedding``: a table of positions for another grid."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch12_rotary.manners import merged
from tfcourse import vit

SIDE, D = 4, 5


def _case(draw: Draw, grid: tuple[int, int], *, n_extra: int = 1, **options: int) -> Case:
    return Case({"table": draw.normal(n_extra + SIDE**2, D), "grid": grid, **options})


def higher(draw: Draw) -> Case:
    """More rows, fewer columns."""
    return _case(draw, (6 + int(draw.integers(0, 2)), 2))


def wider(draw: Draw) -> Case:
    """More columns, fewer rows."""
    return _case(draw, (3, 7 + int(draw.integers(0, 3))))


def no_extra(draw: Draw) -> Case:
    """Positions of patches alone."""
    return _case(draw, (7, 2), n_extra=0).with_arguments(n_extra=0)


def more_extra(draw: Draw) -> Case:
    """Several rows that belong to no patch."""
    return _case(draw, (2, 6), n_extra=3).with_arguments(n_extra=3)


def same_grid(draw: Draw) -> Case:
    """The grid that the table was learned on."""
    return _case(draw, (SIDE, SIDE))


def same_count(draw: Draw) -> Case:
    """Another grid of as many places."""
    return _case(draw, (2, 8))


def in_half(draw: Draw) -> Case:
    """Large positions, of which little is left where they cancel out: what is rounded on the way shows there."""
    case = _case(draw, (20, 30))
    return case.with_arguments(table=1000 * case.arguments["table"])


def no_square(draw: Draw) -> Case:
    """A table whose patches fill no square."""
    return Case({"table": draw.normal(13, D), "grid": (3, 4)})


def one_patch(draw: Draw) -> Case:
    """A table of a single patch, which is the same everywhere."""
    return Case({"table": draw.normal(2, D), "grid": (2, 3)})


def no_patch(draw: Draw) -> Case:
    """A table that has a row for the class token alone."""
    return Case({"table": draw.normal(1, D), "grid": (2, 3)})


def too_many_extra(draw: Draw) -> Case:
    """A table that is shorter than the rows that belong to no patch."""
    return Case({"table": draw.normal(3, D), "grid": (2, 3), "n_extra": 4})


def equal_sizes(draw: Draw) -> Case:
    """As many columns as rows and columns of the grid, which is square but not that of the table."""
    return Case({"table": draw.normal(1 + SIDE**2, 3), "grid": (3, 3)})


INTERPOLATE_POSITION_EMBEDDING = Exercise(
    reference=vit.interpolate_position_embedding,
    rows=(
        rows.numbers(
            2.75,
            higher,
            wider,
            gradients=False,
            title="Positions are stretched to the grid; the first row stays as it is.",
        ),
        rows.numbers(
            1.5,
            no_extra,
            more_extra,
            name="extra",
            gradients=False,
            title="Other numbers of rows may belong to no patch.",
        ),
        merged(
            rows.edge(
                0.5,
                same_grid,
                same_count,
                equal_sizes,
                name="same",
                gradients=False,
                dtypes=(),
                title="The same grid gives the same numbers, another one of as many positions does not; gradients reach the table.",
            ),
            rows.numbers(0, higher),
        ),
        rows.precision(0.5, in_half),
        rows.inputs_kept(0.25, higher),
        rows.errors(
            0.5,
            higher,
            one_patch,
            no_square,
            no_patch,
            too_many_extra,
            title="Positions that fill no square are a ValueError; those of a single patch do.",
        ),
    ),
)
