"""Share logits whose cut-off does not depend on rounding, and common rows, among the checks of the samplers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.rows import Maker, Row
from autograder.checks.combined_rows import also_asking, joined

Sampler = Callable[..., Tensor]
Parameters = Mapping[str, Any]
Drawn = Callable[[Draw, int], Parameters]
# Powers of 1/2 whose sum is one too (see ``exact``).
_POWERS = ((0, 0), (0, 1, 1), (0, 1, 2, 2), (0, 0, 0, 0), (0, 0, 1, 1, 1, 1), (0, 1, 2, 4, 4, 4, 4))


def logits_for(draw: Draw, sampler: Sampler, parameters: Parameters, *shape: int, part: bool = False) -> Tensor:
    """Return logits that the sampler cuts alike if its parameters are a little larger or smaller.

    Every other row is peaked. What two right solutions compute differs in the last digits, and a token that stands exactly on the
    threshold would be a matter of luck.

    Args:
        draw: where the numbers come from.
        sampler: the reference.
        parameters: its parameters by name.
        shape: the shape of the logits.
        part: at least one token of each row is cut, and at least two are kept in one row.
    """
    scale = torch.ones(shape[:-1]).flatten()
    scale[1::2] = 2.5
    while True:
        logits = draw.normal(*shape) * scale.view(*shape[:-1], 1)
        if is_robust(sampler, parameters, logits) and (not part or _cuts_a_part(sampler(logits, **parameters))):
            return logits


def is_robust(sampler: Sampler, parameters: Parameters, logits: Tensor) -> bool:
    """Return whether small changes of any parameter, or of the logits, keep the same tokens."""
    allowed = sampler(logits, **parameters) > -torch.inf
    others = [{**parameters, name: value * by} for by in (0.99, 1.01) for name, value in _shares(parameters)]
    filtered = [sampler(logits, **other) for other in others]
    filtered += [sampler(logits * by, **parameters) for by in (0.999, 1.001)]
    return all(torch.equal(other > -torch.inf, allowed) for other in filtered)


def plain(sampler: Sampler, parameters: Parameters) -> Maker:
    """One row of logits for each example of a batch."""

    def matrix(draw: Draw) -> Case:
        b, more = draw.sizes(2, low=3)
        return Case({"logits": logits_for(draw, sampler, parameters, b, 6 + more, part=True), **parameters})

    return matrix


def of_three_axes(sampler: Sampler, parameters: Parameters) -> Maker:
    """A row of logits for each position of each example."""

    def three_axes(draw: Draw) -> Case:
        b, t, more = draw.sizes(3)
        return Case({"logits": logits_for(draw, sampler, parameters, b, t, 6 + more, part=True), **parameters})

    return three_axes


def of_one_axis(sampler: Sampler, parameters: Parameters) -> Maker:
    """A single row of logits."""

    def one_axis(draw: Draw) -> Case:
        return Case({"logits": logits_for(draw, sampler, parameters, 9), **parameters})

    return one_axis


def with_holes(sampler: Sampler, parameters: Parameters) -> Maker:
    """Logits of which some are excluded already, others in each row."""

    def holes(draw: Draw) -> Case:
        while True:
            logits = draw.normal(5, 9)
            for row in range(5):
                logits[row, draw.permutation(9)[: 2 + row % 3]] = -torch.inf
            if is_robust(sampler, parameters, logits):
                return Case({"logits": logits, **parameters})

    return holes


def with_equals(sampler: Sampler, parameters: Parameters) -> Maker:
    """Logits of which each occurs twice, so that a cut after any number of tokens is likely to part two equals."""

    def equals(draw: Draw) -> Case:
        logits = logits_for(draw, sampler, parameters, 10, 5).repeat(1, 2)
        while not is_robust(sampler, parameters, logits):
            logits = logits_for(draw, sampler, parameters, 10, 5).repeat(1, 2)
        return Case({"logits": logits[:, draw.permutation(10)], **parameters})

    return equals


def growing(sampler: Sampler, parameters: Parameters) -> Callable[[Draw, int], Case]:
    """More rows, of more tokens."""

    def more(draw: Draw, size: int) -> Case:
        return Case({"logits": logits_for(draw, sampler, parameters, 2 * size, 3 + size), **parameters})

    return more


def manners(points: float, maker: Maker, more: Callable[[Draw, int], Case]) -> Row:
    """The inputs stay, and nothing loops."""
    title = "The inputs are left as they were, and there is no Python loop over rows or tokens."
    return joined("manner", title, points, rows.inputs_kept(1, maker), rows.no_loop(1, more, over="rows or tokens"))


def filter_rows(
    sampler: Sampler,
    usual: Parameters,
    other: Parameters,
    *edges: Maker,
    drawn: Drawn,
    title: str,
    refused: Sequence[Parameters],
    errors: str,
    points: float = 3,
    also: Sequence[Maker] = (),
    edge: str = "What was excluded stays so, equal logits share one fate, and the limits of the parameter work.",
    tied: Maker | None = None,
    equals: bool = True,
    accept: Callable[[Case], bool] = lambda case: True,
) -> tuple[Row, ...]:
    """Return the rows of a filter: numbers, many random batches, edges, manner, errors.

    Args:
        sampler: the reference.
        usual: parameters by name, for most cases.
        other: parameters for the case of three axes.
        edges: more cases for the row of edges, beside excluded tokens and equals.
        drawn: draws the parameters of a random case.
        title: what the row of numbers asks.
        refused: parameters that are out of range.
        errors: what the row of errors asks.
        points: the points of the exercise; with three of them, manner and errors are one row.
        also: more cases for the row of numbers.
        edge: what the row of edges asks.
        tied: makes random cases with ties and excluded tokens for the row of edges; by default they are drawn with ``drawn``.
        equals: ask in the row of edges what happens to equal logits at the cut.
        accept: whether a random case belongs to the second row.
    """
    matrix = plain(sampler, usual)
    wrong = [_with(matrix, parameters) for parameters in refused]
    at_the_edge = rows.edge(
        0.5,
        with_holes(sampler, usual),
        *[with_equals(sampler, usual)] * equals,
        *edges,
        of_three_axes(sampler, other),
        of_one_axis(sampler, usual),
        name="edges",
        title=f"{edge} Three axes and a single row work too, and gradients flow through what is kept.",
    )
    some_tied = rows.many(0, tied or with_ties(sampler, drawn), count=24, title="")
    manner = manners(0.25, matrix, growing(sampler, usual))
    refusals = rows.errors(0.25, matrix, *wrong, title=errors)
    last = (joined("manner", f"{manner.title} {errors}", 0.25, manner, refusals),) if points < 4 else (manner, refusals)
    return (
        rows.numbers(1.5 if points < 4 else 2, matrix, *also, title=title, gradients=False),
        rows.many(
            0.75 if points < 4 else 1,
            any_batch(sampler, drawn, accept),
            title="Many small random batches with other parameters are right as well.",
        ),
        also_asking(at_the_edge, some_tied),
        *last,
    )


def any_batch(sampler: Sampler, drawn: Drawn, accept: Callable[[Case], bool] = lambda case: True) -> Maker:
    """A small batch of any spread, and parameters of any size."""

    def batch(draw: Draw) -> Case:
        while True:
            b, v = int(draw.integers(1, 4)), int(draw.integers(3, 9))
            logits, parameters = draw.normal(b, v, scale=_spread(draw)), drawn(draw, v)
            case = Case({"logits": logits, **parameters})
            if is_robust(sampler, parameters, logits) and accept(case):
                return case

    return batch


def with_ties(sampler: Sampler, drawn: Drawn) -> Maker:
    """A few logits that come again and again, some of them excluded."""

    def ties(draw: Draw) -> Case:
        while True:
            b, v = int(draw.integers(1, 4)), int(draw.integers(1, 8))
            logits = _with_gaps(draw, draw.normal(3, scale=_spread(draw))[draw.integers(0, 3, b, v)])
            parameters = drawn(draw, v)
            if is_robust(sampler, parameters, logits):
                return Case({"logits": logits, **parameters})

    return ties


def on_the_threshold(name: str, *values: float) -> Maker:
    """Probabilities that are powers of 1/2, some of them equal, with gaps between them, and a parameter that is met exactly."""

    def met(draw: Draw) -> Case:
        bits = _POWERS[int(draw.integers(0, len(_POWERS)))]
        values_of_bits = [-math.log(2) * bit for bit in bits] + [-math.inf] * int(draw.integers(0, 3))
        logits = torch.tensor(values_of_bits, dtype=torch.float64)
        order = torch.stack([torch.tensor(draw.order(len(logits))) for _ in range(2)])
        return Case({"logits": logits[order], name: values[int(draw.integers(0, len(values)))]})

    return met


def share(draw: Draw, low: float = 0.02, high: float = 0.98) -> float:
    """Draw a number between two others, with three digits."""
    return round(low + (high - low) * int(draw.integers(0, 1000)) / 999, 3)


def shares(name: str, low: float = 0.02, high: float = 0.98) -> Drawn:
    """Draw a parameter by name, whatever the number of tokens."""
    return lambda draw, v: {name: share(draw, low, high)}


def _spread(draw: Draw) -> float:
    return (0.4, 1.0, 2.5)[int(draw.integers(0, 3))]


def _with_gaps(draw: Draw, logits: Tensor) -> Tensor:
    """Exclude every fourth token or so, and never the best of a row."""
    gaps = (draw.integers(0, 4, *logits.shape) == 0) & (logits < logits.amax(dim=-1, keepdim=True))
    return logits.masked_fill(gaps, -torch.inf)


def fixed(logits: Sequence[Any], **parameters: Any) -> Maker:
    """The logits that are given, with a random number added to each row, which changes no probability."""

    def given(draw: Draw) -> Case:
        rows_of_logits = torch.tensor(logits)
        return Case({"logits": rows_of_logits + draw.normal(*rows_of_logits.shape[:-1], 1), **parameters})

    return given


def exact(*bits: float, **parameters: Any) -> Maker:
    """Probabilities that are powers of 1/2, in any order, so that one can stand exactly on a threshold.

    The logits are in double precision. Each is below the largest logit by log 2 times a power of 2, whose exponential is exact in single
    and in double precision. So rounding does not decide on which side of the threshold a right solution puts them.

    Args:
        bits: how much less probable than the most probable token each is, as a power of 1/2: 0, 1, 2, 4 or 8.
        parameters: the other arguments.
    """

    def powers(draw: Draw) -> Case:
        logits = -math.log(2) * torch.tensor(bits, dtype=torch.float64)
        order = torch.stack([torch.tensor(draw.order(len(bits))) for _ in range(3)])
        return Case({"logits": logits[order], **parameters})

    return powers


def _with(maker: Maker, parameters: Parameters) -> Maker:
    return lambda draw: maker(draw).with_arguments(**parameters)


def _shares(parameters: Parameters) -> list[tuple[str, float]]:
    return [(name, value) for name, value in parameters.items() if isinstance(value, float) and value not in (0, 1)]


def _cuts_a_part(result: Tensor) -> bool:
    number = (result > -torch.inf).sum(dim=-1)
    return bool((number < result.shape[-1]).any() and (number > 1).any())
