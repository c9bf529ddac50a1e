"""The check of ``training_step``: predict, measure, differentiate, change the weights."""

from __future__ import annotations

from dataclasses import replace

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checking.props import TokenTable
from autograder.checks.ch05_transformer.training_cases import (
    TOKENS,
    in_groups,
    leftovers,
    network,
    optimiser,
    with_model,
)
from autograder.checks.ch05_transformer.training_targets import padded_targets
from tfcourse import training


def step_of_a_network(draw: Draw) -> Case:
    """A small network that is called with two inputs, its optimiser, and one batch with padding."""
    b, t, inputs, hidden = draw.sizes(4, low=3)
    return Case(
        {
            "inputs": (draw.normal(b, t, inputs), draw.normal(b, t, TOKENS)),
            "targets": padded_targets(draw, b, t, TOKENS),
        },
        props={"model": network(draw, inputs, hidden), "optimizer": optimiser()},
    )


def step_of_a_table(draw: Draw) -> Case:
    """A table of next tokens, as a language model."""
    b, t, places = draw.sizes(3, low=3)
    model = {
        "kind": "TokenTable",
        "init": {"vocab_size": TOKENS, "places": places},
        "state": draw.weights(TokenTable(TOKENS, places)),
    }
    return Case(
        {"inputs": (draw.integers(0, TOKENS, b, t),), "targets": padded_targets(draw, b, t, TOKENS)},
        props={"model": model, "optimizer": optimiser(lr=2.0)},
    )


def step_with_leftovers(draw: Draw) -> Case:
    """A model in which an earlier step has left its gradients."""
    case = step_of_a_network(draw)
    return with_model(case, gradients=leftovers(draw, case))


def step_with_adam(draw: Draw) -> Case:
    """A step of another optimiser, which does not move by rate times gradient."""
    case = step_of_a_network(draw)
    return replace(case, props={**(case.props or {}), "optimizer": optimiser("Adam", lr=0.1)})


def step_at_a_rate(draw: Draw) -> Case:
    """A step at a rate that is given."""
    return step_of_a_network(draw).with_arguments(learning_rate=0.07)


def step_of_groups(draw: Draw) -> Case:
    """The same, with an optimiser of several groups."""
    return in_groups(step_at_a_rate(draw))


def step_at_rate_zero(draw: Draw) -> Case:
    """A rate of zero, as a schedule may begin with: no weight moves."""
    return step_of_a_network(draw).with_arguments(learning_rate=0.0)


def smoothed_step(draw: Draw) -> Case:
    """A step with label smoothing."""
    return step_of_a_network(draw).with_arguments(label_smoothing=0.3)


TRAINING_STEP = Exercise(
    reference=training.training_step,
    rows=(
        rows.numbers(
            4,
            step_of_a_network,
            gradients=False,
            title="Every weight moves as it should, and the loss before the step is returned, a tensor.",
        ),
        rows.numbers(
            2.5,
            step_with_leftovers,
            name="left over",
            gradients=False,
            title="Gradients that were left over do not count.",
        ),
        rows.numbers(
            1,
            step_with_adam,
            step_of_a_table,
            name="optimiser",
            gradients=False,
            title="The optimiser decides how the weights move, and models of every kind can be trained.",
        ),
        rows.numbers(
            1,
            step_at_a_rate,
            step_of_groups,
            step_at_rate_zero,
            name="rate",
            gradients=False,
            title="A rate that is given is the rate of this step, also if it is 0.",
        ),
        rows.numbers(
            0.75, smoothed_step, name="smoothing", gradients=False, title="Label smoothing is handed on to the loss."
        ),
        rows.precision(0.25, step_of_a_network, half=False),
        rows.detached(0.5, step_of_a_network),
    ),
)
