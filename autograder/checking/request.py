"""Define requests to a subject and its observations, as plain data and tensors that can cross between processes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Literal, TypeAlias

import numpy
import torch
from torch import Tensor

# A value that may cross between a check and its subject: tensors, numbers, strings, None, and tuples, lists and dicts of these.
Value: TypeAlias = Any

# Texts of out-of-memory errors: Python's, and those of PyTorch's allocators.
OUT_OF_MEMORY = ("MemoryError", "can't allocate memory", "Cannot allocate memory")

Action = Literal["call", "gradients", "meta", "operations", "functions", "attributes"]


@dataclass(frozen=True)
class Request:
    """One request to a subject."""

    # ``"call"``: run it. ``"gradients"``: run it, then send :func:`make_cotangent` back through it. ``"meta"``: run it on PyTorch's meta
    # device, where every tensor has a shape and no data. ``"operations"``: run it and count the ATen operations and the executed lines.
    # ``"functions"``: run it, and look only at which forbidden functions it calls. ``"attributes"``: for a class, make an instance and look
    # at its attributes.
    action: Action
    arguments: Mapping[str, Value]  # the call's arguments by name
    init: Mapping[str, Value] | None = None  # for a class, the constructor's arguments by name; None for a function
    state: Mapping[str, Tensor] | None = None  # for a class, the weights to load before the call
    # names of the arguments whose gradients are wanted (for ``"gradients"``), or of the attributes (for ``"attributes"``)
    wrt: tuple[str, ...] = ()
    method: str | None = None  # for a class, the method to call; by default the instance itself
    # arguments that are no plain data, by name, as ``autograder.checking.props.build_fixtures`` takes them. After a ``"call"`` the
    # weights of the models among them are outputs too.
    props: Mapping[str, Mapping[str, Value]] | None = None
    # for a class, call it in training mode. What it answers must not depend on random numbers: drop everything, or nothing.
    training: bool = False

    def map_tensors(self, change: Callable[[Tensor], Tensor]) -> Request:
        """Return the request with every tensor replaced by ``change(tensor)``."""
        return replace(
            self,
            arguments={name: map_value(value, change) for name, value in self.arguments.items()},
            state=None if self.state is None else {name: change(value) for name, value in self.state.items()},
            props=None if self.props is None else {name: map_value(prop, change) for name, prop in self.props.items()},
        )


@dataclass(frozen=True)
class Observation:
    """A subject's answer to one request."""

    # named results: ``output``, or ``output[0]``, ``output[1]`` … where there are several; gradients as ``gradient of q``. For ``"meta"``,
    # ``"operations"`` and ``"functions"``, shapes in the place of tensors.
    outputs: Mapping[str, Value] = field(default_factory=dict)
    error: str | None = None  # the exception it raised, as ``"TypeError: …"``, or None
    unfinished: bool = False  # whether that exception was NotImplementedError, as a stub raises
    mutated: tuple[str, ...] = ()  # names of the arguments that it changed in place
    # names of the results from which a gradient can still flow back, where a model was given (``"call"`` only)
    attached: tuple[str, ...] = ()
    operations: int | None = None  # how many ATen operations it dispatched (``"operations"`` only)
    largest: int | None = None  # number of elements of the largest tensor that it made (``"operations"`` only)
    functions: tuple[str, ...] = ()  # names of forbidden functions that it called, and that were refused
    lines: int | None = None  # how many lines of code outside libraries it executed (``"operations"`` only)
    # what the names of the outputs leave open, as :func:`list_container_kinds` tells it (``"call"`` only)
    containers: tuple[str, ...] = ()


class WrongResultError(Exception):
    """The code raised nothing, but its result is unusable; the message is a complete sentence."""


class WeightsError(Exception):
    """An instance lacks the expected weights; the message names them with their shapes, as a complete sentence."""


def map_value(value: Value, change: Callable[[Tensor], Tensor]) -> Value:
    """Return a nested value with ``change`` applied to every tensor."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, tuple):
        return tuple(map_value(item, change) for item in value)
    if isinstance(value, list):
        return [map_value(item, change) for item in value]
    if isinstance(value, Mapping):
        return {key: map_value(item, change) for key, item in value.items()}
    return value


def content_key(value: Value | Request) -> Hashable:
    """Return a hashable key that is equal exactly for bitwise equal values or requests."""
    if isinstance(value, Tensor):
        flat = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        return value.dtype, value.device, value.shape, sha256(flat.numpy().tobytes()).digest()
    if isinstance(value, Request):
        value = vars(value)
    if isinstance(value, Mapping):
        return Mapping, tuple((key, content_key(item)) for key, item in value.items())
    if isinstance(value, (tuple, list)):
        return type(value), tuple(map(content_key, value))
    return type(value), value


def list_tensors(value: Any) -> list[Tensor]:
    """Return the tensors inside nested containers, in order."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return []
    return [leaf for item in value for leaf in list_tensors(item)]


def flatten_outputs(value: Value, name: str = "output") -> dict[str, Value]:
    """Return a nested result as a flat dictionary of named leaves: ``output``, ``output[0]``, ``output['loss']``.

    A NumPy scalar becomes the equal Python number: ``np.sqrt(4)`` means 2.0.
    """
    if isinstance(value, (tuple, list)):
        return {
            key: leaf for i, item in enumerate(value) for key, leaf in flatten_outputs(item, f"{name}[{i}]").items()
        }
    if isinstance(value, dict):
        return {key: leaf for k, item in value.items() for key, leaf in flatten_outputs(item, f"{name}[{k!r}]").items()}
    return {name: value.item() if isinstance(value, numpy.generic) else value}


def list_container_kinds(value: Value, name: str = "output") -> tuple[str, ...]:
    """Return the kinds of a result's containers that its leaves' names do not show: mappings and empty containers.

    Lists and tuples have the same kind, a sequence: they are unpacked, indexed and iterated in the same way.
    """
    if isinstance(value, dict):
        kind, items = "mapping", [(f"{name}[{key!r}]", item) for key, item in value.items()]
    elif isinstance(value, (tuple, list)):
        kind, items = "sequence", [(f"{name}[{i}]", item) for i, item in enumerate(value)]
    else:
        return ()
    described = (
        (f"{name}: {kind if items else f'empty {kind}'}",) if kind == "mapping" or not items or name == "output" else ()
    )
    return described + tuple(text for label, item in items for text in list_container_kinds(item, label))


def make_cotangent(output: Tensor) -> Tensor:
    """Return the cotangent of an output: a fixed wave that depends only on the output's shape."""
    wave = torch.cos(1.0 + 0.7 * torch.arange(output.numel(), dtype=torch.float64, device=output.device))
    return wave.reshape(output.shape).to(output.dtype)
