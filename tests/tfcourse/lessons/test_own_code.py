"""What a student has solved takes the place of the course's empty exercises, and nothing else does."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import tfcourse
from tfcourse import attention, multihead
from tfcourse.lessons import own_code

MASK = "import torch\n\ndef causal_mask(T, *, device=None):\n    return torch.zeros(T, T, dtype=torch.bool)"
EMPTY = 'def padding_mask(lengths, T):\n    """What it does."""\n    # YOUR CODE HERE\n    raise NotImplementedError()'
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a notebook of code cells; a cell that is a pair is a source and its nbgrader metadata."""

    def make(*cells: str | tuple[str, dict[str, Any]]) -> Path:
        pairs = [(cell, {}) if isinstance(cell, str) else cell for cell in cells]
        content = {
            "cells": [
                {"cell_type": "code", "source": source.splitlines(keepends=True), "metadata": {"nbgrader": mark}}
                for source, mark in pairs
            ]
        }
        path = tmp_path / "03_scaled_dot_product.ipynb"
        path.write_text(json.dumps(content), encoding="utf-8")
        return path

    return make


@pytest.fixture(autouse=True)
def _course_as_it_was() -> Iterator[None]:
    modules = own_code._modules()
    before = [(module, dict(vars(module))) for module in modules]
    yield
    for module, names in before:
        vars(module).update(names)
    own_code._TAKEN.clear()
    sys.modules.pop("your_exercises", None)


def test_a_solved_exercise_is_used_wherever_the_course_uses_its_own(write: Write) -> None:
    result = tfcourse.use(write(MASK))
    assert result.solved == ("causal_mask",)
    assert not attention.causal_mask(3).any()
    assert all(
        module.causal_mask is attention.causal_mask for module in own_code._modules() if hasattr(module, "causal_mask")
    )


HALF = (
    "class MultiHeadAttention:\n    def __init__(self):\n        self.x = 1\n\n"
    "    def forward(self):\n        raise NotImplementedError()"
)


def test_what_is_empty_or_fails_stays_the_courses_and_is_named(write: Write) -> None:
    before = (attention.padding_mask, multihead.MultiHeadAttention)
    result = tfcourse.use(write(MASK, EMPTY, HALF, "1 / 0", "def soft_lookup(q)\n    return 1"))
    assert (result.solved, result.open) == (("causal_mask",), ("padding_mask", "MultiHeadAttention", "soft_lookup"))
    assert (attention.padding_mask, multihead.MultiHeadAttention) == before
    assert {name: error.partition(":")[0] for name, error in result.errors.items()} == {"soft_lookup": "SyntaxError"}
    assert all(part in repr(result) for part in ("1 of 4", "padding_mask", "soft_lookup", "SyntaxError"))


def test_checks_are_not_run_and_other_names_are_not_taken(write: Write) -> None:
    checks = ("check(causal_mask)", {"grade": True, "solution": False})
    before = attention.masked_attention_weights
    tfcourse.use(write(MASK, checks, "check(causal_mask)", "def helper(x):\n    return x"))
    assert attention.masked_attention_weights is before
    assert not hasattr(attention, "helper")


def test_a_second_call_takes_what_was_written_since(write: Write) -> None:
    tfcourse.use(write(MASK))
    tfcourse.use(write(MASK.replace("zeros", "ones")))
    assert attention.causal_mask(2).all()


def test_an_exercise_may_use_another_of_the_same_notebook(write: Write) -> None:
    double = "def soft_lookup(q, k, v):\n    return causal_mask(2)"
    tfcourse.use(write(MASK, double))
    assert torch.equal(attention.soft_lookup(1, 2, 3), torch.zeros(2, 2, dtype=torch.bool))


def test_what_is_no_notebook_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="notebook"):
        tfcourse.use(tmp_path / "no.ipynb")
    (tmp_path / "a.ipynb").write_text("[]", encoding="utf-8")
    with pytest.raises(ValueError, match="notebook"):
        tfcourse.use(tmp_path / "a.ipynb")
