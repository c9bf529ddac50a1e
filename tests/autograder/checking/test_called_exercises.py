"""A verdict names the exercise behind a failure: one that the student's code calls, and whose own check finds wrong numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from autograder.checks import check
from tfcourse.recurrent import rnn_cell

CELL = """
import torch

def rnn_cell(x, h, weight_ih, weight_hh, bias_ih, bias_hh):
    return {body}

def rnn_forward(x, weight_ih, weight_hh, bias_ih, bias_hh, h_0=None):
    h = x.new_zeros(x.shape[0], weight_hh.shape[1]) if h_0 is None else h_0
    states = []
    for t in range(x.shape[1]):
        h = rnn_cell(x[:, t], h, weight_ih, weight_hh, bias_ih, bias_hh)
        states.append(h)
    return {result}
"""
RIGHT = "torch.tanh(x @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh)"


def written(body: str = RIGHT, result: str = "torch.stack(states, dim=1), h", **names: Any) -> Callable[..., Any]:
    """Return ``rnn_forward`` as a student's notebook defines it."""
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(CELL.format(body=body, result=result), space)
    space.update(names)
    function: Callable[..., Any] = space["rnn_forward"]
    return function


@pytest.mark.parametrize("body", ["torch.tanh(x @ weight_ih.T)", "h[:, :1]", "1 / 0"])
def test_the_wrong_exercise_that_is_called_is_named(body: str) -> None:
    verdict = check(written(body))
    assert not verdict.passed
    note = "It calls your rnn_cell, whose own check finds wrong numbers: correct that first."
    assert verdict.note == note
    assert str(verdict).endswith(note)
    assert note in verdict._repr_html_()


def test_a_right_exercise_that_is_called_is_not_named() -> None:
    assert check(written()).passed
    verdict = check(written(result="torch.stack(states, dim=0), h"))
    assert not verdict.passed
    assert verdict.note == ""


def test_the_courses_own_solution_is_not_named() -> None:
    verdict = check(written(body="0", result="h, h", rnn_cell=rnn_cell))
    assert not verdict.passed
    assert verdict.note == ""
