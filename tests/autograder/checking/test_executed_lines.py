"""Executed lines are counted where a loop runs, however it is written, and nowhere else."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch

from autograder.checking.executed_lines import HIDDEN, LineCounter


def counted(function: Callable[[int], Any], size: int) -> int:
    with LineCounter() as lines:
        function(size)
    return lines.count


def by_for(n: int) -> None:
    for _ in range(n):
        pass


def by_while(n: int) -> None:
    while n: n -= 1  # fmt: skip  # noqa: E701 - all on one line


def in_another_thread(n: int) -> None:
    thread = threading.Thread(target=by_for, args=(n,))
    thread.start()
    thread.join()


def recursively(n: int) -> int:
    return n and recursively(n - 1)


LOOPS = (
    by_for,
    by_while,
    in_another_thread,
    recursively,
    lambda n: [i for i in range(n)],  # noqa: C416 - a comprehension is what this is about
    lambda n: {i: i for i in range(n)},
    lambda n: sum(i * i for i in range(n)),
    lambda n: functools.reduce(lambda a, b: a + b, torch.ones(n).tolist()),
)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_adds_a_line_for_each_item(loop: Callable[[int], Any]) -> None:
    assert counted(loop, 60) - counted(loop, 6) >= 54


@pytest.mark.parametrize(
    "whole", [lambda n: torch.ones(n).softmax(0).sum(), lambda n: sorted(range(n)), lambda n: str(torch.ones(n))]
)
def test_what_libraries_do_is_not_counted(whole: Callable[[int], Any]) -> None:
    assert counted(whole, 60) == counted(whole, 6) <= 2


def test_the_trace_function_of_before_is_back() -> None:
    before = sys.gettrace(), threading.gettrace()
    counted(by_for, 3)
    assert (sys.gettrace(), threading.gettrace()) == before


@pytest.mark.parametrize("hide", [sys.settrace, threading.settrace])
def test_who_switches_the_counting_off_has_no_count(hide: Callable[[Any], None]) -> None:
    assert counted(lambda n: hide(None), 3) == HIDDEN
