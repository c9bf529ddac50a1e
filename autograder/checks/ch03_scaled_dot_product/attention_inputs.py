"""Inputs of attention and of its projections, for the exercises of chapter 03 that come after attention itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from torch import Tensor

from autograder.checking.draw import Case, Draw
from autograder.checking.request import Action
from autograder.checking.rows import Maker, Probe, Row, no_loop

# The largest of the numbers in large inputs.
LOUDEST = 19


def qkv(draw: Draw) -> Case:
    """Queries, keys and values with two leading dimensions, no mask."""
    b, h, t, s, dh, dv = _sizes(draw)
    return Case({"q": draw.normal(b, h, t, dh), "k": draw.normal(b, h, s, dh), "v": draw.normal(b, h, s, dv)})


def batch(draw: Draw) -> Case:
    """Queries, keys and values with one leading dimension, no mask."""
    b, _, t, s, dh, dv = _sizes(draw)
    return Case({"q": draw.normal(b, t, dh), "k": draw.normal(b, s, dh), "v": draw.normal(b, s, dv)})


def unbatched(draw: Draw) -> Case:
    """Queries, keys and values without a leading dimension."""
    t, s, dh, dv = draw.sizes(4, low=3)
    return Case({"q": draw.normal(t, dh), "k": draw.normal(s, dh), "v": draw.normal(s, dv)})


def masked(draw: Draw) -> Case:
    """With a mask for each example, in which every query may attend to something."""
    case = batch(draw)
    q, k = case.arguments["q"], case.arguments["k"]
    return case.with_arguments(mask=draw.mask(*q.shape[:-1], k.shape[-2]))


def single_size(draw: Draw) -> Case:
    """As many queries as keys, and as wide as long: the shapes do not show which axis is which. A batch of one."""
    return Case({name: draw.normal(1, 4, 4) for name in ("q", "k", "v")})


def shared_mask(draw: Draw) -> Case:
    """With one mask for all examples."""
    case = batch(draw)
    return case.with_arguments(mask=draw.mask(case.arguments["q"].shape[-2], case.arguments["k"].shape[-2]))


def empty_row(draw: Draw) -> Case:
    """With a query that may attend to nothing."""
    return without_second_row(masked(draw))


def without_second_row(case: Case) -> Case:
    """Forbid the second query of a case everything."""
    mask = case.arguments["mask"].clone()
    mask[..., 1, :] = False
    return case.with_arguments(mask=mask)


def large(draw: Draw) -> Case:
    """Scores in the hundreds: an exponential overflows unless the maximum is taken off first. The numbers are whole,
    so that sums of their products are exact and the order of operations cannot matter. The root of the width is 2.
    """
    b, (t, s, dv) = _sizes(draw)[0], draw.sizes(3, low=5)
    q, k = _loud(draw, b, t, 4), _loud(draw, b, s, 4)
    k[:, int(draw.integers(0, s))] = q[:, 0]
    return Case({"q": q, "k": k, "v": draw.normal(b, s, dv)})


def longer(draw: Draw, size: int) -> Case:
    """Inputs whose leading and length axes grow with a size."""
    b, h, t, s = size, size, size + 1, 2 * size + 1
    return Case({"q": draw.normal(b, h, t, 3), "k": draw.normal(b, h, s, 3), "v": draw.normal(b, h, s, 2)})


def projections(draw: Draw, d: int, dk: int, dv: int) -> dict[str, Tensor]:
    """The three matrices, scaled so that a projected row is about as long as the row itself."""
    shapes = {"w_q": (d, dk), "w_k": (d, dk), "w_v": (d, dv)}
    return {name: draw.normal(*shape, scale=d**-0.5) for name, shape in shapes.items()}


def two_sequences(draw: Draw) -> Case:
    """One sequence asks another, in a batch, with matrices that project both."""
    b, dv, t, s, d, dk = _sizes(draw)
    return Case({"x_q": draw.normal(b, t, d), "x_kv": draw.normal(b, s, d), **projections(draw, d, dk, dv)})


def one_example(draw: Draw) -> Case:
    """One sequence asks another, without a leading dimension."""
    t, s, d, dk, dv = draw.sizes(5, low=3)
    return Case({"x_q": draw.normal(t, d), "x_kv": draw.normal(s, d), **projections(draw, d, dk, dv)})


def single_width(draw: Draw) -> Case:
    """As many queries as keys, and square matrices: the shapes do not show what changed places. A batch of one."""
    return Case({"x_q": draw.normal(1, 4, 4), "x_kv": draw.normal(1, 4, 4), **projections(draw, 4, 4, 4)})


def together(row: Row, *others: Row) -> Row:
    """One row that combines the tests of several, under the name and for the points of the first."""
    return replace(row, probes=lambda draw: [probe for each in (row, *others) for probe in each.probes(draw)])


def inputs_and_device(points: float, *makers: Maker) -> Row:
    """One side row for two manners: no argument is changed in place, and nothing is made on another device."""
    title = "The inputs are left as they were, and it runs on the device of its inputs, whichever that is."

    def probes(draw: Draw) -> Sequence[Probe]:
        cases = [draw.case(maker) for maker in makers]  # a maker that is asked twice makes two cases
        questions: tuple[tuple[Action, str], ...] = (("call", "unmutated"), ("meta", "matches"))
        return [Probe((case.request(action),), judge) for case in cases for action, judge in questions]

    return Row("inputs and device", title, points, probes, side=True)


def manners(points: float, makers: Sequence[Maker], growing: Callable[[Draw, int], Case], *, over: str) -> Row:
    """One side row for three manners: inputs left alone, their device, and no Python loop over what ``over`` names."""
    loops = no_loop(points, growing, over=over)
    title = f"The inputs are left as they were, it runs on their device, and there is no Python loop over {over}."
    row = together(inputs_and_device(points, *makers), loops)
    return replace(row, name="manners", title=title)


def _sizes(draw: Draw) -> tuple[int, ...]:
    """Six pairwise distinct sizes: two small ones to lead (they multiply the work and teach nothing more), then four
    larger.
    """
    first = int(draw.integers(2, 4))
    return (first, 5 - first, *draw.sizes(4, low=4))


def _loud(draw: Draw, *shape: int) -> Tensor:
    """Integers from 10 to 19, of either sign."""
    return (draw.integers(10, LOUDEST + 1, *shape) * (2 * draw.integers(0, 2, *shape) - 1)).float()
