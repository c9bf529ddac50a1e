"""The check of ``local_relation``: a convolution whose weights are made for each place."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch12_rotary.manners import kept_on_any_device
from tfcourse import vit


def _case(draw: Draw, groups: int, share: int, side: int = 3) -> Case:
    b, (high, wide) = 2, ((4, 6) if bool(draw.integers(0, 2)) else (6, 5))
    q, k = draw.normal(b, groups, high, wide), draw.normal(b, groups, high, wide)
    x = draw.normal(b, groups * share, high, wide)
    return Case({"x": x, "q": q, "k": k, "prior": draw.normal(groups, side, side)})


def near(draw: Draw) -> Case:
    """Neighbourhoods of 3 x 3; every channel has its own weights."""
    return _case(draw, 3, 1)


def farther(draw: Draw) -> Case:
    """Neighbourhoods of 5 x 5, which hardly fit into the picture."""
    return _case(draw, 2, 1, side=5)


def shared(draw: Draw) -> Case:
    """Two channels share their weights."""
    return _case(draw, 3, 2)


def widely_shared(draw: Draw) -> Case:
    """Three channels share their weights."""
    return _case(draw, 2, 3)


def precise(draw: Draw) -> Case:
    """Scores that are large, and hardly differ."""
    case = _case(draw, 3, 1)
    return case.with_arguments(prior=case.arguments["prior"] + 90)


def more(draw: Draw, size: int) -> Case:
    """More examples, channels and places."""
    q, k = draw.normal(size, size, size + 1, size), draw.normal(size, size, size + 1, size)
    x = draw.normal(size, 2 * size, size + 1, size)
    return Case({"x": x, "q": q, "k": k, "prior": draw.normal(size, 3, 3)})


def even(draw: Draw) -> Case:
    """A neighbourhood without a middle."""
    return _case(draw, 3, 1, side=4)


def uneven_groups(draw: Draw) -> Case:
    """Channels that cannot be divided into groups."""
    case = _case(draw, 3, 2)
    return case.with_arguments(x=case.arguments["x"][:, :5])


def higher_than_wide(draw: Draw) -> Case:
    """A neighbourhood of three columns and five rows."""
    return near(draw).with_arguments(prior=draw.normal(3, 5, 3))


def wider_than_high(draw: Draw) -> Case:
    """A neighbourhood of five columns and three rows."""
    return near(draw).with_arguments(prior=draw.normal(3, 3, 5))


def more_priors(draw: Draw) -> Case:
    """Priors for more groups than there are queries."""
    return _case(draw, 2, 3).with_arguments(prior=draw.normal(3, 3, 3))


def fewer_priors(draw: Draw) -> Case:
    """Priors for fewer groups than there are queries."""
    return _case(draw, 3, 2).with_arguments(prior=draw.normal(2, 3, 3))


def equal_sizes(draw: Draw) -> Case:
    """As many examples as channels, rows and columns, and neighbourhoods as large as the picture."""
    x, q, k = (draw.normal(3, 3, 3, 3) for _ in range(3))
    return Case({"x": x, "q": q, "k": k, "prior": draw.normal(3, 3, 3)})


LOCAL_RELATION = Exercise(
    reference=vit.local_relation,
    rows=(
        rows.numbers(
            3.25,
            near,
            farther,
            gradients=False,
            title="Neighbours in the image count by likeness and by where they stand.",
        ),
        rows.numbers(
            2,
            shared,
            widely_shared,
            name="groups",
            gradients=False,
            title="Neighbouring channels share their weights.",
        ),
        rows.numbers(
            0.5,
            near,
            equal_sizes,
            name="gradients",
            title="Gradients reach all inputs; all sizes may be equal.",
        ),
        rows.precision(0.5, precise),
        kept_on_any_device(0.5, near),
        rows.no_loop(0.5, more, over="examples, channels or positions"),
        rows.errors(
            0.75,
            near,
            even,
            uneven_groups,
            higher_than_wide,
            wider_than_high,
            more_priors,
            fewer_priors,
            title="A prior that is not square and odd, or does not fit, and uneven groups are a ValueError.",
        ),
    ),
)
