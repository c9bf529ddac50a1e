"""Provide a small model, its optimiser and batches with padding for the checks of a training step and a training loop."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import Tensor

from autograder.checking.draw import Case, Draw
from autograder.checking.props import Perceptron

TOKENS = 5


def network(draw: Draw, inputs: int, hidden: int) -> dict[str, Any]:
    """A small network with its own weights."""
    init = {"inputs": inputs, "hidden": hidden, "outputs": TOKENS}
    return {"kind": "Perceptron", "init": init, "state": draw.weights(Perceptron(inputs, hidden, TOKENS))}


def optimiser(kind: str = "SGD", lr: float = 0.5) -> dict[str, Any]:
    """An optimiser of the model."""
    return {"kind": kind, "of": "model", "init": {"lr": lr}}


def in_groups(case: Case) -> Case:
    """The same, with an optimiser that keeps each weight in a separate group."""
    assert case.props is not None
    return replace(case, props={**case.props, "optimizer": {**case.props["optimizer"], "apart": True}})


def with_model(case: Case, **changes: Any) -> Case:
    """The same, with another model."""
    assert case.props is not None
    return replace(case, props={**case.props, "model": {**case.props["model"], **changes}})


def leftovers(draw: Draw, case: Case) -> dict[str, Tensor]:
    """Gradients that an earlier step has left in a case's model."""
    assert case.props is not None
    return {name: draw.normal(*weight.shape) for name, weight in case.props["model"]["state"].items()}
