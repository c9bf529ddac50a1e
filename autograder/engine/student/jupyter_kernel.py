"""A Jupyter kernel in a process that has just been forked."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

# The debugger takes 100 ms to load and listens on the network; a kernel that does not find it does without.
sys.modules.setdefault("debugpy", None)  # type: ignore[arg-type]

from ipykernel import kernelapp  # noqa: E402
from ipykernel.iostream import IOPubThread  # noqa: E402
from ipykernel.zmqshell import ZMQInteractiveShell  # noqa: E402
from tornado.ioloop import IOLoop  # noqa: E402

from autograder.engine.sandbox.lockdown import SCRATCH  # noqa: E402
from autograder.engine.student.shell import CellShell  # noqa: E402


class _Outputs(IOPubThread):  # type: ignore[misc]
    """The thread of a kernel's outputs, without the port of the loopback network to which child processes would print."""

    def __init__(self, socket: Any, pipe: bool = False, session: Any = False) -> None:
        super().__init__(socket, pipe=False, session=session)


def run_kernel(connection: Mapping[str, Any], ready: Callable[[], None]) -> None:
    """Run a kernel until it is told to end.

    Args:
        connection: what Jupyter's connection file says.
        ready: called before the first cell runs, when its sockets can be connected to and all its threads are there.
    """
    path = Path(SCRATCH if Path.cwd().is_relative_to(SCRATCH) else Path.cwd()) / "connection.json"
    path.write_text(json.dumps(dict(connection)), encoding="utf-8")
    kernelapp.IOPubThread = _Outputs
    # A command runs without a terminal, of which a sandbox has none.
    ZMQInteractiveShell.system = ZMQInteractiveShell.system_piped = CellShell.system
    app = kernelapp.IPKernelApp.instance(connection_file=str(path))
    app.initialize([])
    IOLoop.current().add_callback(ready)
    app.start()
