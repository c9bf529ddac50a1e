"""Refuse forbidden functions in a student's process, permanently, before its first line of student code.

:mod:`autograder.checking.refusal` defines what is refused and how. The process contains no key, switch or list with which to undo it.

Protects against:

- student code that undoes the refusal: registrations at PyTorch's dispatcher have no handle, and the code of refused functions is removed
- student code that changes the grader's modules: they have finished before its first line runs

Does not protect against:

- code that changes this process's memory, by ctypes or an extension, or that contains a copy of a forbidden function. It could equally
  paste a solution; :mod:`autograder.engine.student.audit` reports the attempt.
"""

from __future__ import annotations

import ctypes
import gc
import importlib.util
from collections.abc import Sequence
from functools import cache

import torch

from autograder.checking import refusal

_WHEN = "here: this exercise asks you to write yourself what it does"

# Rarely imported modules with functions that an exercise may forbid: a refusal covers loaded modules.
_RARELY_IMPORTED = (
    "einops",
    "einops.layers.torch",
    "torch.ao.nn.quantizable",
    "torch.nn.attention.flex_attention",
    "torch.fx",
    "functorch.einops",
)
# They give kernels (Static Runtime) to student code, which could call these without the dispatcher.
_PAST_THE_DISPATCHER = ("_dispatch_get_computed_kernel_for_dispatch_key", "_jit_to_static_module")


@cache
def prepare() -> None:
    """Import modules with forbiddable functions, list PyTorch's functions, and remove ways around the dispatcher.

    A zygote calls this once. Call it before ``gc.freeze()``: a search for references does not find frozen objects.

    Raises:
        RuntimeError: if a function that leads past the dispatcher is left.
    """
    for name in _RARELY_IMPORTED:
        if importlib.util.find_spec(name.partition(".")[0]) is not None:
            importlib.import_module(name)
    # PyTorch itself does not use them.
    for name in _PAST_THE_DISPATCHER:
        for holder in gc.get_referrers(getattr(torch._C, name)):
            if isinstance(holder, dict):
                holder.pop(name, None)
    if any(hasattr(torch._C, name) for name in _PAST_THE_DISPATCHER):
        raise RuntimeError("student code could bypass the dispatcher, which blocks forbidden kernels")
    refusal.list_kernels()
    refusal.list_python_functions()


def refuse_permanently(names: Sequence[str]) -> set[str]:
    """Refuse functions until this process ends.

    Args:
        names: names of operators, of Python functions and classes of PyTorch, and of packages.

    Returns:
        The set that collects the names of refused functions that are called.
    """
    refused = refusal.refuse(names, _WHEN)
    for kernel in refused.kernels:  # a registration ends with its object, so this one never ends
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(kernel))
    return refused.called
