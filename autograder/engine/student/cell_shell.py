"""Run a notebook's cells in an IPython shell without Jupyter's messages, and forward each output immediately.

A cell that parses as Python is not searched for IPython syntax, and not compiled again to detect ``await``: these two steps took half of
the time of running a student's cells. The syntax tree of this parse is executed.
"""

from __future__ import annotations

import ast
import re
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from io import UnsupportedOperation
from types import TracebackType
from typing import Any, cast

from IPython.core.compilerop import CachingCompiler
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.external.pickleshare import PickleShareDB
from IPython.paths import get_ipython_dir
from traitlets import Type
from traitlets.config import Config

from autograder.engine.student.program_refusals import ShellRefusal, refuse_script_magics

Emit = Callable[[dict[str, Any]], None]

# Frames of a long traceback that are shown from its beginning and from its end.
_STEPS = 15
# Python specializes code after some runs and writes this into the code object: better once before the forks than in each of them.
_TIMES = 10
_AWAITS = re.compile(r"\b(await|async)\b")


def _discard_output(output: dict[str, Any]) -> None:
    """Discard an output."""


class _EmittingPublisher(DisplayPublisher):  # type: ignore[misc]
    def publish(
        self, data: Any, metadata: Any = None, *, transient: Any = None, update: bool = False, **kwargs: Any
    ) -> None:
        output = {"output_type": "display_data", "data": data, "metadata": metadata or {}}
        name = (transient or {}).get("display_id")
        self.shell.emit({**output, "display_id": name, "update": update} if name is not None else output)

    def clear_output(self, wait: bool = False) -> None:
        self.shell.emit({"output_type": "clear_output", "wait": wait})


class _EmittingDisplayHook(DisplayHook):  # type: ignore[misc]
    def write_output_prompt(self) -> None:
        pass

    def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
        self.shell.emit({"output_type": "execute_result", "data": format_dict, "metadata": md_dict or {}})

    def finish_displayhook(self) -> None:
        self._is_active = False

    def start_displayhook(self) -> None:
        self._is_active = True


class _Stream:
    """A replacement for stdout or stderr that emits text in chunks."""

    encoding, errors = "utf-8", "replace"

    def __init__(self, shell: CellShell, name: str) -> None:
        self._shell, self._name = shell, name
        self._waiting: list[str] = []
        self._length = 0

    def write(self, text: Any) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if not self._waiting:
            # Text on the other stream came first.
            self._shell.flush()
        self._waiting.append(text)
        self._length += len(text)
        if self._length > 16_384:
            self.flush()
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        text, self._waiting, self._length = "".join(self._waiting), [], 0
        for begin in range(0, len(text), 65_536):
            self._shell.emit({"output_type": "stream", "name": self._name, "text": text[begin : begin + 65_536]})

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def fileno(self) -> int:
        raise UnsupportedOperation("this stream has no file")


