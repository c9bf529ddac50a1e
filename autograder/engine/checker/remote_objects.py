"""Proxies for a student's objects: the checker's operations on them run in the student's process.

Values cross as plain data and then belong to the checker. Functions, classes, modules, generators and other objects stay, and a proxy
represents them. So a graded cell runs unchanged, with proxies in place of the student's definitions.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping
from typing import Any

import numpy
import torch
from torch import Tensor, nn

from autograder.checking.request import tensors_in
from autograder.engine.checker.remote_subject import RemoteSubject
from autograder.engine.checker.rpc_client import StudentClient
from autograder.engine.transport.serialization import Opaque, ProtocolError, Reference, pack


class StudentError(Exception):
    """An exception of a student's code whose class is not built in."""


class RemoteObject:
    """A proxy for an object in the student's process."""

    def __init__(self, conversation: StudentClient, reference: Reference) -> None:
        object.__setattr__(self, "_conversation", conversation)
        object.__setattr__(self, "_reference", reference)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        return _call(self, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        __tracebackhide__ = True
        if name.startswith(("_ipython_", "_repr_")) or (name.startswith("__") and name not in _TOLD):
            # The checker decides how it is shown, compared or converted to an array: no object of the student's may answer for itself.
            raise AttributeError(name)
        answer = _ask(self, {"do": "get", "of": self, "name": name})
        value, grad = answer["value"], answer.get("grad")
        if isinstance(value, Tensor) and value.is_floating_point() and answer.get("requires_grad") is True:
            value.requires_grad_()
            if isinstance(grad, Tensor) and (grad.shape, grad.dtype) == (value.shape, value.dtype):
                value.grad = grad
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        __tracebackhide__ = True
        _ask(self, {"do": "set", "of": self, "name": name, "value": value})

    def __repr__(self) -> str:
        return str(_special(self, "repr"))

    def __iter__(self) -> Iterator[Any]:
        if object.__getattribute__(self, "_reference").kind == "iterator":
            return self
        return iter(_special(self, "iter"))

    def __next__(self) -> Any:
        answer = _ask(self, {"do": "next", "of": self}, "end")
        if "end" in answer:
            raise StopIteration
        return answer["value"]

    def __hash__(self) -> int:
        return int(_special(self, "hash"))

    def __eq__(self, other: object) -> Any:
        # Only two objects of the student's are compared in its process: an object that equals every number must not pass for a number.
        return _special(self, "eq", other) if isinstance(other, RemoteObject) else NotImplemented

    def __ne__(self, other: object) -> Any:
        return _special(self, "ne", other) if isinstance(other, RemoteObject) else NotImplemented

    def __bool__(self) -> bool:
        return bool(_special(self, "bool"))

    def __exit__(self, *error: object) -> None:
        _special(self, "exit")

    @property
    def __name__(self) -> str:
        return str(object.__getattribute__(self, "_reference").name)

    def __subject__(self) -> RemoteSubject:
        """Return the subject that a check examines instead of this proxy.

        Every proxy has one: a callable must not be examined in this process, where its operations cannot be recorded.
        """
        return RemoteSubject(conversation_of(self), reference_of(self))


# The reserved names under which an object may describe itself.
_TOLD = frozenset({"__annotations__", "__dict__", "__doc__", "__module__", "__qualname__", "__slots__", "__wrapped__"})


def _operator(name: str) -> Any:
    def operate(self: RemoteObject, *operands: Any) -> Any:
        __tracebackhide__ = True
        if name in _ORDERS and not isinstance(operands[0], RemoteObject):
            return NotImplemented
        return _special(self, name, *operands)

    operate.__name__ = f"__{name}__"
    return operate


_ORDERS = frozenset({"lt", "le", "gt", "ge"})
for _name in (
    "str", "len", "int", "float", "contains", "getitem", "setitem", "delitem", "lt", "le", "gt", "ge", "add", "sub", "mul",
    "truediv", "matmul", "neg", "radd", "rsub", "rmul", "rtruediv", "floordiv", "mod", "pow", "abs", "enter",
):  # fmt: skip
    setattr(RemoteObject, f"__{_name}__", _operator(_name))


class RemoteFunction(RemoteObject):
    """A proxy for a student's function or class."""


class RemoteModule(RemoteObject):
    """A proxy for an instance of the student's ``nn.Module``."""

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return nn.Module  # so that isinstance() treats it as a module of this process


def proxy_for(conversation: StudentClient, reference: Reference) -> RemoteObject:
    """Return a proxy for an object in the student's process."""
    kinds: dict[str, type[RemoteObject]] = {"function": RemoteFunction, "class": RemoteFunction, "module": RemoteModule}
    return kinds.get(reference.kind, RemoteObject)(conversation, reference)


class RemoteNamespace(dict[str, Any]):
    """The globals of graded cells: their own names first, then the student's.

    A graded cell may remove a name from the student's namespace, to test whether the code needs it, and restore it.
    """

    conversation: StudentClient | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._taken: set[str] = set()

    def __delitem__(self, name: str) -> None:
        if name in self or self.conversation is None or name.startswith("_"):
            super().__delitem__(name)
            return
        self[name]  # raises NameError, as for any unknown name
        _checked(self.conversation.ask({"do": "forget", "name": name}))
        self._taken.add(name)

    def __setitem__(self, name: str, value: Any) -> None:
        if name in self._taken and self.conversation is not None and isinstance(value, RemoteObject):
            _ask(value, {"do": "bind", "name": name, "value": value})
            self._taken.remove(name)
        else:
            super().__setitem__(name, value)

    def __missing__(self, name: str) -> Any:
        if self.conversation is None or hasattr(builtins, name) or not name.isidentifier() or name.startswith("__"):
            raise KeyError(name)
        answer = _checked(self.conversation.ask({"do": "look", "name": name}), "missing")
        if "missing" in answer:
            raise KeyError(name)
        value = answer["value"]
        if isinstance(value, RemoteObject):
            # The name in the notebook counts; the object's own __name__ is only a claim.
            reference: Reference = object.__getattribute__(value, "_reference")
            return proxy_for(self.conversation, Reference(reference.number, reference.kind, name))
        return value


def conversation_of(remote: RemoteObject) -> StudentClient:
    """Return the client that sends an object's requests."""
    conversation: StudentClient = object.__getattribute__(remote, "_conversation")
    return conversation


def reference_of(remote: RemoteObject) -> Reference:
    """Return the reference by which the student's process identifies an object."""
    reference: Reference = object.__getattribute__(remote, "_reference")
    return reference


def _pack(value: Any) -> Any:
    return pack(
        value, lambda item: reference_of(item) if isinstance(item, RemoteObject) else Opaque(f"a {type(item).__name__}")
    )


def _ask(remote: RemoteObject, question: dict[str, Any], key: str = "value") -> dict[str, Any]:
    __tracebackhide__ = True
    return _checked(conversation_of(remote).ask_packed(_pack(question)), key)


def _checked(answer: Any, key: str = "value") -> dict[str, Any]:
    """Return an answer that holds ``key`` or a value, or raise the exception of the student's code."""
    __tracebackhide__ = True
    if "raised" in answer:
        raise exception_of(answer["raised"])
    if key not in answer and "value" not in answer:
        raise ProtocolError("an answer without a value")
    return dict(answer)


def _special(remote: RemoteObject, name: str, *operands: Any) -> Any:
    __tracebackhide__ = True
    return _ask(remote, {"do": "special", "of": remote, "name": name, "args": operands})["value"]


def exception_of(raised: Any) -> Exception:
    """Rebuild a student's exception from its name, built-in base class and text."""
    if not isinstance(raised, Mapping):
        return StudentError("it raised an exception that cannot be shown")
    text, name, bases = raised.get("text"), raised.get("type"), raised.get("bases")
    base: type[Exception] = StudentError
    for candidate in bases if isinstance(bases, list) else []:
        builtin = getattr(builtins, candidate, None) if isinstance(candidate, str) else None
        if isinstance(builtin, type) and issubclass(builtin, Exception):
            base = builtin
            break
    label = name if isinstance(name, str) and name.isidentifier() else base.__name__
    kind = base if label == base.__name__ else type(label, (base,), {})
    try:
        error: Exception = kind(text if isinstance(text, str) else "")
    except Exception:  # a few built-in exceptions need more arguments
        error = StudentError(f"{label}: {text}")
    where = raised.get("where")
    for line in where if isinstance(where, list) else []:
        if isinstance(line, str):
            error.add_note(f"in the student's {line[:200]}")
    return error


def _call(function: RemoteObject, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    __tracebackhide__ = True
    tensors = tensors_in((args, kwargs))
    grad = torch.is_grad_enabled()
    wrt = [i for i, tensor in enumerate(tensors) if tensor.requires_grad] if grad else []
    answer = _ask(function, {"do": "call", "of": function, "grad": grad, "wrt": wrt, "args": args, "kwargs": kwargs})
    if isinstance(answer.get("changed"), list) and len(answer["changed"]) == 2:
        _copy_changes_back((args, kwargs), tuple(answer["changed"]), frozenset(id(tensors[i]) for i in wrt))
    value = answer["value"]
    if answer.get("graph") is None:
        return value
    outputs, attached = tensors_in(value), answer.get("attached")
    if not isinstance(attached, list) or not all(type(i) is int and 0 <= i < len(outputs) for i in attached):
        raise ProtocolError("gradients of outputs that do not exist")
    link = _Link(conversation_of(function), answer["graph"], [tensors[i] for i in wrt], [outputs[i] for i in attached])
    bridged = _Bridge.apply(link, torch.empty(0, requires_grad=True), *link.inputs)  # type: ignore[no-untyped-call]
    return _replaced(value, {id(old): new for old, new in zip(link.outputs, bridged, strict=True)})


class _Link:
    """Link the checker's autograd graph to a graph in the student's process."""

    def __init__(self, conversation: StudentClient, graph: Any, inputs: list[Tensor], outputs: list[Tensor]) -> None:
        self.conversation = conversation
        self.graph = graph
        self.inputs = inputs
        self.outputs = outputs

    def backward(self, grads: tuple[Tensor, ...]) -> list[Tensor | None]:
        question = {
            "do": "backward",
            "graph": self.graph,
            "wrt": len(self.inputs),
            "grads": [grad.contiguous() for grad in grads],
        }
        gradients = _checked(self.conversation.ask(question))["value"]
        if not isinstance(gradients, list) or len(gradients) != len(self.inputs):
            raise ProtocolError("the wrong number of gradients")
        for grad, tensor in zip(gradients, self.inputs, strict=True):
            if grad is not None and (not isinstance(grad, Tensor) or grad.shape != tensor.shape):
                raise ProtocolError("a gradient of the wrong shape")
        return gradients


class _Bridge(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, link: _Link, anchor: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
        ctx.link = link
        return tuple(output.clone() for output in link.outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        if torch.is_grad_enabled():
            # A second derivative would silently be zero, because the result counts as a constant.
            raise NotImplementedError("second derivatives do not pass through a student's function")
        return (None, None, *ctx.link.backward(grads))


def _replaced(value: Any, by: dict[int, Tensor]) -> Any:
    if isinstance(value, Tensor):
        return by.get(id(value), value)
    if isinstance(value, dict):
        return {key: _replaced(item, by) for key, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, by) for item in value]
    if isinstance(value, tuple):
        items = [_replaced(item, by) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value


def _copy_changes_back(original: Any, changed: Any, but: frozenset[int]) -> None:
    """Copy in-place changes of the student's arguments back to the checker's arguments."""
    if isinstance(original, Tensor):
        if isinstance(changed, Tensor) and original.shape == changed.shape and id(original) not in but:
            with torch.no_grad():
                original.copy_(changed)
    elif isinstance(original, numpy.ndarray):
        if isinstance(changed, numpy.ndarray) and original.shape == changed.shape and original.flags.writeable:
            original[...] = changed
    elif isinstance(original, tuple) and isinstance(changed, tuple):
        for a, b in zip(original, changed, strict=False):
            _copy_changes_back(a, b, but)
    elif isinstance(original, list) and isinstance(changed, list):
        same = len(original) == len(changed)
        for i, item in enumerate(changed):
            if same and _is_container(original[i]) and type(original[i]) is type(item):
                _copy_changes_back(original[i], item, but)
                changed[i] = original[i]
        original[:] = changed
    elif isinstance(original, dict) and isinstance(changed, dict):
        for key in [key for key in original if key not in changed]:
            del original[key]
        for key, item in changed.items():
            if key in original and _is_container(original[key]) and type(original[key]) is type(item):
                _copy_changes_back(original[key], item, but)
            else:
                original[key] = item
    elif isinstance(original, set) and isinstance(changed, set):
        original.clear()
        original.update(changed)


def _is_container(value: Any) -> bool:
    return isinstance(value, (Tensor, numpy.ndarray, list, dict, set, tuple))
