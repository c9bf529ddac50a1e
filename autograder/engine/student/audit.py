"""Report suspicious events in a student's process by an audit hook: text run as code, pickles, forks, ctypes.

Python calls an audit hook before it does these things, and no code can remove one. :func:`report` writes a line for each to a socket whose
other end the checker holds, then lets it happen: what has been written there, the student's process cannot take back. A line costs nothing;
a lecturer sees it as *worth a look*.

Protects against: code that is put together while it runs (``exec``, ``eval``, ``compile``, a file that was written, text given to a library
that runs it), so that no reading of the cells finds it; objects in pickles and in arrays of objects; forked copies; calls into the C
library; functions whose code, or whose file name, is exchanged. If a line cannot be written the process ends.

Does not protect against: writing to the process's memory (``ctypes.memmove``, NumPy's ``as_strided``) once ``ctypes`` is at hand, which the
reader of the text names where it is imported; syntax trees that are changed (``ast_transformers``); a library that calls what it is given.
"""

from __future__ import annotations

import ast
import builtins
import dis
import multiprocessing.util
import os
import socket
import sys
import sysconfig
import timeit
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch
from IPython.core.inputtransformer2 import TransformerManager

from autograder.engine.student.no_programs import ProgramError, explanation

# The functions below use these built-ins, not the module ``builtins``, which student code can change.
globals()["__builtins__"] = dict(vars(builtins))

# The most lines and their longest length: all of them fit into the socket's buffer.
MOST, LONGEST = 60, 160

_STARTS = frozenset({"os.exec", "os.posix_spawn", "os.spawn", "os.system", "pty.spawn", "subprocess.Popen"})
_FORKS = frozenset({"os.fork", "os.forkpty"})
_CTYPES = frozenset(
    f"ctypes.{name}" for name in ("addressof", "call_function", "cdata", "cdata/buffer", "dlopen", "dlsym", "string_at")
)
# Events that only code causes which inspects or changes other code.
_MEDDLING = frozenset(
    {
        *(
            "code.__new__",
            "gc.get_objects",
            "gc.get_referents",
            "gc.get_referrers",
            "marshal.loads",
            "sys._current_frames",
        ),
        *("sys.addaudithook", "sys.setprofile", "sys.settrace"),
    }
)
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
_FRAMES = frozenset({"ag_frame", "cr_frame", "gi_frame", "tb_frame"})
# Classes in pickles of weights, arrays and plain containers.
_PLAIN_PICKLES = {
    "_codecs": ("encode",),
    "builtins": ("bytearray", "complex", "frozenset", "range", "set", "slice"),
    "collections": ("Counter", "OrderedDict", "defaultdict", "deque"),
    "numpy": ("dtype", "ndarray"),
    "numpy._core.multiarray": ("_reconstruct", "scalar"),
    "numpy.core.multiarray": ("_reconstruct", "scalar"),
    "multiprocessing.resource_sharer": ("DupFd",),
    "torch": ("Size", "Tensor", *(name for name, item in vars(torch).items() if isinstance(item, torch.dtype))),
    "torch._utils": ("_rebuild_parameter", "_rebuild_tensor", "_rebuild_tensor_v2"),
    "torch.storage": ("UntypedStorage", "_load_from_bytes"),
}
_CALLS = frozenset(number for name, number in dis.opmap.items() if name.startswith(("CALL", "PRECALL")))
# These modules run the text of cells and magics; the text that they compile must occur in the cells.
_RUN_CELLS = (
    ("/IPython/core/interactiveshell.py", "run_code"),
    ("/IPython/core/magics/execution.py", ""),
    ("/timeit.py", ""),
)
_COMPILE_CELLS = (
    "/IPython/core/compilerop.py",
    "/IPython/core/magics/execution.py",
    "/IPython/utils/py3compat.py",
    "/timeit.py",
)
# These modules generate functions and define them.
_DEFINE = ("/dataclasses.py", "/collections/__init__.py")


def library_folders(*more: str) -> tuple[str, ...]:
    """Return the folders of library code: Python's, the installed packages' and the grader's.

    Args:
        more: further folders, such as the student build's.
    """
    paths = sysconfig.get_paths()
    standard = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders = [*standard, str(Path(__file__).resolve().parents[2]), *filter(None, more)]
    return tuple(dict.fromkeys(f"{folder.rstrip('/')}/" for folder in folders))


def refuse_programs() -> None:
    """Make Python's functions that start programs raise an error that explains why they cannot."""

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _STARTS:
            raise _refusal(arguments)

    sys.addaudithook(refuse)
    multiprocessing.util.spawnv_passfds = _spawn


