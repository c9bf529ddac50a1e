"""Refuse PyTorch's ready-made functions while an exercise that forbids them is asked.

An operator is refused at PyTorch's dispatcher, below every way that leads to it: `F.…`, `torch.ops.aten`, `torch._C._nn`, a module, a
compiled script, another thread, autograd, vmap, the meta device. A function or class that exists in Python only, such as
``F.multi_head_attention_forward`` or einops, is refused by exchanging the code that it runs, so a reference taken earlier is refused too.
When nothing is asked nothing is registered, and PyTorch is as it always is.

What is covered:

- every overload of a forbidden operator, at every dispatch key for which it has a kernel, in all threads and in copies of the process
- Python functions and methods of that name in PyTorch, as far as they are loaded, under whatever name they are called
- graphs that were recorded before (TorchScript, FX), where the exercise forbids to record

What is not covered:

- a copy of PyTorch's own Python source, by hand, by ``exec`` or by importing its module once more: that is Python like any other
- code that calls into PyTorch's libraries past the dispatcher, by ctypes or an extension
- code that takes hold of what is registered (in the grader, see :mod:`autograder.engine.student.refusal_switch`)

In the grader the switch is in an audit hook, and proves to the checker that it was thrown
(:mod:`autograder.engine.student.refusal_switch`).
"""

from __future__ import annotations

import sys
import warnings
from abc import ABCMeta
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeAlias

import torch
from torch import nn
from torch._C import (
    DispatchKey,
    ScriptFunction,
    ScriptMethod,
    _dispatch_get_registrations_for_dispatch_key,
    _dispatch_library,
    _DispatchModule,
)

# Names that stand for a package: all functions of these modules and of those below them. PyTorch brings a copy of einops.
PACKAGES = {"einops": ("einops", "functorch.einops", "torch._functorch.einops")}
# What records a ready-made layer as the plain operations that it consists of. Who forbids it forbids to run a recorded graph.
RECORDERS = frozenset({"trace", "trace_module", "symbolic_trace", "make_fx", "export"})

# Taken once, so that nothing that student code does to a class or a module changes what is called here.
_implement, _reset, _modules = _DispatchModule.impl, _DispatchModule.reset, sys.modules
_FUNCTIONS = (FunctionType, type(lru_cache(lambda: None)))
_KINDS = (type, ABCMeta, *_FUNCTIONS)
_namespace, _subclasses = type.__dict__["__dict__"].__get__, type.__subclasses__
_warn_always, _set_warn_always = torch._C._get_warnAlways, torch._C._set_warnAlways
# What has been exchanged or registered stays alive: a weak reference that a student has taken calls nothing back.
_kept: list[Any] = []
_SCRIPTS = (ScriptFunction, ScriptMethod)

# Kinds of processors that no course has.
_UNUSUAL = ("HIP", "XLA", "IPU", "HPU", "VE", "Lazy", "MTIA", "MAIA", "PrivateUse1", "PrivateUse2", "PrivateUse3")

# What takes a refusal back: handles of registrations; Python functions and classes, each with what they ran before behind it. It is flat,
# for a container is found by ``gc``.
Standing: TypeAlias = list[Any]


def _is_key(name: str) -> bool:
    """Return whether PyTorch's dispatcher knows a key by its name; some have only a number."""
    if name.startswith(("StartOf", "EndOf", "Undefined")) or name.endswith(_UNUSUAL):
        return False
    try:
        return bool(_dispatch_get_registrations_for_dispatch_key(name))
    except RuntimeError:
        return False


class ForbiddenFunctionError(RuntimeError):
    """The examined code called a function that does the exercise by itself."""


@contextmanager
def refused(exercise: str, names: Sequence[str]) -> Iterator[set[str]]:
    """Refuse functions, and yield the set in which the names of those are that were called all the same.

    Args:
        exercise: the name of the exercise, for the message.
        names: names of operators, of Python functions and classes of PyTorch, and of packages.
    """
    called: set[str] = set()
    standing: Standing = []
    try:
        refuse(exercise, names, called, standing)
        yield called
    finally:
        release(standing)


