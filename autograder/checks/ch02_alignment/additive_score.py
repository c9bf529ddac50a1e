"""The check of ``additive_score``: a small network with one hidden layer scores query and key."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch02_alignment.scores import FORBIDDEN, OVER, lengths, matrices_fit, of_other_batch, scores
from tfcourse import alignment


def _additive(draw: Draw, b: int, t: int, s: int, dq: int, dk: int, da: int) -> Case:
    weights = {"w_q": draw.normal(dq, da, scale=0.5), "w_k": draw.normal(dk, da, scale=0.5), "v": draw.normal(da)}
    return Case({"queries": draw.normal(b, t, dq), "keys": draw.normal(b, s, dk), **weights})


def three_widths(draw: Draw) -> Case:
    """Queries and keys of two widths, and a hidden layer of a third."""
    return _additive(draw, *draw.sizes(6))


def one_width(draw: Draw) -> Case:
    """All widths equal, and as many queries as keys: the shapes do not show what changed places."""
    b, t, d = draw.sizes(3)
    return _additive(draw, b, t, t, d, d, d)


def one_example(draw: Draw) -> Case:
    """A batch of one."""
    return _additive(draw, 1, *draw.sizes(5))


def more_of_all(draw: Draw, size: int) -> Case:
    """More examples, queries and keys."""
    return _additive(draw, *lengths(size), 4, 3, 5)


def tall_query_matrix(draw: Draw) -> Case:
    """A query matrix with a row too many."""
    case = three_widths(draw)
    dq, da = case.arguments["w_q"].shape
    return case.with_arguments(w_q=draw.normal(dq + 1, da))


def tall_key_matrix(draw: Draw) -> Case:
    """A key matrix with a row too many."""
    case = three_widths(draw)
    dk, da = case.arguments["w_k"].shape
    return case.with_arguments(w_k=draw.normal(dk + 1, da))


def with_v(*axes: int | None) -> rows.Maker:
    """Make a case whose ``v`` has these axes; None stands for the width of the hidden layer."""

    def unfit(draw: Draw) -> Case:
        case = three_widths(draw)
        width = len(case.arguments["v"])
        return case.with_arguments(v=draw.normal(*(axis or width for axis in axes)))

    return unfit


ADDITIVE_SCORE = Exercise(
    reference=alignment.additive_score,
    rows=(
        *scores((3, 1), three_widths, one_width, one_example),
        rows.precision(0.5, three_widths),
        rows.device(0.5, three_widths),
        rows.no_loop(0.5, more_of_all, over=OVER),
        matrices_fit(
            0.5,
            three_widths,
            tall_query_matrix,
            tall_key_matrix,
            with_v(1),
            with_v(),
            with_v(None, 2),
            of_other_batch(three_widths),
        ),
    ),
    forbidden=FORBIDDEN,
    rule_case=three_widths,
)
