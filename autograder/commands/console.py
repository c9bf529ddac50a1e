"""Run a command and print its result, progress and errors.

Exit codes: 0 done; 1 the thing examined falls short; 2 wrong usage, input or environment; 130 stopped with Ctrl-C, 143 with SIGTERM and 129
because the terminal was closed, as shells have it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from autograder.course.known_errors import as_course_error

P = ParamSpec("P")
R = TypeVar("R")

EXIT_FAILED, WRONG = 1, 2
# Shells add this to the number of the signal that stopped a command.
_BY_SIGNAL = 128

# When a signal that came in the wrong moment is raised once more.
_AFTER_CALLBACK_SECONDS = 0.01

STOPPED_TEXT = "stopped. Finished work is kept; run the same command again to continue."

_errors = Console(stderr=True, highlight=False)


@dataclass(frozen=True)
class CommandResult:
    """The result of a command."""

    data: object  # for scripts; values that JSON lacks are written as text
    text: str  # for people
    code: int = 0  # the exit code


def keep_example_lines(function: Callable[P, R]) -> Callable[P, R]:
    """Preserve the line breaks of the example in a command's help."""
    function.__doc__ = (function.__doc__ or "").replace("    Example:\n", "    \b\n    Example:\n")
    return function


def command(function: Callable[..., CommandResult]) -> Callable[..., None]:
    """Make a command from a function that returns a result, and add ``--json``."""

    @click.option("--json", "json_", is_flag=True, help="Print the result as JSON.")
    @wraps(keep_example_lines(function))
    def run(*args: Any, json_: bool, **kwargs: Any) -> None:
        _escape_unencodable()
        # In JSON mode standard output carries the result only, even if libraries and child processes print.
        with _redirect_stdout() if json_ else nullcontext(), _handle_termination() as stopped_by:
            outcome, failure = _run_command(function, stopped_by, *args, **kwargs)
        if failure:
            click.echo(click.style("tfcourse: ", fg="red", bold=True) + failure, err=True)
        if json_ or outcome.text:
            click.echo(as_json(outcome.data) if json_ else outcome.text)
        sys.exit(outcome.code)

    return run


@contextmanager
def _handle_termination() -> Iterator[list[int]]:
    """Handle other termination signals like Ctrl-C, and yield the list of received signals.

    A second signal ends the program at once. Signals that are ignored, as by `nohup`, stay ignored.
    """
    stopped_by: list[int] = []
    before: dict[int, Any] = {}
    show_unraisable = sys.unraisablehook

    def stop(number: int, frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        stopped_by.append(number)
        raise KeyboardInterrupt

    def stop_after_callback(unraisable: Any) -> None:
        # A signal that comes while Python frees an object is lost in that object's callback. So a timer raises it once more.
        if unraisable.exc_type is not KeyboardInterrupt:
            show_unraisable(unraisable)
        elif hasattr(signal, "setitimer"):
            before.setdefault(signal.SIGALRM, signal.signal(signal.SIGALRM, signal.default_int_handler))
            signal.setitimer(signal.ITIMER_REAL, _AFTER_CALLBACK_SECONDS)

    if threading.current_thread() is threading.main_thread():
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) == signal.SIG_DFL:
                before[number] = signal.signal(number, stop)
        sys.unraisablehook = stop_after_callback
    try:
        yield stopped_by
    finally:
        sys.unraisablehook = show_unraisable
        if getattr(signal, "SIGALRM", 0) in before:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def _run_command(
    function: Callable[..., CommandResult], stopped_by: list[int], *args: Any, **kwargs: Any
) -> tuple[CommandResult, str]:
    """Run a command, and return its result and the message of a user error, or an empty string."""
    try:
        return function(*args, **kwargs), ""
    except KeyboardInterrupt as stopped:
        # The exception may say more about the results that are kept.
        message = str(stopped) or STOPPED_TEXT
        code = _BY_SIGNAL + (stopped_by[0] if stopped_by else signal.SIGINT)
        return CommandResult({"error": {"what": message, "where": None, "do": ""}}, "", code), message
    except click.ClickException:
        raise
    except Exception as error:
        explained = as_course_error(error)
        if explained is None:
            raise
        description = {"what": explained.what, "where": explained.where, "do": explained.do}
        return CommandResult({"error": description}, "", WRONG), str(explained)


def as_json(data: object) -> str:
    """Return data as JSON in ASCII."""
    return json.dumps(data, indent=2, default=str, allow_nan=False)


def _escape_unencodable() -> None:
    """Escape the characters that a terminal cannot show."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


@contextmanager
def _redirect_stdout() -> Iterator[None]:
    """Redirect the standard output of this process and its children to standard error."""
    sys.stdout.flush()
    try:
        saved = os.dup(1)
        os.dup2(2, 1)
    except OSError:  # the process has no standard output or no standard error
        with redirect_stdout(sys.stderr):
            yield
        return
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)


@contextmanager
def progress_bar(title: str, total: int | None = None, every: int = 1) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows the progress of one more step.

    Args:
        title: what is being done.
        total: the number of steps, if known.
        every: the number of steps per plain line.
    """
    if not _errors.is_terminal:
        done, phase = 0, ""

        def line(step: str) -> None:
            nonlocal done, phase
            done += 1
            # "reading sources... [ 12%] a page" gets one line, not one for each page.
            going_on, phase = step.partition("... ")[0] == phase, step.partition("... ")[0] if "... " in step else ""
            if done % every == 0 and not going_on:
                click.echo(f"{title}: {step}" + (f" ({done}/{total})" if total else ""), err=True)

        yield line
        return
    amount = (BarColumn(), MofNCompleteColumn()) if total else ()
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), *amount, TimeElapsedColumn())
    with Progress(*columns, console=_errors, transient=True) as bar:
        task = bar.add_task(title, total=total)

        def step(text: str) -> None:
            bar.update(task, advance=1, description=f"{title}: {text}"[:70])

        yield step
