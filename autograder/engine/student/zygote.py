"""Fork one sandboxed student process per notebook from a warm zygote.

The zygote is a separate program that communicates with one worker over an inherited socket. It has one thread, no event loop, no message
queue and no CUDA context, because these do not survive a fork.

Protects against:

- student code that imports the grader: its folder is removed from ``sys.path``, and its packages find no further modules
- secrets in memory: neither the zygote nor its forks contain the reference, the hidden tests or the seed
- a submission that influences the next one: each has its own fork, and student code never runs in the zygote

Does not protect against:

- modules that are loaded before the fork, such as ``autograder.checking``: students have them anyway, and the checker trusts no answer
- what the sandbox (:mod:`autograder.engine.sandbox.lockdown`) leaves open
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.engine.sandbox import linux, lockdown
from autograder.engine.sandbox.settings import PRELOAD, SandboxSettings
from autograder.engine.transport.channel import (
    Channel,
    ClosedError,
    Mailbox,
    receive_with_descriptors,
    send_with_descriptors,
)
from autograder.engine.transport.fork_server import FORK_SERVER, serve_forks

if TYPE_CHECKING:
    from autograder.engine.student.cell_shell import CellShell

# The most exit statuses to keep of children for which nobody has waited.
_REMEMBERED = 64


def main(descriptor: int) -> None:
    """Prepare the zygote, report the active isolation to the worker, and fork children until the worker disconnects."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the worker's business
    lockdown.raise_file_limit()
    _serve_worker(socket.socket(fileno=descriptor))


