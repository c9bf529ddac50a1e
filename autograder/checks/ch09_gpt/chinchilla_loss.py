"""The check of ``chinchilla_loss``: three terms."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch09_gpt.scaling_cases import other_constants
from tfcourse import gpt


def a_model(draw: Draw) -> Case:
    """A model of a few billion parameters, with the constants of the corrected fit."""
    return Case(
        {"parameters": 1e9 + 1e7 * int(draw.integers(1, 500)), "tokens": 1e10 + 1e8 * int(draw.integers(1, 500))}
    )


def other_fit(draw: Draw) -> Case:
    """Other constants."""
    return a_model(draw).with_arguments(constants=other_constants(draw))


def any_model(draw: Draw) -> Case:
    """A model of thousands of parameters or of billions, and any number of tokens."""
    parameters, tokens = (float(10 ** int(draw.integers(3, 13)) * int(draw.integers(1, 10))) for _ in range(2))
    return Case({"parameters": parameters, "tokens": tokens})


CHINCHILLA_LOSS = Exercise(
    reference=gpt.chinchilla_loss,
    rows=(
        rows.numbers(1.5, a_model, a_model, gradients=False, title="The predicted loss of a model."),
        rows.many(0.5, any_model, title="Models of any size and any number of tokens are right as well."),
        rows.numbers(0.75, other_fit, name="constants", gradients=False, title="The constants may be others."),
        rows.inputs_kept(0.25, other_fit),
    ),
)