def refuse(exercise: str, names: Sequence[str], called: set[str], standing: Standing) -> None:
    """Refuse functions from now on.

    Args:
        exercise: the name of the exercise, for the message.
        names: as for :func:`refused`.
        called: is given the names of functions that are called.
        standing: an empty list, is given what :func:`release` takes.
    """
    refusing = {name: _refusing(exercise, name, called) for name in names}
    _kept.append(refusing)
    handles: dict[str, Any] = {}
    kernels = _operators()
    warns = _warn_always()
    _set_warn_always(False)  # to warn is Python, which others can change
    for name in (name for name in names if name not in RECORDERS):  # torch.trace adds up a diagonal
        for namespace, operator, key in kernels.get(name, ()):
            if namespace not in handles:
                handles[namespace] = _dispatch_library("IMPL", namespace, "")
                standing.append(handles[namespace])
            _implement(handles[namespace], operator, key, refusing[name], False)  # type: ignore[call-arg]
    _set_warn_always(warns)
    functions = _functions(names)
    records = next((name for name in names if name in RECORDERS), "")
    if records:
        functions += [(forward, records) for forward in _recorded_graphs()]
        for kind in _SCRIPTS:
            standing += kind, kind.__call__
            kind.__call__ = refusing[records]  # type: ignore[method-assign]
    for function, name in functions:
        standing += function, function.__code__
        exchanged = _calling(refusing[name], function.__code__)
        _kept.append(exchanged)
        function.__code__ = exchanged


def release(standing: Standing) -> None:
    """Take back what :func:`refuse` has done, the last first."""
    while standing:
        before = standing.pop()
        if isinstance(before, _DispatchModule):
            _reset(before)
        elif isinstance(before, CodeType):
            standing.pop().__code__ = before
        else:
            standing.pop().__call__ = before


def prepare() -> None:
    """Look through PyTorch once, so that no later request has to."""
    _prepared.update(_python_functions(list(_modules)))
    _looked_through.update(path for path in _modules if type(path) is str)
    if "torch.fx" in _modules:
        _graphs[:] = [_modules["torch.fx"].GraphModule, _modules["torch.fx"].Interpreter.run]
    _operators()


def _refusing(exercise: str, name: str, called: set[str]) -> Callable[..., Any]:
    """Return a function that takes note of its call and raises.

    Its frame is in the traceback of what it raises, so it has globals of its own: from there nothing leads back to this module.
    """
    text = f"{name} is refused while {exercise} is checked: the exercise asks you to write yourself what it does"

    def refusing(*args: object, **kwargs: object) -> None:
        note(name)
        raise kind(text)

    note, kind = called.add, ForbiddenFunctionError
    return FunctionType(refusing.__code__, {"__builtins__": {}}, name, None, refusing.__closure__)


def _calling(target: Callable[..., Any], code: CodeType) -> CodeType:
    """Return code that calls a function, whatever it is given, and can take the place of other code."""
    return _TEMPLATE.replace(
        co_consts=tuple(target if const == "target" else const for const in _TEMPLATE.co_consts),
        co_freevars=code.co_freevars,
        co_name=code.co_name,
        co_filename=code.co_filename,
    )


def _template(*args: object, **kwargs: object) -> object:
    target: Any = "target"
    return target(*args, **kwargs)


_TEMPLATE = _template.__code__


def _operators() -> dict[str, list[tuple[str, str, str]]]:
    """Return namespace, name with overload, and dispatch key of every kernel, by the operator's name, in place or not."""
    if not _kernels:
        for key in filter(_is_key, DispatchKey.__members__):
            for qualified in _dispatch_get_registrations_for_dispatch_key(key):
                namespace, _, operator = qualified.partition("::")
                name = operator.partition(".")[0]
                for spelling in {name, name.removesuffix("_")}:
                    _kernels.setdefault(spelling, []).append((namespace, operator, key))
        with warnings.catch_warnings():  # PyTorch says once in each process that a kernel is overridden
            warnings.simplefilter("ignore")
            with refused("", ("gelu",)):
                pass
    return _kernels


