"""The check of ``training_loop``: one step for every batch, in order, at its own rate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch05_transformer.training_cases import TOKENS, in_groups, network, optimiser, with_model
from autograder.checks.ch05_transformer.training_targets import padded_targets
from tfcourse import training

# How long the small task is trained, and how good the model must be then, on examples that it has not seen. On 400 tasks the reference
# never had a loss above 0.06, or less than 98 % right; without the schedule, at its first rate alone, or on one batch for ever, no loss was
# below 0.2.
STEPS = 60
WARMUP = 15
LARGEST_LOSS = 0.15
LEAST_RIGHT = 0.95
CORNERS = 4


def _rates(*rates: float) -> dict[str, Any]:
    return {"kind": "Rates", "init": {"rates": rates}}


def some_steps(draw: Draw, steps: int = 3, kind: str = "SGD", lr: float = 0.5) -> Case:
    """A small network that is called with two inputs, its optimiser, and a few batches with padding, each of another size."""
    _, inputs, hidden = draw.sizes(3)
    batches = [
        ((draw.normal(2 + n, 4, inputs), draw.normal(2 + n, 4, TOKENS)), padded_targets(draw, 2 + n, 4, TOKENS))
        for n in range(steps)
    ]
    return Case({"batches": batches}, props={"model": network(draw, inputs, hidden), "optimizer": optimiser(kind, lr)})


def one_step(draw: Draw) -> Case:
    """A single batch."""
    return some_steps(draw, steps=1)


def no_steps(draw: Draw) -> Case:
    """No batch at all."""
    return some_steps(draw).with_arguments(batches=[])


def smoothed_steps(draw: Draw) -> Case:
    """Steps with label smoothing."""
    return some_steps(draw).with_arguments(label_smoothing=0.3)


def steps_with_adam(draw: Draw) -> Case:
    """Steps of an optimiser whose state depends on earlier steps."""
    return some_steps(draw, steps=4, kind="Adam", lr=0.1)


def steps_at_rates(draw: Draw) -> Case:
    """Every step has a different rate."""
    case = some_steps(draw, steps=4)
    first = 0.3 + float(draw.integers(1, 9)) / 10
    return replace(case, props={**(case.props or {}), "learning_rate": _rates(first, first / 3, 2 * first, first / 5)})


def steps_of_groups(draw: Draw) -> Case:
    """The same, with an optimiser of several groups."""
    return in_groups(steps_at_rates(draw))


def steps_with_dropout(draw: Draw) -> Case:
    """A model that drops everything while it is trained, and has been examined just before; it is left in training mode."""
    case = some_steps(draw)
    assert case.props is not None
    init = {**case.props["model"]["init"], "dropout": 1.0}
    return with_model(case, init=init, training=False)


def _corners(draw: Draw, count: int, first: int, among: int) -> tuple[Tensor, Tensor]:
    """Draw points of three coordinates around corners of a square: the tokens from 1 on; the third coordinate is only noise."""
    corner = (first + draw.integers(0, among, count)) % CORNERS
    centre = torch.stack([corner // 2, (corner + 1) // 2 % 2, torch.full_like(corner, 0)], dim=-1) * 2.0 - 1.0
    return centre + draw.normal(count, 3, scale=0.3), corner + 1


def corners(draw: Draw) -> tuple[Case, tuple[Tensor, ...], Tensor]:
    """Which corner? Every batch shows two neighbouring ones of four. The optimiser's own rate is far too small; the schedule's is not."""
    rates = [0.1 * min(step / WARMUP, (WARMUP / step) ** 0.5) for step in range(1, STEPS + 1)]
    batches = []
    for step in range(STEPS):
        points, targets = _corners(draw, 8, first=step, among=2)
        batches.append(((points,), targets))
    props = {"model": network(draw, 3, 8), "optimizer": optimiser("Adam", 1e-4), "learning_rate": _rates(*rates)}
    points, targets = _corners(draw, 200, first=0, among=CORNERS)
    return Case({"batches": batches}, props=props), (points,), targets


TRAINING_LOOP = Exercise(
    reference=training.training_loop,
    rows=(
        rows.numbers(
            4.5,
            one_step,
            some_steps,
            gradients=False,
            title="After one step and after three, every weight is where it should be, and every loss is right.",
        ),
        rows.numbers(
            2,
            steps_at_rates,
            steps_of_groups,
            smoothed_steps,
            name="handed on",
            gradients=False,
            title="Every step is made at its own learning rate, and with the label smoothing.",
        ),
        rows.numbers(
            1, steps_with_adam, name="optimiser", gradients=False, title="The optimiser remembers the steps before."
        ),
        rows.numbers(
            1.25,
            steps_with_dropout,
            name="training mode",
            gradients=False,
            title="The model is trained in training mode, and left in it.",
        ),
        rows.reaches(
            0.75,
            corners,
            loss=LARGEST_LOSS,
            right=LEAST_RIGHT,
            title=f"After {STEPS} steps of a small task the model does it, on examples that it has not seen.",
        ),
        rows.detached(0.75, some_steps),
        rows.errors(0.75, some_steps, no_steps, title="No batches at all are a ValueError."),
    ),
)
