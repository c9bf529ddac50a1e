"""Report suspicious actions of a student's process, such as reading frames or using ctypes.

An audit hook sends one line per event to the checker, which shows the lines to the instructor under "worth a look". They affect neither
points nor decisions of this process. The checker shows only lines from a fixed list, because student code can find the socket and send its
own text, which could contain what it has seen.

The hook also raises an error with an explanation when the kernel would refuse to start or copy a process without one.

Protects against:

- suspicious code that cannot be found in the source text, such as a composed name
- errors without an explanation when a process starts or copies itself

Does not protect against:

- code that disables the hook. It finds no secret there; the list "made hard" in ``docs/threat-model.md`` covers what it could hide.
"""

from __future__ import annotations

import multiprocessing.util
import os
import socket
import sys
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from autograder.engine.student.program_refusals import ProgramError, explain_copy, explain_start
from autograder.engine.transport.report_lines import BY_ATTRIBUTE, BY_EVENT, BY_IMPORT, COPIES, IMPORTS, OPENS, STARTS

# Standard modules that act on behalf of their caller.
_ON_BEHALF = (
    "/cProfile.py",
    "/profile.py",
    "/asyncio/",
    "/ctypes/__init__.py",
    "<frozen os>",
    "/multiprocessing/",
    "/concurrent/futures/",
    "/engine/student/audit.py",
    "/subprocess.py",
    "/os.py",
    "/pty.py",
)


def library_folders(*more: str) -> tuple[str, ...]:
    """Return the folders of library code: Python's, the installed packages' and the grader's.

    Args:
        more: further folders, such as the student build's.
    """
    paths = sysconfig.get_paths()
    standard = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders = [*standard, str(Path(__file__).resolve().parents[2]), *filter(None, more)]
    return tuple(dict.fromkeys(f"{folder.rstrip('/')}/" for folder in folders))


def explain_refusals() -> None:
    """Make Python's functions that start or copy a process raise an error that explains the refusal."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in STARTS:
            raise ProgramError(explain_start(_command_text(arguments)))
        if event in COPIES:
            raise ProgramError(explain_copy())

    sys.addaudithook(hook)
    multiprocessing.util.spawnv_passfds = _spawn


def _spawn(path: bytes, args: Sequence[Any], passfds: Sequence[int]) -> int:
    """Raise an audit event when multiprocessing starts an interpreter, because Python itself does not."""
    sys.audit("subprocess.Popen", path, list(args), None, None)
    raise ProgramError(explain_start(_command_text((path, list(args)))))


def _command_text(arguments: tuple[Any, ...]) -> str:
    """Return the command in the arguments of an audit event that starts a program."""
    plain = [part for part in arguments if type(part) in (str, bytes, list, tuple)]
    line = max(plain[:2], key=lambda part: isinstance(part, (list, tuple)), default="")
    parts = [line] if isinstance(line, (str, bytes)) else line
    return " ".join(os.fsdecode(text) for text in parts if type(text) in (str, bytes))


def install_report_hook(connection: socket.socket, folders: tuple[str, ...]) -> None:
    """Install audit hooks that report suspicious events and explain refusals.

    Args:
        connection: a connected socket that preserves message boundaries; receives the lines.
        folders: the folders of :func:`library_folders`.
    """
    send = _make_sender(connection)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        line = BY_EVENT.get(event) or _attribute_line(event, arguments)
        if line and not _is_from_library(sys._getframe(1), folders):
            send(line)
        if event in ("import", "open") and (line := _name_line(event, arguments)):
            send(line)

    sys.addaudithook(hook)
    explain_refusals()


# Arguments may be a student's subclass of str, whose own methods are not called.
def _attribute_line(event: str, arguments: tuple[Any, ...]) -> str:
    """Return the report line for reading or setting an attribute; empty if it is not suspicious."""
    if event.startswith("object.__") and len(arguments) > 1 and type(arguments[1]) is str:
        return BY_ATTRIBUTE.get((event, arguments[1]), "")
    return ""


def _name_line(event: str, arguments: tuple[Any, ...]) -> str:
    """Return the report line for importing a module or opening a file; empty if it is not suspicious."""
    name = arguments[0] if arguments and type(arguments[0]) is str else ""
    if event == "import":
        return IMPORTS if name in BY_IMPORT else ""
    return OPENS if name.startswith("/proc/") and name.endswith("/mem") else ""


def _is_from_library(frame: FrameType | None, folders: tuple[str, ...]) -> bool:
    """Return whether library code caused an event on its own, rather than on behalf of its caller."""
    # A code object's name may be an instance of a student's subclass of str: read its text only.
    while frame is not None:
        file = str.__str__(frame.f_code.co_filename)
        library = file.startswith((*folders, "<frozen "))
        if not library or not any(part in file for part in _ON_BEHALF):
            return library
        frame = frame.f_back
    return True


def _make_sender(connection: socket.socket) -> Callable[[str], None]:
    """Return a function that sends a line, and ends this process if the connection was replaced or closed."""
    inode, flags = os.fstat(connection.fileno()).st_ino, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL

    def send(line: str) -> None:
        try:
            if os.fstat(connection.fileno()).st_ino != inode:
                os._exit(1)
            connection.send(line.encode(), flags)
        except BlockingIOError:  # so many lines are waiting that the instructor will look
            pass
        except OSError:
            os._exit(1)

    return send