def _functions(names: Sequence[str]) -> list[tuple[FunctionType, str]]:
    if not _looked_through:
        prepare()
    loaded = [path for path in dict.keys(_modules) if type(path) is str]
    new = _python_functions([path for path in loaded if path not in _looked_through], names)
    pairs = [(function, name) for name in names for function in (*_prepared.get(name, ()), *new.get(name, ()))]
    return list({id(function): (function, name) for function, name in pairs}.values())


# All kernels; and what :func:`prepare` has found in Python, and in which modules. Made once, and changed by nobody afterwards.
_kernels: dict[str, list[tuple[str, str, str]]] = {}
_prepared: dict[str, list[FunctionType]] = {}
_looked_through: set[str] = set()
# FX's module of a recorded graph, and what interprets one.
_graphs: list[Any] = []


# Marks such as `torch.jit.export`: PyTorch's own modules call them while they are imported, and they do nothing else.
_DECORATORS = frozenset({"torch._jit_internal", "torch.utils._exposed_in"})


def _python_functions(paths: Sequence[str], names: Sequence[str] = ()) -> dict[str, list[FunctionType]]:
    """Return the Python functions in modules of PyTorch and of ``PACKAGES``, by their simple names: those of some names, or all."""
    functions: dict[str, list[FunctionType]] = {}
    requested, sought = frozenset(paths), frozenset(names)
    for path, module in list(dict.items(_modules)):
        if type(path) is not str or path not in requested or type(module) is not ModuleType:
            continue
        top, package = path.partition(".")[0], _package_of(path)
        if top != "torch" and package is None:
            continue
        for name, value in _plain_items(module.__dict__):
            if package is None and sought and name not in sought:
                continue
            # Other objects may do anything when they are asked. What is imported from another package is none of this one's.
            if not any(type(value) is kind for kind in _KINDS):
                continue
            home = value.__module__
            if type(home) is str and home not in _DECORATORS and home.partition(".")[0] == top:
                functions.setdefault(package or name, []).extend(_code_of(value))
    return functions


def _package_of(path: str) -> str | None:
    """Return the name in ``PACKAGES`` that stands for a module."""
    return next(
        (name for name, roots in PACKAGES.items() if any(f"{path}.".startswith(f"{root}.") for root in roots)), None
    )


def _plain_items(there: Any) -> list[tuple[str, Any]]:
    """Return the items of a namespace whose names are plain text: a key of a student's own class is neither compared nor hashed."""
    pairs = dict.items(there) if isinstance(there, dict) else there.items()
    return [(name, value) for name, value in list(pairs) if type(name) is str]


def _code_of(value: Any) -> list[FunctionType]:
    """Return the Python functions behind a function or a class; a module of weights may be made, but not run."""
    if isinstance(value, type):
        methods = [(name, method) for name, method in _plain_items(_namespace(value)) if type(method) is FunctionType]
        return [method for name, method in methods if "forward" in name or not issubclass(value, nn.Module)]
    functions = []
    while any(type(value) is kind for kind in _FUNCTIONS):
        functions += [value] if type(value) is FunctionType else []
        value = next((item for name, item in _plain_items(value.__dict__) if name == "__wrapped__"), None)
    return functions


def _recorded_graphs() -> list[FunctionType]:
    """Return what runs the graphs that FX has recorded in this process."""
    waiting, functions = list(_graphs[:1]), list(_graphs[1:])
    for kind in waiting:  # grows meanwhile
        waiting += _subclasses(kind)
        functions += [
            item for name, item in _plain_items(_namespace(kind)) if name == "forward" and type(item) is FunctionType
        ]
    return functions