def _spawn(path: bytes, args: Sequence[Any], passfds: Sequence[int]) -> int:
    """Raise an audit event when multiprocessing starts a fresh interpreter; Python itself does not audit this."""
    sys.audit("subprocess.Popen", path, list(args), None, None)
    raise _refusal((path, list(args)))


def _refusal(arguments: tuple[Any, ...]) -> ProgramError:
    return ProgramError(explanation(_program(arguments)))


def _program(arguments: tuple[Any, ...]) -> str:
    """Return the command in the arguments of an event that starts a program."""
    plain = [part for part in arguments if _is_one_of(type(part), str, bytes, list, tuple)]
    line = max(plain[:2], key=lambda part: isinstance(part, (list, tuple)), default="")
    parts = [line] if isinstance(line, (str, bytes)) else line
    return " ".join(os.fsdecode(text) for text in parts if _is_one_of(type(text), str, bytes))


def report(connection: socket.socket, folders: tuple[str, ...]) -> Callable[[str], None]:
    """Install the audit hook: from now on this process reports suspicious events.

    Afterwards this module is hidden, and the hook uses no other module: student code has no name that leads to it.

    Args:
        connection: a connected socket that preserves message boundaries; receives the lines.
        folders: the folders of :func:`library_folders`.

    Returns:
        A function to call with the text of each cell before it runs. Programs are refused as by :func:`refuse_programs`.
    """
    texts = [_TEMPLATE.format(stmt=stmt, setup=setup, init=init) for stmt, setup, init in _TIMED] + ["pass\npass"]
    describe, write, getframe = _describer(folders, texts), _writer(connection), sys._getframe
    starts, frames, refusal = _STARTS, _FRAMES, _refusal
    transform, is_python = TransformerManager().transform_cell, _is_python
    watched = {"object.__getattr__": frames, "object.__setattr__": frozenset({"__code__"})}
    named, is_named = frozenset(watched), _is_named
    looked_at = frozenset(
        {"compile", "exec", "object.__getattr__", "object.__setattr__", "open", "pickle.find_class"}
        | _CTYPES | _FORKS | _MEDDLING | _STARTS
    )  # fmt: skip

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in looked_at and (event not in named or (is_named(arguments) and (arguments[1] in watched[event]))):
            line = describe(event, arguments, getframe(1))
            if line:
                write(line)
            if event in starts:
                raise refusal(arguments)

    def note(source: str) -> None:
        texts.append(source)
        if any(sign in source for sign in "%!?") and not is_python(source):
            # The text as IPython compiles it; for a cell magic also the code that the magic runs.
            texts.extend((transform(source), transform(source.partition("\n")[2])))

    del sys.modules[__name__]
    vars(sys.modules[__name__.rpartition(".")[0]]).pop(__name__.rpartition(".")[2], None)
    sys.addaudithook(hook)
    multiprocessing.util.spawnv_passfds = _spawn
    return note


def _is_named(arguments: tuple[Any, ...]) -> bool:
    """Check that the second argument is plain text: a student's subclass would run its methods inside of the hook when it is compared."""
    return len(arguments) > 1 and type(arguments[1]) is str


def _is_one_of(kind: type, *kinds: type) -> bool:
    """Compare types by identity: a metaclass of a student's may define what is equal."""
    return any(kind is one for one in kinds)


_TEMPLATE: str = vars(timeit)["template"]
# The code that timeit generates for a function, with and without a setup function, and for no statement.
_TIMED = (
    ("_stmt()", "pass", ", _stmt=_stmt"),
    ("_stmt()", "_setup()", ", _stmt=_stmt, _setup=_setup"),
    ("pass", "pass", ""),
)