def serve_zygotes(arguments: Sequence[str]) -> None:
    """Import the packages that every submission needs, and fork a zygote per worker until the connection closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lockdown.raise_file_limit()
    serve_forks(arguments, _import_for_all, _run_zygote)


def _import_for_all() -> None:
    _import(PRELOAD)
    _shell()
    _warm_up("cpu")


def _run_zygote(order: dict[str, Any], descriptors: list[int]) -> None:
    _serve_worker(socket.socket(fileno=descriptors[0]))


def _serve_worker(control: socket.socket) -> None:
    try:
        message, _ = receive_with_descriptors(control, 0)
    except (ClosedError, OSError):  # the worker is gone, or has found no use for this process
        return
    order = json.loads(message)
    _replace_environment(order["environment"])
    if not _bind_to_worker(control):
        return
    settings = SandboxSettings.from_dict(order["settings"])
    zygote = _Zygote(control, settings)
    try:
        zygote.prepare(order["root"])
    except Exception:
        _send(control, {"failed": traceback.format_exc(limit=3)})
        return
    # Present objects are never garbage: a child that scanned them would copy every memory page they are on.
    gc.collect()
    gc.freeze()
    _send(control, {"namespaces": zygote.moved_in, "problem": zygote.problem, "pid": os.getpid()})
    zygote.serve()


def _bind_to_worker(control: socket.socket) -> bool:
    """Make this process end with the worker, even during imports; return False if the worker has already ended.

    Until it ends it keeps inherited files open, for instance an error pipe that a reader waits for.
    """
    lockdown.die_with_parent()
    poll = select.poll()
    poll.register(control, 0)
    return not poll.poll(0)


def _replace_environment(variables: Mapping[str, str]) -> None:
    """Replace the environment variables inherited from the server."""
    os.environ.clear()
    os.environ.update(variables)
    tempfile.tempdir = None


@cache
def _import(names: tuple[str, ...]) -> None:
    for name in names:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    importlib.import_module("autograder.engine.student.audit")
    from autograder.engine.student import data_loading, warm_up  # noqa: F401 - for those that are forked here

    gc.set_threshold(20_000)  # a process that runs one submission ends soon
    data_loading.load_in_this_process()


@cache
def _shell() -> CellShell:
    from autograder.engine.student.cell_shell import warm_shell

    return warm_shell()


@cache
def _warm_up(device: str) -> None:
    from autograder.engine.student import forbidden, warm_up

    warm_up.warm_up_checks(backward=device == "cpu")
    forbidden.prepare()


class _Zygote:
    def __init__(self, control: socket.socket, settings: SandboxSettings) -> None:
        self._control = control
        self._settings = settings
        self._forks: lockdown.ProcessNamespaces | None = None
        self._ended: dict[int, int] = {}
        self.moved_in = False
        self.problem = ""
        self._large_pages = False

    def prepare(self, root: str) -> None:
        """Import the packages that students use, and enter the private root."""
        settings = self._settings
        if settings.isolation == "none":
            self._import()
        else:
            masked = [str(Path(entry) / name) for entry in sys.path for name in settings.hidden if entry]
            view = lockdown.python_view(masked, packages=settings.packages, cuda=settings.device == "cuda")
            try:
                lockdown.enter_private_root(root, view, self._import)
                self._forks = lockdown.ProcessNamespaces()
                self.moved_in = True
            except OSError as error:
                self.problem = str(error)
                self._import()
        if self.moved_in:
            os.environ.update(HOME=lockdown.HOME, IPYTHONDIR=f"{lockdown.HOME}/.ipython")
            os.environ.update(dict.fromkeys(("TMPDIR", "TEMP", "TMP"), lockdown.SCRATCH))
            tempfile.tempdir = None
        _change_packages(lockdown.PACKAGES if self.moved_in and settings.packages else settings.packages)

    def _import(self) -> None:
        _import(self._settings.preload)
        self._shell = _shell()
        _warm_up(self._settings.device)

    def serve(self) -> None:
        """Serve the worker's orders (fork, wait for a child, enter a folder of packages) until it disconnects."""
        while True:
            try:
                message, descriptors = receive_with_descriptors(self._control, 3)
            except (ClosedError, OSError):
                return
            order = json.loads(message)
            if "leave" in order:
                return
            if "fork" in order:
                self._fork(order["fork"], descriptors, order["token"])
                self._use_large_pages()
            elif "enter" in order:
                if not self._enter(order["enter"], order["token"]):
                    return
            else:
                _send(self._control, {"status": self._status_of(order["wait"]), "token": order["token"]})

    def _use_large_pages(self) -> None:
        """Move memory to large pages once, to make later forks faster; called while the first child runs."""
        if not self._large_pages:
            linux.use_large_pages()
            self._large_pages = True

    def _enter(self, folder: str, token: str) -> bool:
        """Fork a copy that loads a folder's packages and serves instead; return whether to continue after it ends.

        The loaded packages end with the copy. If the copy dies unexpectedly, its last order is unknown, so this process ends, too.
        """
        copy = os.fork()
        if copy:
            return os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]) == 0
        status = 1
        with contextlib.suppress(BaseException):
            lockdown.die_with_parent()
            _change_packages(f"{lockdown.PACKAGES if self.moved_in else self._settings.packages}/{folder}")
            self._large_pages = False
            gc.collect()
            gc.freeze()
            _send(self._control, {"entered": folder, "token": token})
            self.serve()
            status = 0
        os._exit(status)

    def _status_of(self, child: int) -> int:
        """Wait for a child, and return its exit status or minus the signal that ended it."""
        if child not in self._ended:
            try:
                _, status = os.waitpid(child, 0)
            except ChildProcessError:
                return 0
            return os.waitstatus_to_exitcode(status)
        return self._ended.pop(child)

    def _reap_children(self) -> None:
        """Reap ended children, so that none remains as a zombie."""
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                self._ended[ended[0]] = os.waitstatus_to_exitcode(ended[1])
        while len(self._ended) > _REMEMBERED:
            self._ended.pop(next(iter(self._ended)))

    def _fork(self, order: dict[str, Any], descriptors: list[int], token: str) -> None:
        self._reap_children()
        child = self._forks.fork() if self._forks is not None else os.fork()
        if not child:
            self._control.close()
            self._run_child(order, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        handle = os.pidfd_open(child)
        send_with_descriptors(self._control, json.dumps({"pid": child, "token": token}).encode(), [handle])
        os.close(handle)

    def _run_child(self, order: dict[str, Any], descriptors: list[int]) -> None:
        """Run the child, and never return."""
        status = 1
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            _redirect_output()
            limits = lockdown.Limits(**order["limits"])
            layers: list[str] = []
            if self._settings.isolation != "none":
                layers = lockdown.lock_down(
                    limits,
                    namespaces=self.moved_in,
                    cuda=self._settings.device == "cuda",
                    scratch=order["scratch"],
                )
            elif order["scratch"]:
                os.chdir(order["scratch"])
            self._serve_checker(order, descriptors, layers)
            status = 0
        except BaseException:
            # An exception outside of requests comes from grader code; report it to the worker.
            with contextlib.suppress(Exception):
                _report_failure(descriptors[0], traceback.format_exc(limit=-4)[-2000:])
        finally:
            os._exit(status)

    def _serve_checker(self, order: dict[str, Any], descriptors: list[int], layers: list[str]) -> None:
        from autograder.engine.seeding import seed_all
        from autograder.engine.student import audit, forbidden
        from autograder.engine.student.rpc_server import RpcServer
        from autograder.engine.transport.serialization import pack

        seed_all(self._settings.seed)
        channel = Channel(socket.socket(fileno=descriptors[0]), order["max_bytes"])
        channel.send(pack({"ready": layers}))
        mailbox = Mailbox(socket.socket(fileno=descriptors[1]))
        called = forbidden.refuse_permanently(order["forbidden"])
        audit.install_report_hook(socket.socket(fileno=descriptors[2]), audit.library_folders(self._settings.packages))
        RpcServer(channel, mailbox, self._shell, order["max_bytes"], called).serve()


def _report_failure(descriptor: int, text: str) -> None:
    from autograder.engine.transport.serialization import pack

    Channel(socket.socket(fileno=descriptor)).send(pack({"failed": text}))


def _send(control: socket.socket, message: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):
        send_with_descriptors(control, json.dumps(message).encode(), [])


def _redirect_output() -> None:
    """Redirect standard streams to ``/dev/null``, for output that bypasses Python's streams."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)


def _change_packages(folder: str) -> None:
    """Replace the grader's packages by a student build; its loaded modules stay, but no others can be imported."""
    project = str(Path(__file__).resolve().parents[3])
    sys.meta_path[:] = [
        finder for finder in sys.meta_path if not getattr(finder, "__module__", "").startswith("__editable__")
    ]
    # As in Jupyter, modules beside the notebook can be imported; they shadow no others.
    sys.path[:] = [*([folder] if folder else []), *(entry for entry in sys.path if entry and entry != project), ""]
    paths = (
        {"autograder": f"{folder}/autograder", "autograder.checking": f"{folder}/autograder/checking"} if folder else {}
    )
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "autograder" and hasattr(module, "__path__"):
            module.__path__[:] = [paths[name]] if name in paths else []
    importlib.invalidate_caches()
    for name in _modules_in(folder):
        with contextlib.suppress(Exception):  # the student's own import will show the error
            importlib.import_module(name)


def _modules_in(folder: str) -> list[str]:
    """Return the modules of a student build without its copy of the grader, and the module that its checks need."""
    if not folder:
        return []
    modules = [info.name for info in pkgutil.walk_packages([folder]) if not info.name.startswith("autograder")]
    return [*modules, "autograder.checking.recorded"]


if __name__ == "__main__":
    if sys.argv[1] == FORK_SERVER:
        serve_zygotes(sys.argv[2:])
    else:
        main(int(sys.argv[1]))
