"""What a check looks at. Each function here returns one :class:`Aspect`; an exercise lists those that apply to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from autograder.checking.draw import Case, Draw
from autograder.checking.rows import Maker as Maker
from autograder.checking.rows import Probe, edge, no_loop
from autograder.checking.rows import Row as Aspect

__all__ = ["Aspect", "Maker"]


def shape(
    points: float, *makers: Maker, name: str = "shape", title: str = "The result has the right shape and dtype."
) -> Aspect:
    """Shape and dtype of every output."""
    return _each(name, title, points, makers, lambda case: Probe((case.request(),), "shapes"))


def values(
    points: float,
    *makers: Maker,
    name: str = "values",
    title: str = "The numbers are right, on inputs of several shapes.",
    easy: bool = False,
) -> Aspect:
    """Every number of every output, within the tolerance of its dtype."""
    aspect = _each(name, title, points, makers, lambda case: Probe((case.request(),), "matches"), side=False)
    return replace(aspect, side=easy)


def empty_row(points: float, *makers: Maker, title: str, without: tuple[str, ...] = ()) -> Aspect:
    """A query that may attend to nothing: values and gradients, which no other aspect asks about."""
    return edge(points, *makers, name="empty row", title=title, without=without, dtypes=())


def part(points: float, *makers: Maker, output: str, name: str, title: str, easy: bool = False) -> Aspect:
    """One of several outputs (``"output[0]"``), so that each can earn its points where another is wrong."""
    aspect = _each(
        name,
        title,
        points,
        makers,
        lambda case: Probe((case.request(),), "matches_part", {"outputs": [output]}),
        side=False,
    )
    return replace(aspect, side=easy)


def refuses(points: float, *makers: Maker, title: str, name: str = "errors") -> Aspect:
    """Input that makes no sense raises the kind of error that the reference raises.

    Give a case that does make sense among ``makers``: so that code which refuses everything earns nothing here.
    """
    return _each(name, title, points, makers, lambda case: Probe((case.request(),), "answers"))


def double_precision(points: float, *makers: Maker) -> Aspect:
    """The numbers in float64, where a constant of lower precision or a conversion on the way shows."""
    title = "Double precision goes in, double precision comes out."
    return _both("float64", title, points, makers, (torch.float64,))


def half_precision(points: float, *makers: Maker) -> Aspect:
    """The numbers and dtypes in bfloat16 and float16."""
    title = "Half precision (bfloat16, float16) goes in, half precision comes out, and the numbers hold."
    return _both("half precision", title, points, makers, (torch.bfloat16, torch.float16))


def gradients(
    points: float,
    *makers: Maker,
    wrt: tuple[str, ...],
    name: str = "gradients",
    title: str = "Gradients flow back to every input and weight, and are right.",
) -> Aspect:
    """Gradients by the arguments ``wrt`` and by every parameter."""
    return _each(
        name, title, points, makers, lambda case: Probe((case.request("gradients", wrt),), "matches"), side=False
    )


def attributes(points: float, maker: Maker, *, names: tuple[str, ...]) -> Aspect:
    """For a class: its instances carry these attributes, with the right values."""
    title = f"An instance tells {', '.join(names)} by name."
    return _each(
        "attributes", title, points, [maker], lambda case: Probe((case.request("attributes", names),), "matches")
    )


def finite_gradients(points: float, *makers: Maker, wrt: tuple[str, ...], name: str, title: str) -> Aspect:
    """No gradient is NaN or infinite, where what it should be is a matter of definition."""
    return _each(name, title, points, makers, lambda case: Probe((case.request("gradients", wrt),), "finite"))


def unmutated(points: float, *makers: Maker) -> Aspect:
    """No argument is changed in place."""
    title = "The inputs are left as they were."
    return _each("inputs", title, points, makers, lambda case: Probe((case.request(),), "unmutated"))


def detached(points: float, *makers: Maker) -> Aspect:
    """No result hangs on the graph of the computation any more, where a model was given that is trained."""
    title = "What it returns is cut off from the graph."
    return _each("graph", title, points, makers, lambda case: Probe((case.request(),), "detached"))


def reaches(
    points: float,
    maker: Callable[[Draw], tuple[Case, tuple[Tensor, ...], Tensor]],
    *,
    loss: float,
    right: float,
    title: str,
    name: str = "reaches",
) -> Aspect:
    """The model of a case, which is its prop ``model``, is good after the call, on examples that it was not trained on.

    Args:
        points: what it is worth.
        maker: makes the case, and inputs and targets to examine the model with.
        loss: the mean cross-entropy that it may have at most.
        right: the share of the examples that it must get right at least.
        title: what is asked, as a sentence that a student reads.
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

    return Aspect(name, title, points, probes)