class _Compiler(CachingCompiler):  # type: ignore[misc]
    """A compiler that parses each cell once, both to check that it is Python and to run it."""

    def __init__(self) -> None:
        super().__init__()
        self._ahead: tuple[str, int, ast.AST] | None = None

    def read_ahead(self, cell: str) -> bool:
        """Parse a cell before it runs, and return whether it is Python."""
        self._ahead = None
        try:
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                tree = super().ast_parse(cell)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
        if not warned:  # else the shell parses it again and shows the error
            self._ahead = cell, self.flags, tree
        return True

    def ast_parse(self, source: str, filename: str = "<unknown>", symbol: str = "exec") -> ast.AST:
        """Return a cell's syntax tree; reuse the tree that was parsed ahead."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[:2] == (source, self.flags) and symbol == "exec":
            return ahead[2]
        return cast("ast.AST", super().ast_parse(source, filename, symbol))


class CellShell(ShellRefusal, InteractiveShell):  # type: ignore[misc]
    """An IPython shell that emits outputs as plain dictionaries in notebook format, and starts no programs."""

    compiler_class = Type(_Compiler)
    displayhook_class = Type(_EmittingDisplayHook)
    display_pub_class = Type(_EmittingPublisher)
    _db: Any = None

    def __init__(self, **kwargs: Any) -> None:
        self._take: Emit = _discard_output
        self._streams: tuple[_Stream, ...] = ()
        super().__init__(**kwargs)

    @property
    def db(self) -> Any:
        """IPython's storage between sessions, such as the folders of ``%cd``.

        Its folder follows ``IPYTHONDIR`` at first use: a shell may run cells in another root than the one in which it was created.
        """
        if self._db is None:
            self._db = PickleShareDB(f"{get_ipython_dir()}/db")
        return self._db

    @db.setter
    def db(self, value: Any) -> None:
        """Ignore the storage that older versions of IPython set at once."""

    def emit(self, output: dict[str, Any]) -> None:
        """Emit an output, after any text printed before it."""
        if output["output_type"] != "stream":
            self.flush()
        self._take(output)

    def flush(self) -> None:
        """Emit printed text that is still buffered."""
        for stream in self._streams:
            stream.flush()

    def _showtraceback(self, etype: Any, evalue: Any, stb: Any) -> None:
        try:
            text = str(evalue)
        except Exception:
            text = "(its text cannot be shown)"
        self._shown = True
        self.emit({"output_type": "error", "ename": etype.__name__, "evalue": text, "traceback": list(stb)})

    def showtraceback(self, exc_tuple: Any = None, *args: Any, **kwargs: Any) -> None:
        """Show an exception without the middle of a long traceback, for which IPython takes seconds."""
        error, self._shown = None, False
        with suppress(ValueError):  # there is no exception; IPython reports that below
            error = cause = self._get_exc_info(exc_tuple)[1]
            for _ in range(_STEPS):
                if cause is not None:
                    _shorten_traceback(cause.__traceback__)
                    cause = cause.__context__
        super().showtraceback(exc_tuple, *args, **kwargs)
        if error is not None and not self._shown and not isinstance(error, UsageError):
            # IPython could not format it, for want of memory for example, and only printed it.
            self._showtraceback(type(error), error, traceback.format_exception_only(error))

    def _format_exception_for_storage(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return {}  # the shown output is enough; this would go to an unused history

    def ask_exit(self) -> None:
        """Ignore ``exit()``: the process ends when the notebook has been graded."""

    def enable_gui(self, gui: Any = None) -> None:
        """Do nothing, because the shell has no event loop."""

    def transform_cell(self, raw_cell: str) -> str:
        """Return a cell as Python, leaving plain Python unchanged: IPython's own search for syntax is slow."""
        cell = raw_cell if raw_cell.endswith("\n") else f"{raw_cell}\n"
        return cell if self.compile.read_ahead(cell) else str(super().transform_cell(raw_cell))

    def should_run_async(self, raw_cell: str, **kwargs: Any) -> bool:
        """Return whether a cell has a top-level ``await``, without compiling plain cells a second time."""
        return _AWAITS.search(raw_cell) is not None and bool(super().should_run_async(raw_cell, **kwargs))

    def init_sys_modules(self) -> None:
        """Leave ``__main__`` unchanged, because cells run in a process that has its own."""

    def run(self, source: str, emit: Emit) -> bool:
        """Run a cell.

        Args:
            source: its text.
            emit: called with each output.

        Returns:
            Whether the cell ended without an exception.
        """
        self._take = emit
        before = sys.stdout, sys.stderr
        self._streams = _Stream(self, "stdout"), _Stream(self, "stderr")
        sys.stdout, sys.stderr = self._streams
        try:
            result = self.run_cell(source, store_history=True)
            _show_figures()
        finally:
            self.flush()
            sys.stdout, sys.stderr = before
            self._take, self._streams = _discard_output, ()
        return bool(result.success)


def _shorten_traceback(trace: TracebackType | None) -> None:
    steps = []
    while trace is not None:
        steps.append(trace)
        trace = trace.tb_next
    if len(steps) > 2 * _STEPS:
        steps[_STEPS - 1].tb_next = steps[-_STEPS]


def _show_figures() -> None:
    """Show a cell's open figures, as Jupyter does."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None and pyplot.get_fignums():
        from matplotlib_inline.backend_inline import flush_figures

        flush_figures()


def make_shell(namespace: dict[str, Any] | None = None) -> CellShell:
    """Create a shell in this process without history or start-up file.

    Args:
        namespace: what cells see as their globals.
    """
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.autoindent = False
    CellShell.clear_instance()
    shell: CellShell = CellShell.instance(config=config, user_ns=namespace)
    shell.banner1 = ""
    refuse_script_magics(shell)
    return shell


def warm_shell() -> CellShell:
    """Return a shell that is warmed up by running cells, showing results and raising errors."""
    shell = make_shell()
    for source in ("x = 1", "1 + 1", "raise ValueError", "def f(: pass") * _TIMES:
        shell.run(source, _discard_output)
    shell.reset(new_session=True)
    shell.execution_count = 1
    return shell
