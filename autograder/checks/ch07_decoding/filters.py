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

Sampler = Callable[..., Tensor]
Parameters = Mapping[str, Any]


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


def joined(name: str, title: str, points: float, *parts: Row) -> Row:
    """Several side rows as one."""
    return Row(name, title, points, lambda draw: [probe for part in parts for probe in part.probes(draw)], side=True)


def manners(points: float, maker: Maker, more: Callable[[Draw, int], Case]) -> Row:
    """The inputs stay, and nothing loops."""
    title = "The inputs are left as they were, and there is no Python loop over rows or tokens."
    return joined("manner", title, points, rows.inputs_kept(1, maker), rows.no_loop(1, more, over="rows or tokens"))


def filter_rows(
    sampler: Sampler,
    usual: Parameters,
    other: Parameters,
    *edges: Maker,
    title: str,
    refused: Sequence[Parameters],
    errors: str,
    points: tuple[float, float, float, float] = (2, 0.25, 0.5, 0.25),
    also: Sequence[Maker] = (),
    edge: str = "What was excluded stays so, equal logits share one fate, and the limits of the parameter work.",
) -> tuple[Row, ...]:
    """Return the rows of a filter: numbers, edges, manner, errors.

    Args:
        sampler: the reference.
        usual: parameters by name, for most cases.
        other: parameters for the case of three axes.
        edges: more cases for the row of edges, beside excluded tokens and equals.
        title: what the row of numbers asks.
        refused: parameters that are out of range.
        errors: what the row of errors asks.
        points: the points of the four rows; other axes and gradients are edges.
        also: more cases for the row of numbers.
        edge: what the row of edges asks.
    """
    matrix = plain(sampler, usual)
    wrong = [_with(matrix, parameters) for parameters in refused]
    return (
        rows.numbers(points[0], matrix, *also, title=title, gradients=False),
        rows.edge(
            points[1],
            with_holes(sampler, usual),
            with_equals(sampler, usual),
            *edges,
            of_three_axes(sampler, other),
            of_one_axis(sampler, usual),
            name="edges",
            title=f"{edge} Three axes and a single row work too, and gradients flow through what is kept.",
        ),
        manners(points[2], matrix, growing(sampler, usual)),
        rows.errors(points[3], matrix, *wrong, title=errors),
    )


def fixed(logits: Sequence[Any], **parameters: Any) -> Maker:
    """The logits that are given, with a random number added to each row, which changes no probability."""

    def given(draw: Draw) -> Case:
        rows_of_logits = torch.tensor(logits)
        return Case({"logits": rows_of_logits + draw.normal(*rows_of_logits.shape[:-1], 1), **parameters})

    return given


def exact(*bits: float, **parameters: Any) -> Maker:
    """Probabilities that are powers of 1/2, in any order, so that one can stand exactly on a threshold.

    The logits are in double precision, and multiples of log 2 by a power of 2 below the largest: the exponential of these is exact in
    single and in double precision, so it is no matter of rounding on which side a right solution puts them.

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
