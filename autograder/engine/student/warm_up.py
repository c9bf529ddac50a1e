"""Warm up a process once, instead of in every submission."""

from __future__ import annotations

import gc
from typing import Any

import torch
from torch import Tensor

from autograder.checking.draw import Case
from autograder.checking.subject import LocalSubject
from autograder.engine import seeding
from autograder.engine.cell_outputs import Outputs
from autograder.engine.student import rpc_server
from autograder.engine.student.shell import CellShell, make_shell
from autograder.engine.transport import serialization

__all__ = ["checks", "reduce_garbage_collection", "rpc_server", "seeding", "serialization", "shell"]


# Python specializes code after some runs and writes this into the code object: better once here than in every fork.
_TIMES = 10


def reduce_garbage_collection() -> None:
    """Make Python collect garbage less often: a process that runs one submission ends soon."""
    gc.set_threshold(20_000)


def shell(namespace: dict[str, Any] | None = None) -> CellShell:
    """Return a shell that has run cells, shown results and raised errors.

    Args:
        namespace: what cells see as their globals.
    """
    warm_shell = make_shell(namespace)
    for source in ("x = 1", "1 + 1", "raise ValueError", "def f(: pass") * _TIMES:
        warm_shell.run(source, Outputs(1_000, trusted=True).add)
    warm_shell.reset(new_session=True)
    warm_shell.execution_count = 1
    return warm_shell


def checks(*, backward: bool) -> None:
    """Make the first request of each kind, for which PyTorch imports many modules.

    Args:
        backward: whether to compute gradients; with visible CUDA devices autograd's engine does not survive a fork.
    """
    torch.set_num_threads(1)
    subject = LocalSubject(_softmax)
    case = Case({"x": torch.arange(6.0).reshape(2, 3)})
    # An unusual answer may need more imports than a check: on the meta device PyTorch imports its compiler and a computer algebra system.
    _softmax(case.arguments["x"].to("meta"))
    for action in ("call", "meta", "operations", "functions"):
        subject.observe(case.request(action))
    if backward:
        subject.observe(case.request("gradients", ("x",)))


def _softmax(x: Tensor) -> Tensor:
    future = torch.ones(2, 2, dtype=torch.bool, device=x.device).tril().logical_not()
    scores = (x @ x.transpose(-2, -1)).masked_fill(future, -1e9)
    return torch.einsum("ij,jk->ik", torch.softmax(scores, dim=-1), x)
