"""Warm up a process and its shell once, instead of in every submission."""

from __future__ import annotations

import gc

from autograder.engine.cell_outputs import Outputs
from autograder.engine.shell.cell_shell import CellShell, make_shell

# Python specializes code after some runs and writes this into the code object: better once here than in every fork.
_TIMES = 10


def reduce_garbage_collection() -> None:
    """Make Python collect garbage less often: a process that runs one submission ends soon."""
    gc.set_threshold(20_000)


def warm_shell() -> CellShell:
    """Return a shell that has run cells, shown results and raised errors."""
    shell = make_shell()
    for source in ("x = 1", "1 + 1", "raise ValueError", "def f(: pass") * _TIMES:
        shell.run(source, Outputs(1_000).add)
    shell.reset(new_session=True)
    shell.execution_count = 1
    return shell
