"""The check of ``window_attention``: windows, shifted windows, and a bias."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch05_transformer.ready_made import ATTENTION
from autograder.checks.ch12_rotary.manners import merged
from autograder.checks.variants import changed
from tfcourse import vit


def _case(
    draw: Draw, window: int, grid: tuple[int, int], b: int = 2, h: int = 3, dv: int | None = None, **options: int
) -> Case:
    dh = 3 + int(draw.integers(0, 2))
    q, k, v = draw.normal(b, h, *grid, dh), draw.normal(b, h, *grid, dh), draw.normal(b, h, *grid, dv or dh)
    return Case({"q": q, "k": k, "v": v, "window": window, **options})


def windows(draw: Draw) -> Case:
    """A grid of six windows that is not square."""
    return _case(draw, 2, (4, 6))


def other_windows(draw: Draw) -> Case:
    """A grid of larger windows, higher than wide."""
    return _case(draw, 3, (6, 3))


def shifted(draw: Draw) -> Case:
    """Shifted by less than half a window; there are several windows along both axes, or a roll along one of them would not show."""
    return _case(draw, 3, (6, 9), b=1, h=2, shift=1)


def far_shifted(draw: Draw) -> Case:
    """Shifted by more than half a window."""
    return _case(draw, 3, (9, 6), b=1, h=2, shift=2)


def biased(draw: Draw) -> Case:
    """A bias for each head and pair of places."""
    return _case(draw, 2, (4, 6)).with_arguments(bias=draw.normal(3, 4, 4))


def biased_alike(draw: Draw) -> Case:
    """One window, and as many heads as rows, columns and numbers of a row; with a bias."""
    q, k, v = (draw.normal(1, 3, 3, 3, 3) for _ in range(3))
    return Case({"q": q, "k": k, "v": v, "window": 3, "bias": draw.normal(3, 9, 9)})


def precise(draw: Draw) -> Case:
    """Queries and keys that make large scores, which hardly differ; the values have another width."""
    case = _case(draw, 2, (6, 4), dv=2)
    return case.with_arguments(q=case.arguments["q"] + 5, k=case.arguments["k"] + 5)


def more(draw: Draw, size: int) -> Case:
    """More examples, heads and windows."""
    q, k, v = (draw.normal(size, size // 2 + 1, 2 * size, 2, 1) for _ in range(3))
    return Case({"q": q, "k": k, "v": v, "window": 2, "shift": 1})


def left_over(draw: Draw) -> Case:
    """A column of the grid is left over."""
    return _case(draw, 3, (6, 7))


def row_left_over(draw: Draw) -> Case:
    """A row of the grid is left over."""
    return _case(draw, 3, (7, 6))


def single_places(draw: Draw) -> Case:
    """Windows of a single place each, which is the smallest side that there is."""
    return _case(draw, 1, (3, 2))


def too_far(draw: Draw) -> Case:
    """A shift by a whole window."""
    return _case(draw, 2, (4, 6), shift=2)


WINDOW_ATTENTION = Exercise(
    reference=vit.window_attention,
    rows=(
        rows.numbers(
            4, windows, other_windows, gradients=False, title="Every position attends to the positions of its window."
        ),
        rows.numbers(
            2.25,
            shifted,
            far_shifted,
            name="shift",
            gradients=False,
            title="Windows may be shifted; what comes from different sides of an edge stays apart.",
        ),
        rows.numbers(
            1.25, biased, name="bias", gradients=False, title="The bias is added to the scores before the softmax."
        ),
        merged(
            rows.precision(
                0.75,
                precise,
                title="Gradients are right; float64 and half precision come out as such; values may have another width.",
            ),
            rows.numbers(0, windows, biased_alike),
        ),
        rows.device(0.5, shifted),
        rows.no_loop(0.5, more, over="examples, heads or windows"),
        rows.errors(
            0.75,
            windows,
            single_places,
            left_over,
            row_left_over,
            too_far,
            changed(windows, shift=-1),
            title="Windows that do not fit, and shifts that are negative or too far, are a ValueError.",
        ),
    ),
    forbidden=ATTENTION,
    rule_case=(windows, shifted, biased),
)
