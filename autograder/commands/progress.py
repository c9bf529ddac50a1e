"""Show the progress of grading: count, rate, time left and failures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

from autograder.grading.record.results import GradeResult

# A log gets a line at every tenth of the work, and at least one in this many seconds.
LINES = 10
SECONDS = 10.0


@dataclass
class Tally:
    """The counts of the results so far."""

    total: int  # the number of submissions
    begin: float  # the start time, in seconds of any clock
    done: int = 0  # the number of finished submissions
    reused: int = 0  # how many of them are unchanged and were graded before
    not_gradable: int = 0  # how many could not be graded because of their contents
    failed: int = 0  # for how many the grader failed
    # when the first submission was graded, or None. Warming up came before, so rates count from here.
    first: float | None = None

    def add(self, result: GradeResult, now: float) -> None:
        """Count a result at this time."""
        self.done += 1
        if self.first is None and not result.unchanged:
            self.first = now
        self.reused += result.unchanged
        self.not_gradable += result.status == "not gradable"
        self.failed += result.status == "not recorded"

    def summary(self, now: float) -> str:
        """Return the rate, the time left and the failures as text."""
        parts = []
        run, elapsed = self.done - self.reused - 1, 0.0 if self.first is None else now - self.first
        if run > 0 and elapsed > 0:
            parts.append(_rate_text(run / elapsed))
            if remaining := self.total - self.done:
                parts.append(f"{_time_text(remaining * elapsed / run)} left")
        if self.not_gradable:
            parts.append(f"{self.not_gradable} not gradable")
        if self.failed:
            parts.append(f"{self.failed} failed")
        return ", ".join(parts)


def _rate_text(per_second: float) -> str:
    return f"{per_second:.1f}/s" if per_second >= 1 else f"{per_second * 60:.1f}/min"


def _time_text(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


@contextmanager
def grading_progress(
    title: str, total: int, *, console: Console | None = None, clock: Callable[[], float] = monotonic
) -> Iterator[Callable[[GradeResult], None]]:
    """Yield a function that counts a result and shows the progress.

    Args:
        title: the title of the bar.
        total: the number of results.
        console: the console; by default standard error.
        clock: returns the time in seconds.
    """
    console = console or Console(stderr=True, highlight=False)
    tally = Tally(total, clock())
    with (_show_bar if console.is_terminal else _show_lines)(title, tally, console) as show:

        def step(result: GradeResult) -> None:
            now = clock()
            tally.add(result, now)
            show(now)

        yield step


@contextmanager
def _show_lines(title: str, tally: Tally, console: Console) -> Iterator[Callable[[float], None]]:
    told_done, told_at = 0, tally.begin

    def show(now: float) -> None:
        nonlocal told_done, told_at
        a_tenth = tally.done - told_done >= max(1, tally.total // LINES)
        if a_tenth or tally.done == tally.total or now - told_at >= SECONDS:
            told_done, told_at = tally.done, now
            details = tally.summary(now)
            click.echo(f"{title}: {tally.done}/{tally.total}{details and ', '}{details}", file=console.file)

    yield show


@contextmanager
def _show_bar(title: str, tally: Tally, console: Console) -> Iterator[Callable[[float], None]]:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[summary]}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=tally.total, summary="")
        yield lambda now: bar.update(task, completed=tally.done, summary=tally.summary(now))
