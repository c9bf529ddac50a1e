"""Provision warm, sandboxed kernels for programs that run notebooks through Jupyter: nbclient, nbconvert, nbgrader.

The entry point of this Jupyter kernel provisioner is ``tfcourse-warm``. A kernelspec can name it in its metadata, with settings; the
variable ``JUPYTER_DEFAULT_PROVISIONER_NAME`` selects it for all kernels of a process. One zygote forks all kernels of a process.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import shutil
import signal
import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Any

from jupyter_client.provisioning import KernelProvisionerBase
from traitlets import Dict

from autograder.engine.checker.zygote_client import StudentProcess, ZygoteClient, ZygoteError
from autograder.engine.environment import kernel_environment
from autograder.engine.sandbox.lockdown import SOCKETS
from autograder.engine.sandbox.settings import PRELOAD, SandboxSettings
from autograder.engine.transport.channel import ClosedError, DeadlineError, MessageTooLongError
from autograder.engine.transport.serialization import ProtocolError, unpack

_BIND_SECONDS = 30.0
_PORTS = ("shell_port", "iopub_port", "stdin_port", "control_port", "hb_port")

_zygotes: dict[SandboxSettings, ZygoteClient] = {}


class WarmProvisioner(KernelProvisionerBase):  # type: ignore[misc]
    """Forks a sandboxed kernel from a process that has imported the usual packages."""

    settings = Dict(help="What the engine is to be, by the names of SandboxSettings' fields.").tag(config=True)

    _child: StudentProcess | None = None
    _status: int | None = None
    _name = ""

    @property
    def has_process(self) -> bool:
        """Whether a kernel is running."""
        return self._child is not None

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Choose the kernel's sockets before a client connects to them."""
        kwargs = await super().pre_launch(
            cmd=[], **{name: item for name, item in kwargs.items() if name != "extra_arguments"}
        )
        self._zygote = await asyncio.to_thread(_ready_zygote, self._engine_settings())
        self._name = f"k-{uuid.uuid4().hex[:12]}"
        folder = Path(self._zygote.sockets) / self._name
        folder.mkdir()
        folder.chmod(0o777)  # the kernel may run as any user; only the grader can enter the folders above
        manager = self.parent
        manager.transport, manager.ip = "ipc", str(folder / "k")
        for number, port in enumerate(_PORTS, start=1):
            setattr(manager, port, number)
        manager.write_connection_file()
        return kwargs

    def _engine_settings(self) -> SandboxSettings:
        settings: Mapping[str, Any] = {
            **self.settings,
            **self.kernel_spec.metadata.get("engine", {}),
        }
        return SandboxSettings.from_dict(
            {"preload": (*PRELOAD, "autograder.engine.student.jupyter_kernel"), **settings}
        )

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> dict[str, Any]:
        """Fork the kernel, and return when its sockets are ready."""
        info: dict[str, Any] = self.parent.get_connection_info()
        key = info["key"]
        plain = {**info, "key": key.decode() if isinstance(key, bytes) else key}
        inside = (
            f"{SOCKETS}/k" if not self._zygote.problem and self._zygote.settings.isolation != "none" else info["ip"]
        )
        self._child = await asyncio.to_thread(self._fork, {**plain, "ip": inside})
        self._status = None
        return info

    def _fork(self, connection: Mapping[str, Any]) -> StudentProcess:
        child = self._zygote.child(2**16, connection=connection, sockets=self._name)
        try:
            answer = unpack(child.channel.receive(monotonic() + _BIND_SECONDS))
        except (ClosedError, DeadlineError, MessageTooLongError, ProtocolError) as error:
            child.close()
            raise ZygoteError(f"the kernel did not start ({type(error).__name__})") from error
        if "failed" in answer:
            child.close()
            raise ZygoteError(f"the kernel did not start: {answer['failed']}")
        return child

    async def poll(self) -> int | None:
        """Return None while the kernel runs, else its exit status."""
        if self._child is None or self._status is not None:
            return self._status or 0
        if self._child.is_alive():
            return None
        self._status = self._zygote.how_it_ended(self._child)
        return self._status

    async def wait(self) -> int | None:
        """Wait for the kernel and return its exit status."""
        while (status := await self.poll()) is None:
            await asyncio.sleep(0.01)
        self._forget()
        return status

    async def send_signal(self, signum: int) -> None:
        """Send the kernel a signal. Only an interrupt arrives as such, because the kernel is the first process of its namespace."""
        if self._child is None:
            return
        if signum == signal.SIGINT:
            self._child.interrupt()
        elif signum in (signal.SIGKILL, signal.SIGTERM):
            self._child.kill()

    async def kill(self, restart: bool = False) -> None:
        """End the kernel."""
        if self._child is not None:
            self._child.kill()

    async def terminate(self, restart: bool = False) -> None:
        """End the kernel."""
        await self.kill(restart)

    async def cleanup(self, restart: bool = False) -> None:
        """Release the kernel's resources."""
        self._forget()

    def _forget(self) -> None:
        if self._child is not None:
            if self._status is None:
                self._child.kill()
                self._status = self._zygote.how_it_ended(self._child)
            self._child.close()
            self._child = None
        if self._name:
            shutil.rmtree(Path(self._zygote.sockets) / self._name, ignore_errors=True)
            self._name = ""

    @property
    def layers(self) -> tuple[str, ...]:
        """The layers of isolation that are active in the kernel."""
        return self._child.layers if self._child is not None else ()


def _ready_zygote(settings: SandboxSettings) -> ZygoteClient:
    """Return this process's zygote client for these settings, ready to fork."""
    zygote = _zygotes.get(settings)
    if zygote is None:
        folder = Path(tempfile.gettempdir()) / f"tfcourse-{os.getpid()}"
        environment = dict(kernel_environment(folder, device=settings.device, seed=settings.seed))
        environment["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
        zygote = _zygotes[settings] = ZygoteClient(settings, environment, kernels=True)
        atexit.register(zygote.close)
    zygote.make_ready()
    return zygote
