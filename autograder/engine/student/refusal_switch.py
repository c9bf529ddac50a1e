"""Refuse forbidden functions in a student's process, out of reach of the student's code.

:mod:`autograder.checking.refusal` says what is refused, and how. Here a copy of that module lives where Python code does not get to: in
the closure of an audit hook, which nothing lists, removes or traces. The checker gives it a key before the student's first line, and asks
for a proof with each exercise: only who has the key can make one, and the hook makes it after it has refused what was asked.

Protects against:

- the grader's own modules changed by student code, so that they refuse nothing: no proof, so no answer counts
- a release by student code: it takes a token that the checker sends afterwards
- processes that a cell has left running, in which nothing is refused: they are ended first
- what is registered, found on the stack, in ``gc``, in ``sys.modules`` or in a traceback: no reference is there
- audit hooks of the student's, which would run inside of this one: none can be added
- objects of the student's own classes among the arguments or in PyTorch's modules: nothing of theirs is compared, hashed or shown

Does not protect against:

- ctypes and extensions, which read and write any memory
- code that catches the hook while it runs, by a signal or by another thread that looks at frames, and takes the key from its frame
"""

from __future__ import annotations

import builtins
import ctypes
import gc
import importlib.util
import os
import signal
import sys
from collections.abc import Sequence
from functools import cache
from hashlib import blake2b
from types import CellType, FunctionType, ModuleType
from typing import Any

import torch

EVENT = "tfcourse.refusal"

# Rarely imported modules with functions that an exercise may forbid: the search needs them loaded.
_SELDOM = (
    "einops",
    "einops.layers.torch",
    "torch.ao.nn.quantizable",
    "torch.nn.attention.flex_attention",
    "torch.fx",
    "functorch.einops",
)


# They create kernels (Static Runtime) that student code could call without the dispatcher, which refuses forbidden ones.
_PAST_THE_DISPATCHER = ("_dispatch_get_computed_kernel_for_dispatch_key", "_jit_to_static_module")


@cache
def prepare() -> None:
    """Import the modules that students rarely import and exercises may forbid, and take away what leads past the dispatcher.

    Call it before ``gc.freeze()``: what is frozen is found by no search for references.
    """
    for name in _SELDOM:
        if importlib.util.find_spec(name.partition(".")[0]) is not None:
            importlib.import_module(name)
    # PyTorch itself does not use them.
    for name in _PAST_THE_DISPATCHER:
        for holder in gc.get_referrers(getattr(torch._C, name)):
            if isinstance(holder, dict):
                holder.pop(name, None)


@cache
def install(*, namespaces: bool) -> None:
    """Add the hook to this process, once; its forks inherit the hook.

    Args:
        namespaces: whether each fork is the first process of its own namespace, so that it may kill all others there.
    """
    prepare()
    if any(hasattr(torch._C, name) for name in _PAST_THE_DISPATCHER):
        raise RuntimeError("students could call kernels past the dispatcher, which refuses forbidden ones")
    refusal = _private("autograder.checking.refusal")
    refusal.prepare()
    del refusal.refused  # a function of contextlib with a reference to this module
    private_self = _private(__name__)
    hook = private_self.hook_of(refusal.refuse, refusal.release, namespaces)
    _hide([vars(refusal), vars(private_self), refusal, private_self, hook])
    sys.addaudithook(hook)


def keep(key: bytes) -> None:
    """Give the hook its key; it accepts only the first one."""
    sys.audit(EVENT, "key", key)


def refuse(exercise: str, names: Sequence[str], nonce: bytes, called: set[str]) -> bytes:
    """Refuse functions, and return the proof, or empty bytes.

    Args:
        exercise: the name of the exercise.
        names: what it forbids.
        nonce: makes this proof unique.
        called: collects the names of functions that are called.
    """
    proof: list[bytes] = []
    sys.audit(EVENT, "refuse", exercise, tuple(names), nonce, called, proof)
    return proof[0] if proof else b""


def release(token: bytes) -> None:
    """Allow all functions again if the token is the checker's."""
    sys.audit(EVENT, "release", token)


def proof_of(key: bytes, exercise: str, names: Sequence[str], nonce: bytes) -> bytes:
    """Return the proof that functions are refused."""
    return _digest(blake2b(repr(("refused", exercise, tuple(names), nonce)).encode(), key=key))


