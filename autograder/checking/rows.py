"""Define the rows of a verdict. Each function returns one :class:`Row`; an exercise lists the rows that apply to it.

There are two sorts. A *row of numbers* compares what was computed with the reference's answers: :func:`numbers`, :func:`part`,
:func:`precision`, :func:`edge`, :func:`reaches`. It earns all its points or none. A *side row* tests how the result is computed: unchanged
inputs, errors, device, loops, memory, attributes, relations between two calls. It earns points in proportion to the rows of numbers that
are right, so that code which does nothing, in good order, earns nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import torch
from torch import Tensor

from autograder.checking.draw import Case, Draw
from autograder.checking.request import Request, Value

Maker: TypeAlias = Callable[[Draw], Case]


@dataclass(frozen=True)
class Probe:
    """One test case: its requests, and the judge of the answers."""

    requests: tuple[Request, ...]  # the requests, in order
    judge: str  # name of a judge in ``autograder.checking.judges``
    options: Mapping[str, Value] = field(default_factory=dict)  # the judge's options, plain data and tensors


@dataclass(frozen=True)
class Row:
    """One row of a verdict, with its points."""

    name: str  # short name, unique within the exercise
    title: str  # the requirement, as a sentence that a student reads
    points: float  # what it is worth
    probes: Callable[[Draw], Sequence[Probe]]  # makes the questions of one round from a draw
    side: bool = False  # it tests how results are computed, and earns points in proportion to the right rows of numbers


def numbers(
    points: float,
    *makers: Maker,
    name: str = "values",
    title: str = "The numbers are right, on inputs of several shapes.",
    gradients: bool = True,
    without: tuple[str, ...] = (),
) -> Row:
    """Require the shape, dtype and numbers of every output, and the gradients of inputs and weights.

    Args:
        points: what it is worth.
        makers: make the cases.
        name: short name.
        title: the requirement, as a sentence that a student reads.
        gradients: ask for gradients too; False where nothing can be differentiated.
        without: arguments whose gradients are not compared.
    """

    def probes(draw: Draw) -> Sequence[Probe]:
        cases = [draw.case(maker) for maker in makers]
        return [probe for case in cases for probe in _number_probes(case, gradients=gradients, without=without)]

    return Row(name, title, points, probes)


def single_precision(points: float, *makers: Maker, name: str = "values", title: str) -> Row:
    """Require the numbers up to rounding in single precision, for any dtype."""
    return _row_per_case(
        name, title, points, makers, lambda case: Probe((case.request(),), "matches", {"single": True})
    )


def many(points: float, maker: Maker, *, count: int = 64, name: str = "many", title: str) -> Row:
    """Require the numbers of many small random cases, smallest first, so that a message shows the smallest failure.

    Cases of this kind find other algorithms than the reference's, which agree with it on most inputs.

    Args:
        points: what it is worth.
        maker: makes a case; each call draws another one.
        count: how many cases.
        name: short name.
        title: the requirement, as a sentence that a student reads.
    """

    def probes(draw: Draw) -> Sequence[Probe]:
        cases = sorted((draw.case(maker) for _ in range(count)), key=lambda case: len(repr(case.arguments)))
        return [Probe((case.request(),), "matches") for case in cases]

    return Row(name, title, points, probes)


def edge(
    points: float,
    *makers: Maker,
    name: str,
    title: str,
    gradients: bool = True,
    without: tuple[str, ...] = (),
    dtypes: Sequence[torch.dtype] = (torch.float64,),
) -> Row:
    """Require values, gradients and each precision in ``dtypes`` for one edge case, which no other row may contain."""

    def probes(draw: Draw) -> Sequence[Probe]:
        cases = [draw.case(maker) for maker in makers]
        requested = [probe for case in cases for probe in _number_probes(case, gradients=gradients, without=without)]
        return [*requested, *(probe for case in cases for dtype in dtypes for probe in _precision_probes(case, dtype))]

    return Row(name, title, points, probes)


def part(points: float, *makers: Maker, output: str, name: str, title: str) -> Row:
    """Require one of several outputs (``"output[0]"``), so that each can earn points independently."""
    return _row_per_case(
        name, title, points, makers, lambda case: Probe((case.request(),), "matches_part", {"outputs": [output]})
    )


def precision(points: float, *makers: Maker, half: bool = True, double: bool = True, title: str = "") -> Row:
    """Require dtype and numbers in float64 with ``double``, and in bfloat16 and float16 with ``half``."""
    dtypes = (torch.float64,) * double + (torch.bfloat16, torch.float16) * half
    kinds = " or ".join(["float64"] * double + ["half precision (bfloat16, float16)"] * half)

    def probes(draw: Draw) -> Sequence[Probe]:
        cases = [draw.case(maker) for maker in makers]
        return [probe for case in cases for dtype in dtypes for probe in _precision_probes(case, dtype)]

    return Row(
        "precision", title or f"What goes in as {kinds} comes out as such, and the numbers hold.", points, probes
    )


def attributes(points: float, maker: Maker, *, names: tuple[str, ...]) -> Row:
    """Require that a class's instances have these attributes, with the right values."""
    title = f"An instance tells {', '.join(names)} by name."
    row = _row_per_case(
        "attributes", title, points, [maker], lambda case: Probe((case.request("attributes", names),), "matches")
    )
    return replace(row, side=True)


