"""The check of ``head_ablation``: the output without head h, for every head h."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch03_scaled_dot_product.attention_inputs import manners
from tfcourse import multihead


def outputs_of_heads(draw: Draw) -> Case:
    """The outputs of the heads, and an output map without a bias."""
    b, h, t, dh, d = draw.sizes(5, low=3)  # with two heads, H - 1 would be 1
    return Case({"head_outputs": draw.normal(b, h, t, dh), "o_weight": draw.normal(d, h * dh)})


def single_size(draw: Draw) -> Case:
    """A batch of one, and as many heads as positions and columns: the shapes do not show which axis is which."""
    return Case({"head_outputs": draw.normal(1, 3, 3, 3), "o_weight": draw.normal(9, 9)})


def one_head(draw: Draw) -> Case:
    """A single head."""
    b, t, dh, d = draw.sizes(4)
    return Case({"head_outputs": draw.normal(b, 1, t, dh), "o_weight": draw.normal(d, dh)})


def with_bias(draw: Draw) -> Case:
    """Heads and an output map with a bias."""
    case = outputs_of_heads(draw)
    return case.with_arguments(o_bias=draw.normal(case.arguments["o_weight"].shape[0]))


def small_numbers(draw: Draw) -> Case:
    """Numbers whose sums half precision rounds by little, in whichever order they are added."""
    case = outputs_of_heads(draw)
    return case.with_arguments(**{name: 0.3 * value for name, value in case.arguments.items()})


def many_heads(draw: Draw, size: int) -> Case:
    """More examples, heads and positions."""
    heads = 2 * size
    return Case({"head_outputs": draw.normal(size, heads, size + 1, 2), "o_weight": draw.normal(3, heads * 2)})


def unfit_weight(draw: Draw) -> Case:
    """An output map with a column too few."""
    case = outputs_of_heads(draw)
    return case.with_arguments(o_weight=case.arguments["o_weight"][:, 1:])


def wide_weight(draw: Draw) -> Case:
    """An output map with a head too many."""
    case = outputs_of_heads(draw)
    weight, dh = case.arguments["o_weight"], case.arguments["head_outputs"].shape[-1]
    return case.with_arguments(o_weight=draw.normal(weight.shape[0], weight.shape[1] + dh))


def merged(draw: Draw) -> Case:
    """Heads that are side by side already: three dimensions."""
    case = outputs_of_heads(draw)
    return case.with_arguments(head_outputs=case.arguments["head_outputs"].transpose(1, 2).flatten(2))


def one_more_axis(draw: Draw) -> Case:
    """Heads of one example in five dimensions."""
    case = outputs_of_heads(draw)
    return case.with_arguments(head_outputs=case.arguments["head_outputs"][None])


HEAD_ABLATION = Exercise(
    reference=multihead.head_ablation,
    rows=(
        rows.numbers(2.75, outputs_of_heads, gradients=False, title="Entry h is the output without head h."),
        rows.numbers(1.5, with_bias, name="bias", gradients=False, title="The bias stays, whichever head is gone."),
        rows.numbers(
            0.5,
            outputs_of_heads,
            single_size,
            one_head,
            name="gradients",
            title="Gradients are right, a batch of one works, and without its only head the output is zero.",
        ),
        rows.precision(0.5, small_numbers),
        manners(0.75, (outputs_of_heads, with_bias), many_heads, over="examples, positions or heads"),
        rows.errors(
            0.5,
            outputs_of_heads,
            unfit_weight,
            wide_weight,
            merged,
            one_more_axis,
            title="A weight without H·Dh columns, and heads of other than four dimensions, are a ValueError.",
        ),
    ),
)