def _is_python(source: str) -> bool:
    """Return whether a cell is plain Python, which the shell runs unchanged."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # running the cell reports the error
            compile(source, "", "exec", ast.PyCF_ONLY_AST)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _writer(connection: socket.socket) -> Callable[[str], None]:
    """Return a function that writes each distinct line once, and ends the process if it cannot write."""
    send, descriptor, fstat, end = connection.send, connection.fileno(), os.fstat, os._exit
    inode, flags, most, longest = fstat(descriptor).st_ino, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL, MOST, LONGEST
    written: set[str] = set()

    def write(line: str) -> None:
        line = line[:longest]
        if line in written or len(written) > most:
            return
        written.add(line)
        try:
            if fstat(descriptor).st_ino != inode:
                end(1)
            send((line if len(written) <= most else "and more").encode("utf-8", "replace"), flags)
        except OSError:
            end(1)

    return write


def _describer(folders: tuple[str, ...], texts: list[str]) -> Callable[[str, tuple[Any, ...], FrameType], str]:
    """Return a function that describes a suspicious event, or returns an empty string."""
    run_cells, compile_cells, define, on_behalf = _RUN_CELLS, _COMPILE_CELLS, _DEFINE, _ON_BEHALF
    starts, forks, foreign, meddling, plain = _STARTS, _FORKS, _CTYPES, _MEDDLING, _PLAIN_PICKLES
    all_code, calls, is_one_of = _all_code, _CALLS, _is_one_of
    # A code object's name may be an instance of a student's subclass of str: read its text only.
    plain_text = str.__str__

    go_betweens: dict[str, bool] = {}

    def is_library(file: str) -> bool:
        return file.startswith(folders) or file.startswith("<frozen ")

    def is_go_between(file: str) -> bool:
        if file not in go_betweens:
            go_betweens[file] = is_library(file) and any(part in file for part in on_behalf)
        return go_betweens[file]

    def behind(frame: FrameType | None) -> FrameType | None:
        while frame is not None and is_go_between(plain_text(frame.f_code.co_filename)):
            frame = frame.f_back
        return frame

    def by_library(frame: FrameType | None) -> bool:
        frame = behind(frame)
        return frame is None or is_library(plain_text(frame.f_code.co_filename))

    def imports(frame: FrameType | None) -> bool:
        """Return whether a library is being imported: then the library runs the code, not the student."""
        while frame is not None and is_library(plain_text(frame.f_code.co_filename)):
            if plain_text(frame.f_code.co_name) == "<module>":
                return True
            frame = frame.f_back
        return False

    def compiles(text: object, frame: FrameType) -> str:
        file = plain_text(frame.f_code.co_filename)
        if not is_library(file):
            return f"compiles {_shown(text)}"
        if not any(part in file for part in compile_cells) or not is_one_of(type(text), str, bytes):
            return ""
        source = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
        if any(source.strip() in cell for cell in texts):
            return ""
        return f"has text compiled that stands in no cell: {_shown(source)}"

    def runs(code: object, frame: FrameType) -> str:
        frame = behind(frame) or frame
        file = plain_text(frame.f_code.co_filename)
        if type(code) is not CodeType:
            return ""
        own_file, function = plain_text(code.co_filename), plain_text(frame.f_code.co_name)
        if not is_library(file):
            return f"runs text or a code object with exec or eval ({plain_text(code.co_name)})"
        if file.startswith("<frozen "):
            return "" if is_library(own_file) else f"imports a file of its own, {own_file}"
        if any(file.endswith(part) and name in ("", function) for part, name in run_cells):
            return f"runs a cell under the name of another file, {own_file}" if is_library(own_file) else ""
        if (
            file.endswith(define)
            or imports(frame)
            or all(calls.isdisjoint(part.co_code[::2]) for part in all_code(code))
        ):
            return ""
        return f"has text run by {'/'.join(file.split('/')[-3:])}"

    def describe(event: str, arguments: tuple[Any, ...], frame: FrameType) -> str:
        if event == "compile":
            return compiles(arguments[0], frame)
        if event == "exec":
            return runs(arguments[0], frame)
        if event == "open":
            path = arguments[0]
            return f"opens {path}" if type(path) is str and path.startswith("/proc/") and path.endswith("/mem") else ""
        if event == "pickle.find_class":
            names = [name if type(name) is str else _shown(name) for name in arguments[:2]]
            return "" if _is_plain(plain, *arguments) else f"unpickles {'.'.join(names)}"
        if event in forks:
            return "makes a copy of its process"
        if event == "object.__getattr__":
            return "" if by_library(frame) else f"asks for {arguments[1]}"
        if event == "object.__setattr__":
            return "" if by_library(frame) else "gives a function other code"
        if by_library(frame):
            return ""
        if event in starts:
            return f"wants to start a program: {_program(arguments)}"
        return "uses ctypes" if event in foreign else f"calls {event}" if event in meddling else ""

    return describe


def _is_plain(plain: dict[str, tuple[str, ...]], module: object, name: object) -> bool:
    if type(module) is not str or type(name) is not str:
        return False
    if module.startswith("torch.multiprocessing.") or (module == "torch" and name.endswith("Storage")):
        return True
    return name in plain.get(module, ())


_name_of = type.__dict__["__name__"].__get__


def _shown(text: object) -> str:
    """Return the beginning of a text; for any other object, such as a syntax tree, its type."""
    if type(text) is bytes:
        text = text[:LONGEST].decode("utf-8", "replace")
    return repr(" ".join(text[:LONGEST].split())) if type(text) is str else f"a {_name_of(type(text))}"


def _all_code(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and all code objects inside it."""
    yield code
    for part in code.co_consts:
        if type(part) is CodeType:
            yield from _all_code(part)