def device(points: float, *makers: Maker) -> Aspect:
    """Everything made on the way lives on the device of the inputs: run on PyTorch's meta device, where a stray tensor fails.

    Nothing has numbers there, so there is nothing to keep secret.
    """
    title = "It runs on the device of its inputs, whichever that is."
    aspect = _each("device", title, points, makers, lambda case: Probe((case.request("meta"),), "matches"))
    return replace(aspect, side=True)


def vectorised(points: float, at_size: Callable[[Draw, int], Case], *, axis: str) -> Aspect:
    """The number of dispatched operations stays the same when ``axis`` grows threefold, and the numbers are right there."""
    return replace(no_loop(points, at_size, over=axis), name="vectorised")


def memory(points: float, maker: Maker, *, limit: Callable[[Case], int], title: str) -> Aspect:
    """No tensor on the way has more than ``limit(case)`` elements."""

    def probes(draw: Draw) -> Sequence[Probe]:
        case = draw.case(maker)
        return [Probe((case.request("operations"),), "small_tensors", {"limit": limit(case)})]

    return Aspect("memory", title, points, probes, side=True)


def relation(
    name: str,
    title: str,
    points: float,
    maker: Maker,
    change: Callable[[Draw, Case], tuple[Case, Sequence[Any], Sequence[Any]]],
    *,
    claim: str,
) -> Aspect:
    """Two calls must agree: ``change`` returns the second case, and the views of the first and the second result to compare."""

    def probes(draw: Draw) -> Sequence[Probe]:
        case = draw.case(maker)
        other, *views = change(draw, case)
        return [Probe((case.request(), other.request()), "related", {"views": views, "claim": claim})]

    return Aspect(name, title, points, probes, side=True)


def batch_independence(points: float, maker: Maker, *, batched: tuple[str, ...]) -> Aspect:
    """The first example of a batch gets the same result alone."""

    def change(draw: Draw, case: Case) -> tuple[Case, Sequence[Any], Sequence[Any]]:
        alone = case.with_arguments(**{name: case.arguments[name][:1] for name in batched})
        return alone, [("narrow", 0, 0, 1)], []

    title = "Each example of a batch is treated on its own."
    claim = "an example gives another result in a batch than alone"
    return relation("batch", title, points, maker, change, claim=claim)


def causality(points: float, maker: Maker, *, future: tuple[str, ...], dim: int = -2) -> Aspect:
    """With a causal mask, changing the later positions of the arguments ``future`` changes no earlier output."""

    def change(draw: Draw, case: Case) -> tuple[Case, Sequence[Any], Sequence[Any]]:
        length = case.arguments[future[0]].shape[dim]
        keep = length // 2
        arguments = {name: _perturb(draw, case.arguments[name], dim, keep) for name in future}
        view = [("narrow", dim, 0, keep)]
        return case.with_arguments(**arguments), view, view

    title = "With a causal mask, the future cannot change the past."
    return relation("causality", title, points, maker, change, claim="an earlier output moves when a later input does")


def permutation(points: float, maker: Maker, *, keys: tuple[str, ...], dim: int = -2) -> Aspect:
    """Shuffling keys and values together changes nothing."""

    def change(draw: Draw, case: Case) -> tuple[Case, Sequence[Any], Sequence[Any]]:
        order = draw.permutation(case.arguments[keys[0]].shape[dim])
        return case.with_arguments(**{name: case.arguments[name].index_select(dim, order) for name in keys}), [], []

    title = "The order of the key/value pairs does not matter."
    return relation(
        "permutation", title, points, maker, change, claim="shuffling the key/value pairs changes the result"
    )


def _perturb(draw: Draw, tensor: Tensor, dim: int, keep: int) -> Tensor:
    changed = tensor.clone()
    tail = changed.narrow(dim, keep, tensor.shape[dim] - keep)
    tail += draw.normal(*tail.shape, dtype=tensor.dtype)
    return changed


def _each(
    name: str, title: str, points: float, makers: Sequence[Maker], ask: Callable[[Case], Probe], *, side: bool = True
) -> Aspect:
    return Aspect(name, title, points, lambda draw: [ask(draw.case(maker)) for maker in makers], side=side)


def _both(name: str, title: str, points: float, makers: Sequence[Maker], dtypes: Sequence[torch.dtype]) -> Aspect:
    """Ask for dtype and values of each case in each precision."""

    def probes(draw: Draw) -> Sequence[Probe]:
        cases = [draw.case(maker) for maker in makers]
        requests = [case.to(dtype).request() for case in cases for dtype in dtypes]
        return [Probe((request,), judge) for request in requests for judge in ("shapes", "matches")]

    return Aspect(name, title, points, probes)