def reaches(
    points: float,
    maker: Callable[[Draw], tuple[Case, tuple[Tensor, ...], Tensor]],
    *,
    loss: float,
    right: float,
    title: str,
    name: str = "reaches",
) -> Row:
    """Require that a case's prop ``model`` is good after the call, on examples outside its training data.

    Args:
        points: what it is worth.
        maker: makes the case, and inputs and targets to examine the model with.
        loss: the mean cross-entropy that it may have at most.
        right: the smallest fraction of the examples that it must get right.
        title: the requirement, as a sentence that a student reads.
        name: short name.
    """

    def probes(draw: Draw) -> Sequence[Probe]:
        case, inputs, targets = maker(draw)
        assert case.props is not None
        model = case.props["model"]
        options = {
            "kind": model["kind"],
            "init": dict(model["init"]),
            "inputs": inputs,
            "targets": targets,
            "loss": loss,
            "right": right,
        }
        return [Probe((case.request(),), "reaches", options)]

    return Row(name, title, points, probes)


def errors(points: float, *makers: Maker, title: str, name: str = "errors") -> Row:
    """Require that invalid input raises the same kind of error as in the reference.

    Give a case that does make sense among ``makers``: so that code which refuses everything earns nothing here.
    """
    return _side_row(name, title, points, makers, lambda case: Probe((case.request(),), "answers"))


def finite_gradients(points: float, *makers: Maker, wrt: tuple[str, ...], name: str, title: str) -> Row:
    """Require that no gradient is NaN or infinite, if its exact value is a matter of definition."""
    return _side_row(name, title, points, makers, lambda case: Probe((case.request("gradients", wrt),), "finite"))


def inputs_kept(points: float, *makers: Maker) -> Row:
    """Require that no argument is changed in place."""
    title = "The inputs are left as they were."
    return _side_row("inputs", title, points, makers, lambda case: Probe((case.request(),), "unmutated"))


def detached(points: float, *makers: Maker) -> Row:
    """Require that no result is attached to the autograd graph after training a given model."""
    title = "What it returns is cut off from the graph."
    return _side_row("graph", title, points, makers, lambda case: Probe((case.request(),), "detached"))


def device(points: float, *makers: Maker) -> Row:
    """Require that all tensors are made on the inputs' device, by running on PyTorch's meta device.

    Nothing has numbers there. Take makers that a row of numbers also uses, so that the same inputs are computed on an ordinary device: code
    that recognises the meta device gains nothing.
    """
    title = "It runs on the device of its inputs, whichever that is."
    return _side_row("device", title, points, makers, lambda case: Probe((case.request("meta"),), "matches"))


def no_loop(points: float, at_size: Callable[[Draw, int], Case], *, over: str) -> Row:
    """Require that dispatched operations and executed lines do not grow with the size of ``over``.

    Sizes are 2 and 6 in the visible tests. In hidden tests the smaller size is drawn from 2, 3 and 4, so code that behaves only while
    operations are counted would have to guess when that is.

    Args:
        points: what it is worth.
        at_size: makes a case whose lengths grow with a size of at least 2. (At length 1 PyTorch takes other ways.)
        over: what there must be no Python loop over.
    """

    def probes(draw: Draw) -> Sequence[Probe]:
        cases = [at_size(draw, size) for size in (draw.counting_size, 3 * draw.counting_size)]
        options = {"axis": over, "lines": draw.counting_size}
        counted = Probe(tuple(case.request("operations") for case in cases), "same_operations", options)
        return [counted, *(Probe((case.request(),), "matches") for case in cases)]

    return Row("loops", f"There is no Python loop over {over}.", points, probes, side=True)


def initialisation(points: float, *makers: tuple[Maker, int], title: str) -> Row:
    """Require that freshly drawn weights spread the outputs as much as the reference's weights do.

    Args:
        points: what it is worth.
        makers: each makes a case without ``state``, with the axis of its outputs along which the standard deviation is taken.
        title: the requirement, as a sentence that a student reads.
    """

    def probes(draw: Draw) -> Sequence[Probe]:
        return [Probe((draw.case(maker).request(),), "spread", {"dim": dim}) for maker, dim in makers]

    return Row("initialisation", title, points, probes, side=True)


