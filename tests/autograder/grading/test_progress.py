"""A log tells how grading gets on, and is not a line for every student."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from itertools import count

import pytest
from rich.console import Console

from autograder.commands.progress import grading_progress
from autograder.grading.record.results import GradeResult, Status


def result(status: Status = "graded", *, unchanged: bool = False) -> GradeResult:
    return GradeResult("ada", "03", status, unchanged=unchanged)


def lines(results: list[GradeResult], times: Iterator[float], *, terminal: bool = False) -> list[str]:
    """What is written while these results come in, at these times."""
    out = StringIO()
    console = Console(file=out, force_terminal=terminal, width=100)
    with grading_progress("grading 03", len(results), console=console, clock=lambda: next(times)) as step:
        for each in results:
            step(each)
    return out.getvalue().splitlines()


def test_a_small_class_gets_a_line_each() -> None:
    told = lines([result(), result("not gradable"), result("not recorded")], iter([0.0, 0.5, 1.0, 1.5]))
    assert told == [
        "grading 03: 1/3",
        "grading 03: 2/3, 2.0/s, 0:00 left, 1 not gradable",
        "grading 03: 3/3, 2.0/s, 1 not gradable, 1 failed",
    ]


def test_a_large_class_gets_ten_lines_if_it_is_fast() -> None:
    told = lines([result()] * 800, (number / 100 for number in count()))
    assert [line.split(",")[0] for line in told] == [f"grading 03: {80 * part}/800" for part in range(1, 11)]


def test_a_slow_run_says_every_ten_seconds_that_it_lives() -> None:
    told = lines([result()] * 100, (4.0 * number for number in count()))
    assert told[0] == "grading 03: 3/100, 15.0/min, 6:28 left"
    assert len(told) == 34


def test_what_was_graded_before_does_not_make_the_rate_look_better() -> None:
    told = lines(
        [result(unchanged=True), result(unchanged=True), result(), result()], iter([0.0, 0.0, 0.0, 60.0, 120.0])
    )
    assert told == [
        "grading 03: 1/4",
        "grading 03: 2/4",
        "grading 03: 3/4",
        "grading 03: 4/4, 1.0/min",
    ]


@pytest.mark.parametrize(("seconds", "left"), [(30.0, "1:00 left"), (3600.0, "2:00:00 left")])
def test_time_is_told_in_minutes_and_hours(seconds: float, left: str) -> None:
    assert left in lines([result()] * 4, iter([0.0, *(seconds * number for number in range(1, 5))]))[1]


def test_warming_up_makes_no_time_left_longer() -> None:
    told = lines([result()] * 3, iter([0.0, 300.0, 301.0, 302.0]))
    assert told == ["grading 03: 1/3", "grading 03: 2/3, 1.0/s, 0:01 left", "grading 03: 3/3, 1.0/s"]


def test_a_terminal_gets_a_bar_with_the_same_words() -> None:
    told = "\n".join(lines([result(), result("not recorded")], iter([0.0, 0.5, 1.0]), terminal=True))
    assert "2/2" in told
    assert "1 failed" in told