def token_of(key: bytes, nonce: bytes) -> bytes:
    """Return the token that ends the refusal that a nonce has begun."""
    return _digest(blake2b(repr(("release", nonce)).encode(), key=key))


_digest = blake2b.digest
_block, _signals, _BLOCK, _RESTORE = (
    signal.pthread_sigmask,
    signal.valid_signals(),
    signal.SIG_BLOCK,
    signal.SIG_SETMASK,
)
_kill, _getpid, _KILL = os.kill, os.getpid, signal.SIGKILL
_disable_gc, _enable_gc = gc.disable, gc.enable


def hook_of(refuse: Any, release: Any, namespaces: bool) -> Any:
    """Return the audit hook."""
    keys: list[bytes] = []
    nonces: list[bytes] = []
    standing: list[Any] = []

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event != EVENT:
            if event == "sys.addaudithook" and keys:
                raise RuntimeError("no other audit hook can be added")
            return
        if not is_well_formed(arguments):
            return
        _disable_gc()
        before = _block(_BLOCK, _signals)
        try:
            action, *rest = arguments
            if action == "key" and not keys:
                keys.extend(rest)
            elif action == "refuse" and keys and not nonces:
                exercise, names, nonce, called, proof = rest
                if namespaces and _getpid() == 1:
                    # No context manager of contextlib: student code can change that module.
                    try:  # noqa: SIM105
                        _kill(-1, _KILL)
                    except ProcessLookupError:
                        pass
                nonces.append(nonce)
                refuse(exercise, names, called, standing)
                proof.append(proof_of(keys[0], exercise, names, nonce))
            elif action == "release" and nonces and rest[0] == token_of(keys[0], nonces[0]):
                release(standing)
                nonces.clear()
        except Exception:  # the checker then gets no proof
            release(standing)
        finally:
            _enable_gc()
            _block(_RESTORE, before)

    return hook


# The arguments of each action. The hook compares, hashes and shows objects of exactly these types only: a method of a student's subclass
# would run inside the hook and find the key on its stack.
_FORMS: dict[str, tuple[type, ...]] = {
    "key": (bytes,),
    "refuse": (str, tuple, bytes, set, list),
    "release": (bytes,),
}


def is_well_formed(arguments: tuple[Any, ...]) -> bool:
    """Check that the arguments of an event are of exactly the types that its action has."""
    if not arguments or type(arguments[0]) is not str or arguments[0] not in _FORMS:
        return False
    form, rest = _FORMS[arguments[0]], arguments[1:]
    if len(rest) != len(form) or not all(type(part) is kind for part, kind in zip(rest, form, strict=True)):
        return False
    return all(type(name) is str for part in rest if type(part) is tuple for name in part)


def _private(name: str) -> ModuleType:
    """Return a copy of a module that is not in ``sys.modules`` and has its own built-ins."""
    spec = importlib.util.find_spec(name)
    assert spec is not None, name
    assert spec.loader is not None, name
    module = importlib.util.module_from_spec(spec)
    vars(module)["__builtins__"] = dict(vars(builtins))
    spec.loader.exec_module(module)
    return module


def _hide(waiting: list[Any]) -> None:
    """Hide objects, and the functions and containers that only they refer to, from ``gc``. They live as long as the process."""
    private = [item for item in waiting if type(item) is dict]
    untrack = ctypes.pythonapi.PyObject_GC_UnTrack
    untrack.argtypes, untrack.restype = [ctypes.py_object], None
    keep_alive = ctypes.pythonapi.Py_IncRef
    keep_alive.argtypes, keep_alive.restype = [ctypes.py_object], None
    visited: set[int] = set()
    while waiting:
        item = waiting.pop()
        if id(item) in visited:
            continue
        visited.add(id(item))
        if type(item) is FunctionType and not any(item.__globals__ is namespace for namespace in private):
            continue
        if gc.is_tracked(item):
            untrack(item)
        keep_alive(item)
        waiting += [part for part in gc.get_referents(item) if type(part) in _HIDDEN]


_HIDDEN = (dict, list, tuple, set, FunctionType, CellType)
