"""Refuse PyTorch's ready-made functions if an exercise forbids them.

An operator is refused at PyTorch's dispatcher, below every way that leads to it: `F.…`, `torch.ops.aten`, `torch._C._nn`, a module, a
compiled script, another thread, autograd, vmap, the meta device. A function or class that exists in Python only, such as
``F.multi_head_attention_forward`` or einops, is refused by exchanging the code that it runs, so a reference taken earlier is refused too.

Covered:

- every overload of a forbidden operator, at every dispatch key for which it has a kernel, in all threads
- Python functions and methods of that name in loaded modules of PyTorch, under whatever name they are called

Not covered:

- a copy of PyTorch's own Python source, by hand, by ``exec`` or by importing its module once more: that is Python like any other
- graphs that were recorded before the refusal; the grader refuses from a process's first line on, and recording is refused with the rest
- code that calls into PyTorch's libraries past the dispatcher, by ctypes or an extension

A notebook at home refuses while it asks, and allows afterwards. The grader refuses permanently, before it runs a student's first line
(:mod:`autograder.engine.student.forbidden`).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

from torch import nn
from torch._C import DispatchKey, _dispatch_get_registrations_for_dispatch_key, _dispatch_library, _DispatchModule

# Names that stand for a package: all functions of these modules and of those below them. PyTorch brings a copy of einops.
PACKAGES = {"einops": ("einops", "functorch.einops", "torch._functorch.einops")}
# These record a ready-made layer as the plain operations that it consists of. They are Python functions; the operator torch.trace, which
# adds up a diagonal, only shares a name with one of them.
RECORDERS = frozenset({"trace", "trace_module", "symbolic_trace", "make_fx", "export"})
# Kinds of processors that no course has.
_UNUSUAL = ("HIP", "XLA", "IPU", "HPU", "VE", "Lazy", "MTIA", "MAIA", "PrivateUse1", "PrivateUse2", "PrivateUse3")
_FUNCTIONS = (FunctionType, type(lru_cache(lambda: None)))


class ForbiddenFunctionError(RuntimeError):
    """The examined code called a function that an exercise forbids."""


@dataclass
class Refusal:
    """Functions that are refused until :meth:`release` is called."""

    called: set[str] = field(default_factory=set)  # names of refused functions that were called
    # registrations at the dispatcher; each ends with its object
    kernels: list[_DispatchModule] = field(default_factory=list)
    # Python functions, with the code that they ran before
    originals: list[tuple[FunctionType, CodeType]] = field(default_factory=list)

    def release(self) -> None:
        """Allow the functions again."""
        for kernel in self.kernels:
            kernel.reset()
        for function, code in self.originals:
            function.__code__ = code


@contextmanager
def refusing_functions(exercise: str, names: Sequence[str]) -> Iterator[set[str]]:
    """Refuse functions within this context, and yield the set of names that are called nevertheless.

    Args:
        exercise: the name of the exercise, for the message.
        names: names of operators, of Python functions and classes of PyTorch, and of packages.
    """
    refusal = refuse(names, f"while {exercise} is checked: the exercise asks you to write yourself what it does")
    try:
        yield refusal.called
    finally:
        refusal.release()


def refuse(names: Sequence[str], when: str) -> Refusal:
    """Refuse functions from now on.

    Args:
        names: as for :func:`refusing_functions`.
        when: completes the message ``"gelu is refused …"``.
    """
    refusal = Refusal()
    refusing = {name: _make_refusal(name, when, refusal.called) for name in names}
    libraries: dict[str, _DispatchModule] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns when a kernel is overridden
        for name in names:
            for namespace, operator, key in () if name in RECORDERS else list_kernels().get(name, ()):
                library = libraries.setdefault(namespace, _dispatch_library("IMPL", namespace, ""))
                library.impl(operator, key, refusing[name], False)  # type: ignore[call-arg]
    refusal.kernels += libraries.values()
    by_name = list_python_functions()
    # One function may have several names; the first one counts.
    functions = {function: name for name in reversed(names) for function in by_name.get(name, ())}
    for function, name in functions.items():
        refusal.originals.append((function, function.__code__))
        function.__code__ = _calling_code(refusing[name], function.__code__)
    return refusal


def _make_refusal(name: str, when: str, called: set[str]) -> Callable[..., Any]:
    """Return a function that records its call and raises."""

    def refusing(*args: object, **kwargs: object) -> None:
        called.add(name)
        raise ForbiddenFunctionError(f"{name} is refused {when}")

    return refusing


def _make_template(*args: object, **kwargs: object) -> object:
    target: Any = "target"
    return target(*args, **kwargs)


_TEMPLATE = _make_template.__code__


def _calling_code(target: Callable[..., Any], code: CodeType) -> CodeType:
    """Return code that calls a function with any arguments and can replace other code."""
    return _TEMPLATE.replace(
        co_consts=tuple(target if const == "target" else const for const in _TEMPLATE.co_consts),
        co_freevars=code.co_freevars,
        co_name=code.co_name,
        co_filename=code.co_filename,
    )


@cache
def list_kernels() -> dict[str, list[tuple[str, str, str]]]:
    """Return (namespace, name with overload, dispatch key) of every kernel, by the operator's name."""
    kernels: dict[str, list[tuple[str, str, str]]] = {}
    for key in filter(_is_key, DispatchKey.__members__):
        for qualified in _dispatch_get_registrations_for_dispatch_key(key):
            namespace, _, operator = qualified.partition("::")
            name = operator.partition(".")[0]
            for spelling in {name, name.removesuffix("_")}:
                kernels.setdefault(spelling, []).append((namespace, operator, key))
    return kernels


