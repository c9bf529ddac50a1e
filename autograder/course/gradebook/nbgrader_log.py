"""Capture nbgrader's log, to keep it off the terminal and to find the cause of a failure."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from nbgrader import api

# That nbgrader's gradebook logs to; others do so, too.
_gradebook_log = logging.getLogger("tornado.application")


class ErrorRecorder(logging.Handler):
    """A log handler that records nbgrader's errors, to which its exceptions only refer."""

    error: BaseException | None = None  # the exception that it had caught when it last complained of one

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Record a log message and the current exception."""
        self._said.append(record.getMessage())
        self.error = sys.exc_info()[1] or self.error

    @property
    def text(self) -> str:
        """All recorded messages."""
        return "\n".join(self._said)

    def cause(self, error: BaseException) -> str:
        """Return nbgrader's last error message, or the exception's own."""
        lines = [line.strip() for line in self.text.splitlines()]
        causes = [line for line in lines if line.partition(":")[0].endswith(("Error", "Exception", "MissingEntry"))]
        return causes[-1] if causes else f"{type(error).__name__}: {error}"


def capture_log() -> tuple[logging.Logger, ErrorRecorder]:
    """Return a logger for one run of a converter, and the handler that records its errors."""
    errors = ErrorRecorder()
    log = logging.Logger("autograder.nbgrader", logging.WARNING)
    log.addHandler(errors)
    return log, errors


@contextmanager
def silence_warnings() -> Iterator[None]:
    """Suppress SQLAlchemy's warnings about nbgrader's models, and log messages for errors that nbgrader raises."""

    def is_ours(record: logging.LogRecord) -> bool:
        return record.pathname != str(api.__file__)

    _gradebook_log.addFilter(is_ours)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        _gradebook_log.removeFilter(is_ours)
