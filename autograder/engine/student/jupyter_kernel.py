"""Run a Jupyter kernel in a process that has just been forked."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

# The debugger takes 100 ms to load and listens on the network; the kernel works without it.
sys.modules.setdefault("debugpy", None)  # type: ignore[arg-type]

from ipykernel import kernelapp  # noqa: E402
from ipykernel.iostream import IOPubThread  # noqa: E402
from ipykernel.zmqshell import ZMQInteractiveShell  # noqa: E402
from tornado.ioloop import IOLoop  # noqa: E402

from autograder.engine.sandbox.lockdown import SCRATCH  # noqa: E402
from autograder.engine.student.shell import CellShell  # noqa: E402


class _Outputs(IOPubThread):  # type: ignore[misc]
    """A kernel's output thread, without the loopback port for the output of child processes."""

    def __init__(self, socket: Any, pipe: bool = False, session: Any = False) -> None:
        super().__init__(socket, pipe=False, session=session)


def run_kernel(connection: Mapping[str, Any], ready: Callable[[], None]) -> None:
    """Run a kernel until it receives a shutdown request.

    Args:
        connection: the contents of Jupyter's connection file.
        ready: called before the first cell runs, when the sockets are bound and all threads have started.
    """
    path = Path(SCRATCH if Path.cwd().is_relative_to(SCRATCH) else Path.cwd()) / "connection.json"
    path.write_text(json.dumps(dict(connection)), encoding="utf-8")
    kernelapp.IOPubThread = _Outputs
    # Commands run without a terminal: the sandbox has none.
    ZMQInteractiveShell.system = ZMQInteractiveShell.system_piped = CellShell.system
    app = kernelapp.IPKernelApp.instance(connection_file=str(path))
    app.initialize([])
    IOLoop.current().add_callback(ready)
    app.start()