def _is_key(name: str) -> bool:
    """Return whether PyTorch's dispatcher finds a key by its name; some keys have only a number."""
    if name.startswith(("StartOf", "EndOf", "Undefined")) or name.endswith(_UNUSUAL):
        return False
    try:
        return bool(_dispatch_get_registrations_for_dispatch_key(name))
    except RuntimeError:
        return False


# The Python functions of the modules read so far, by their simple names.
_functions: dict[str, list[FunctionType]] = {}
_read: set[str] = set()


def list_python_functions() -> dict[str, list[FunctionType]]:
    """Return the functions and methods in loaded modules of PyTorch and ``PACKAGES``, by the names that refuse them."""
    for path in [path for path in list(sys.modules) if path not in _read]:
        _read.add(path)
        top, package = path.partition(".")[0], _find_package(path)
        module = sys.modules.get(path)
        if type(module) is not ModuleType or (top != "torch" and package is None):
            continue
        for name, value in list(vars(module).items()):
            # What a module imports from another package does not belong to it.
            if issubclass(type(value), (type, *_FUNCTIONS)) and _defining_package(value) == top:
                listed = _functions.setdefault(package or name, [])
                listed += [function for function in _list_functions(value) if function not in listed]
    return _functions


def _find_package(path: str) -> str | None:
    """Return the name in ``PACKAGES`` to which a module belongs; None for other modules."""
    return next(
        (name for name, roots in PACKAGES.items() if any(f"{path}.".startswith(f"{root}.") for root in roots)), None
    )


# Marks such as `torch.jit.export`: PyTorch's own modules call them while they are imported, and they do nothing else.
_DECORATORS = frozenset({"torch._jit_internal", "torch.utils._exposed_in"})


def _defining_package(value: Any) -> str:
    """Return the package that defines a function or class; empty for decorators of PyTorch that must keep working."""
    home = value.__module__
    return home.partition(".")[0] if isinstance(home, str) and home not in _DECORATORS else ""


def _list_functions(value: Any) -> list[FunctionType]:
    """Return the Python functions behind a function or class; an ``nn.Module`` may be constructed, but not run."""
    if isinstance(value, type):
        methods = [(name, method) for name, method in vars(value).items() if type(method) is FunctionType]
        return [method for name, method in methods if "forward" in name or not issubclass(value, nn.Module)]
    functions = []
    while isinstance(value, _FUNCTIONS):
        functions += [value] if isinstance(value, FunctionType) else []
        value = vars(value).get("__wrapped__")
    return functions
