"""The check of ``merge_heads``: the heads side by side again."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import multihead


def heads(draw: Draw) -> Case:
    """Heads to merge, of any number and width."""
    return Case({"x": draw.normal(*draw.sizes(4))})


def single_size(draw: Draw) -> Case:
    """A batch of one, and as many heads as positions and columns: the shapes do not show which axis is which."""
    return Case({"x": draw.normal(1, 3, 3, 3)})


def one_head(draw: Draw) -> Case:
    """A single head."""
    b, t, d = draw.sizes(3)
    return Case({"x": draw.normal(b, 1, t, d)})


def many_heads(draw: Draw, size: int) -> Case:
    """More examples, heads and positions."""
    return Case({"x": draw.normal(size, 2 * size, size + 1, 3)})


def of_axes(count: int) -> rows.Maker:
    """Make a case of so many axes: with three there are no heads to merge."""

    def positions(draw: Draw) -> Case:
        return Case({"x": draw.normal(*draw.sizes(count))})

    return positions


MERGE_HEADS = Exercise(
    reference=multihead.merge_heads,
    rows=(
        rows.numbers(
            1.5,
            heads,
            gradients=False,
            title="At every position, the columns of head 0 come first, then those of head 1 …",
        ),
        rows.numbers(
            0.5,
            heads,
            single_size,
            one_head,
            name="gradients",
            title="Gradients flow back, and as many heads as positions, a single head and a batch of one do no harm.",
        ),
        rows.no_loop(0.5, many_heads, over="examples, positions or heads"),
        rows.errors(0.5, heads, of_axes(3), of_axes(5), title="Anything but four dimensions is a ValueError."),
    ),
    forbidden=("einops",),
    rule_case=heads,
)
