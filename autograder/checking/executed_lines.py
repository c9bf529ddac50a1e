"""Count the lines that the examined code executes, to detect Python loops that call no PyTorch operation.

Protects against: a Python loop over ``tensor.tolist()``, over NumPy's arrays or over plain lists, also in another function, a
comprehension, a generator, or a thread that is started meanwhile.

Does not protect against: a loop inside a library or inside C (``map(max, rows)``, ``numpy.vectorize`` of a built-in function), code that
claims to be a library's (``CodeType.replace``), a forked process, a thread that was there before. Code that finds out where lines are
counted and does not loop there gets the points of this row, and no others.

Counts are what the student's process reports: operations, in-place changes and the runs of autograd's engine can only be counted where
they happen. The threat model states what a forged count gains. Forbidden functions are refused instead of counted.
"""

from __future__ import annotations

import sys
import sysconfig
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

# The count of code that has switched the counting off; no honest code reaches it.
HIDDEN = 2**40

_PATHS = sysconfig.get_paths()
_LIBRARIES = tuple(f"{_PATHS[name]}/" for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_OWN = __file__.rpartition("executed_lines")[0]
_UNCOUNTED = (*_LIBRARIES, _OWN, "<frozen ")


class LineCounter:
    """Counts executed lines of code outside libraries while it is active.

    A line counts each time it is executed; a comprehension, once for each item.
    """

    def __init__(self) -> None:
        self._lines = 0
        self._before: tuple[Any, Any] = (None, None)
        self._trace: Callable[..., Any] = self._trace_call
        self.hidden = False

    def __enter__(self) -> Self:
        self._before = sys.gettrace(), threading.gettrace()
        threading.settrace(self._trace)
        sys.settrace(self._trace)
        return self

    def __exit__(self, *reason: object) -> None:
        self.hidden = sys.gettrace() is not self._trace or threading.gettrace() is not self._trace
        sys.settrace(self._before[0])
        threading.settrace(self._before[1])

    @property
    def count(self) -> int:
        """The number of executed lines, or ``HIDDEN`` if the code switched the counting off."""
        return HIDDEN if self.hidden else self._lines

    def _trace_call(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        caller = frame.f_back
        if frame.f_code.co_filename == "<string>" and caller is not None:
            frame = caller  # generated code belongs to its caller
        return None if frame.f_code.co_filename.startswith(_UNCOUNTED) else self._trace_line

    def _trace_line(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
        if event == "line":
            self._lines += 1
        return self._trace_line
