"""A student's objects as the checker sees them: they live in the student's process, and are asked there.

Values cross as plain data and are then the checker's own; functions, classes, modules, generators and other objects stay, and a proxy
stands for them. So a graded cell runs as it is written, with proxies in the place of what the student has defined.
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
    """What a student's code raised, where it is not a built-in exception."""


class RemoteObject:
    """Stands for an object of the student's."""

    def __init__(self, conversation: StudentClient, reference: Reference) -> None:
        object.__setattr__(self, "_conversation", conversation)
        object.__setattr__(self, "_reference", reference)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        return _call(self, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        __tracebackhide__ = True
        if name.startswith(("_ipython_", "_repr_")) or (name.startswith("__") and name not in _TOLD):
            # How it is shown, compared or made an array of is the checker's business: no object may answer for itself.
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
        # Only another object of the student's is compared over there: one that equals every number must not pass for one.
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
        """Return what a check examines in the place of something of this process.

        Every proxy has it: an object that can be called must not be examined here, where what it does cannot be seen.
        """
        return RemoteSubject(conversation_of(self), reference_of(self))


# What an object may tell of itself under a name that Python reserves.
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
    """Stands for a function or a class of the student's."""


class RemoteModule(RemoteObject):
    """Stands for an instance of the student's ``nn.Module``."""

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return nn.Module  # so that isinstance() answers as for a module of this process


def proxy_for(conversation: StudentClient, reference: Reference) -> RemoteObject:
    """Return the proxy of an object that has stayed in the student's process."""
    kinds: dict[str, type[RemoteObject]] = {"function": RemoteFunction, "class": RemoteFunction, "module": RemoteModule}
    return kinds.get(reference.kind, RemoteObject)(conversation, reference)


class RemoteNamespace(dict[str, Any]):
    """The globals of graded cells: what they have themselves, and behind it what the student has defined.

    A graded cell may take a name away from the student's code, to see whether that code needs it, and give it back.
    """

    conversation: StudentClient | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._taken: set[str] = set()

    def __delitem__(self, name: str) -> None:
        if name in self or self.conversation is None or name.startswith("_"):
            super().__delitem__(name)
            return
        self[name]  # raises what a name that nobody has raises
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
            # The name under which the notebook has it is the one that counts; what it says of itself is only said.
            known: Reference = object.__getattribute__(value, "_reference")
            return proxy_for(self.conversation, Reference(known.number, known.kind, name))
        return value


def conversation_of(remote: RemoteObject) -> StudentClient:
    """Return the conversation in which an object can be asked."""
    conversation: StudentClient = object.__getattribute__(remote, "_conversation")
    return conversation


def reference_of(remote: RemoteObject) -> Reference:
    """Return what a student's process knows an object by."""
    reference: Reference = object.__getattribute__(remote, "_reference")
    return reference


def _pack(value: Any) -> Any:
    return pack(
        value, lambda item: reference_of(item) if isinstance(item, RemoteObject) else Opaque(f"a {type(item).__name__}")
    )


def _ask(remote: RemoteObject, question: dict[str, Any], wanted: str = "value") -> dict[str, Any]:
    __tracebackhide__ = True
    return _checked(conversation_of(remote).ask_packed(_pack(question)), wanted)


def _checked(answer: Any, wanted: str = "value") -> dict[str, Any]:
    """Return an answer that has a value, or what is wanted in its place, or raise what the student's code raised."""
    __tracebackhide__ = True
    if "raised" in answer:
        raise exception_of(answer["raised"])
    if wanted not in answer and "value" not in answer:
        raise ProtocolError("an answer without a value")
    return dict(answer)


def _special(remote: RemoteObject, name: str, *operands: Any) -> Any:
    __tracebackhide__ = True
    return _ask(remote, {"do": "special", "of": remote, "name": name, "args": operands})["value"]


def exception_of(raised: Any) -> Exception:
    """Return an exception of the same name, built-in base and text as one that a student's code has raised."""
    if not isinstance(raised, Mapping):
        return StudentError("it raised something that cannot be told")
    text, name, bases = raised.get("text"), raised.get("type"), raised.get("bases")
    base: type[Exception] = StudentError
    for candidate in bases if isinstance(bases, list) else []:
        known = getattr(builtins, candidate, None) if isinstance(candidate, str) else None
        if isinstance(known, type) and issubclass(known, Exception):
            base = known
            break
    label = name if isinstance(name, str) and name.isidentifier() else base.__name__
    kind = base if label == base.__name__ else type(label, (base,), {})
    try:
        error: Exception = kind(text if isinstance(text, str) else "")
    except Exception:  # a few built-in exceptions want more than a text
        error = StudentError(f"{label}: {text}")
    where = raised.get("where")
    for line in where if isinstance(where, list) else []:
        if isinstance(line, str):
            error.add_note(f"in the student's {line[:200]}")
    return error


def _call(function: RemoteObject, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    __tracebackhide__ = True
    given = tensors_in((args, kwargs))
    grad = torch.is_grad_enabled()
    wrt = [i for i, tensor in enumerate(given) if tensor.requires_grad] if grad else []
    answer = _ask(function, {"do": "call", "of": function, "grad": grad, "wrt": wrt, "args": args, "kwargs": kwargs})
    if isinstance(answer.get("changed"), list) and len(answer["changed"]) == 2:
        _copy_changes_back((args, kwargs), tuple(answer["changed"]), frozenset(id(given[i]) for i in wrt))
    value = answer["value"]
    if answer.get("graph") is None:
        return value
    outputs, attached = tensors_in(value), answer.get("attached")
    if not isinstance(attached, list) or not all(type(i) is int and 0 <= i < len(outputs) for i in attached):
        raise ProtocolError("gradients of outputs that are not there")
    link = _Link(conversation_of(function), answer["graph"], [given[i] for i in wrt], [outputs[i] for i in attached])
    bridged = _Bridge.apply(link, torch.empty(0, requires_grad=True), *link.inputs)  # type: ignore[no-untyped-call]
    return _replaced(value, {id(old): new for old, new in zip(link.outputs, bridged, strict=True)})


class _Link:
    """The place where a graph of the checker's goes on in the student's process."""

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
        found = _checked(self.conversation.ask(question))["value"]
        if not isinstance(found, list) or len(found) != len(self.inputs):
            raise ProtocolError("not as many gradients as were asked for")
        for grad, tensor in zip(found, self.inputs, strict=True):
            if grad is not None and (not isinstance(grad, Tensor) or grad.shape != tensor.shape):
                raise ProtocolError("a gradient that does not fit")
        return found


class _Bridge(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, link: _Link, anchor: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
        ctx.link = link
        return tuple(output.clone() for output in link.outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        if torch.is_grad_enabled():
            # Only where somebody wants to differentiate what comes of this; it would count as constant, and nobody would notice.
            raise NotImplementedError("a second derivative does not go through a student's function")
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


def _copy_changes_back(mine: Any, theirs: Any, but: frozenset[int]) -> None:
    """Do to the checker's arguments what the call has done to the student's copies of them."""
    if isinstance(mine, Tensor):
        if isinstance(theirs, Tensor) and mine.shape == theirs.shape and id(mine) not in but:
            with torch.no_grad():
                mine.copy_(theirs)
    elif isinstance(mine, numpy.ndarray):
        if isinstance(theirs, numpy.ndarray) and mine.shape == theirs.shape and mine.flags.writeable:
            mine[...] = theirs
    elif isinstance(mine, tuple) and isinstance(theirs, tuple):
        for a, b in zip(mine, theirs, strict=False):
            _copy_changes_back(a, b, but)
    elif isinstance(mine, list) and isinstance(theirs, list):
        same = len(mine) == len(theirs)
        for i, item in enumerate(theirs):
            if same and _is_container(mine[i]) and type(mine[i]) is type(item):
                _copy_changes_back(mine[i], item, but)
                theirs[i] = mine[i]
        mine[:] = theirs
    elif isinstance(mine, dict) and isinstance(theirs, dict):
        for key in [key for key in mine if key not in theirs]:
            del mine[key]
        for key, item in theirs.items():
            if key in mine and _is_container(mine[key]) and type(mine[key]) is type(item):
                _copy_changes_back(mine[key], item, but)
            else:
                mine[key] = item
    elif isinstance(mine, set) and isinstance(theirs, set):
        mine.clear()
        mine.update(theirs)


def _is_container(value: Any) -> bool:
    return isinstance(value, (Tensor, numpy.ndarray, list, dict, set, tuple))
