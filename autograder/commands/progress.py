"""How grading gets on: count, rate, time left and what went wrong so far. A bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

from autograder.record.results import GradeResult

# A log gets a line at every tenth of the work, and at least as often as this.
LINES = 10
SECONDS = 10.0


@dataclass
class Tally:
    """What has come in so far.

    Attributes:
        total: how many submissions there are.
        begin: when it began, in seconds of any clock.
        done: how many are done.
        kept: how many of them had been graded before and are unchanged.
        not_gradable: how many could not be graded, for a reason of their own.
        failed: on how many the grader failed.
        first: when the first submission was graded, or None. Warming up came before, so rates count from here.
    """

    total: int
    begin: float
    done: int = 0
    kept: int = 0
    not_gradable: int = 0
    failed: int = 0
    first: float | None = None

    def add(self, result: GradeResult, now: float) -> None:
        """Count a result that came in at a time."""
        self.done += 1
        if self.first is None and not result.unchanged:
            self.first = now
        self.kept += result.unchanged
        self.not_gradable += result.status == "not gradable"
        self.failed += result.status == "not recorded"

    def about(self, now: float) -> str:
        """Return rate, time left and failures, as far as there is something to tell."""
        parts = []
        run, elapsed = self.done - self.kept - 1, 0.0 if self.first is None else now - self.first
        if run > 0 and elapsed > 0:
            parts.append(_rate(run / elapsed))
            if remaining := self.total - self.done:
                parts.append(f"{_clock(remaining * elapsed / run)} left")
        if self.not_gradable:
            parts.append(f"{self.not_gradable} not gradable")
        if self.failed:
            parts.append(f"{self.failed} failed")
        return ", ".join(parts)


def _rate(per_second: float) -> str:
    return f"{per_second:.1f}/s" if per_second >= 1 else f"{per_second * 60:.1f}/min"


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


@contextmanager
def grading_progress(
    title: str, total: int, *, console: Console | None = None, clock: Callable[[], float] = monotonic
) -> Iterator[Callable[[GradeResult], None]]:
    """Yield a function that is told each result.

    Args:
        title: what is being done.
        total: how many results there will be.
        console: where it is shown; by default standard error.
        clock: tells the time in seconds.
    """
    console = console or Console(stderr=True, highlight=False)
    tally = Tally(total, clock())
    with (_bar if console.is_terminal else _lines)(title, tally, console) as show:

        def step(result: GradeResult) -> None:
            now = clock()
            tally.add(result, now)
            show(now)

        yield step


@contextmanager
def _lines(title: str, tally: Tally, console: Console) -> Iterator[Callable[[float], None]]:
    told_done, told_at = 0, tally.begin

    def show(now: float) -> None:
        nonlocal told_done, told_at
        a_tenth = tally.done - told_done >= max(1, tally.total // LINES)
        if a_tenth or tally.done == tally.total or now - told_at >= SECONDS:
            told_done, told_at = tally.done, now
            about = tally.about(now)
            click.echo(f"{title}: {tally.done}/{tally.total}{about and ', '}{about}", file=console.file)

    yield show


@contextmanager
def _bar(title: str, tally: Tally, console: Console) -> Iterator[Callable[[float], None]]:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[about]}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=tally.total, about="")
        yield lambda now: bar.update(task, completed=tally.done, about=tally.about(now))