def memory(points: float, maker: Maker, *, limit: Callable[[Case], int], title: str) -> Row:
    """Require that no intermediate tensor has more than ``limit(case)`` elements."""

    def probes(draw: Draw) -> Sequence[Probe]:
        case = draw.case(maker)
        return [Probe((case.request("operations"),), "small_tensors", {"limit": limit(case)})]

    return Row("memory", title, points, probes, side=True)


def two_calls_agree(
    name: str,
    title: str,
    points: float,
    maker: Maker,
    change: Callable[[Draw, Case], tuple[Case, Sequence[Any], Sequence[Any]]],
    *,
    claim: str,
) -> Row:
    """Require that two calls agree; ``change`` returns the second case and the views to compare.

    Args:
        name: short name.
        title: the requirement, as a sentence that a student reads.
        points: what it is worth.
        maker: makes the first case.
        change: makes the second case of it; a view is a list of steps ``("narrow", dim, start, length)``.
        claim: what is wrong where they do not agree, as a sentence.
    """

    def probes(draw: Draw) -> Sequence[Probe]:
        case = draw.case(maker)
        other, *views = change(draw, case)
        return [Probe((case.request(), other.request()), "related", {"views": views, "claim": claim})]

    return Row(name, title, points, probes, side=True)


def batch_independence(points: float, maker: Maker, *, batched: tuple[str, ...]) -> Row:
    """Require that the first example of a batch gets the same result alone."""

    def change(draw: Draw, case: Case) -> tuple[Case, Sequence[Any], Sequence[Any]]:
        alone = case.with_arguments(**{name: case.arguments[name][:1] for name in batched})
        return alone, [("narrow", 0, 0, 1)], []

    title = "Each example of a batch is treated on its own."
    claim = "an example gives another result in a batch than alone"
    return two_calls_agree("batch", title, points, maker, change, claim=claim)


def causality(points: float, maker: Maker, *, future: tuple[str, ...], dim: int = -2) -> Row:
    """Require, with a causal mask, that changing later positions of ``future`` changes no earlier output."""

    def change(draw: Draw, case: Case) -> tuple[Case, Sequence[Any], Sequence[Any]]:
        length = case.arguments[future[0]].shape[dim]
        keep = length // 2
        arguments = {name: _perturb(draw, case.arguments[name], dim, keep) for name in future}
        view = [("narrow", dim, 0, keep)]
        return case.with_arguments(**arguments), view, view

    title = "With a causal mask, the future cannot change the past."
    claim = "an earlier output moves when a later input does"
    return two_calls_agree("causality", title, points, maker, change, claim=claim)


def permutation(points: float, maker: Maker, *, keys: tuple[str, ...], dim: int = -2) -> Row:
    """Require that shuffling keys and values together changes nothing."""

    def change(draw: Draw, case: Case) -> tuple[Case, Sequence[Any], Sequence[Any]]:
        order = draw.permutation(case.arguments[keys[0]].shape[dim])
        return case.with_arguments(**{name: case.arguments[name].index_select(dim, order) for name in keys}), [], []

    title = "The order of the key/value pairs does not matter."
    claim = "shuffling the key/value pairs changes the result"
    return two_calls_agree("permutation", title, points, maker, change, claim=claim)


def _number_probes(case: Case, *, gradients: bool, without: tuple[str, ...]) -> list[Probe]:
    """Return the probes for shape and dtype, values, and gradients if there are any."""
    probes = [Probe((case.request(),), judge) for judge in ("shapes", "matches")]
    wrt = tuple(name for name, value in case.arguments.items() if _is_floating(value) and name not in without)
    if gradients and (wrt or case.state):
        probes.append(Probe((case.request("gradients", wrt),), "matches"))
    return probes


def _precision_probes(case: Case, dtype: torch.dtype) -> list[Probe]:
    return [Probe((case.to(dtype).request(),), judge) for judge in ("shapes", "matches")]


def _is_floating(value: Value) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def _perturb(draw: Draw, tensor: Tensor, dim: int, keep: int) -> Tensor:
    changed = tensor.clone()
    tail = changed.narrow(dim, keep, tensor.shape[dim] - keep)
    tail += draw.normal(*tail.shape, dtype=tensor.dtype)
    return changed


def _row_per_case(name: str, title: str, points: float, makers: Sequence[Maker], ask: Callable[[Case], Probe]) -> Row:
    return Row(name, title, points, lambda draw: [ask(draw.case(maker)) for maker in makers])


def _side_row(name: str, title: str, points: float, makers: Sequence[Maker], ask: Callable[[Case], Probe]) -> Row:
    return replace(_row_per_case(name, title, points, makers, ask), side=True)
