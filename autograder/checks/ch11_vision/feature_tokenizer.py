"""The check of ``FeatureTokenizer``: a row of a table as tokens."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checking.rows import Probe
from autograder.checks.ch12_rotary.manners import kept_on_any_device
from tfcourse import beyond

D = 5


def _case(draw: Draw, n_numerical: int, cardinalities: tuple[int, ...], b: int = 3) -> Case:
    init = {"n_numerical": n_numerical, "cardinalities": list(cardinalities), "d_token": D}
    fresh = beyond.FeatureTokenizer(n_numerical, cardinalities, D)
    state = {name: draw.normal(*value.shape) for name, value in fresh.named_parameters()}
    columns = [draw.integers(0, size, b) for size in cardinalities]
    categorical = torch.stack(columns, dim=1) if columns else torch.zeros(b, 0, dtype=torch.long)
    return Case({"numerical": draw.normal(b, n_numerical), "categorical": categorical}, init=init, state=state)


def mixed(draw: Draw) -> Case:
    """Numbers and categories."""
    return _case(draw, 3, (4, 2), b=6)


def several_categories(draw: Draw) -> Case:
    """Three categorical columns of different sizes, of which the last categories occur."""
    case = _case(draw, 2, (3, 6, 4), b=4)
    categorical = case.arguments["categorical"].clone()
    categorical[0] = torch.tensor([2, 5, 3])
    return case.with_arguments(categorical=categorical)


def numbers_alone(draw: Draw) -> Case:
    """No categorical column."""
    return _case(draw, 4, ())


def zeros(draw: Draw) -> Case:
    """Numbers that are zero: only the bias distinguishes the columns."""
    case = _case(draw, 3, (2,))
    return case.with_arguments(numerical=torch.zeros(3, 3))


def drawn(draw: Draw, name: str) -> Case:
    """A parameter of a wide tokenizer as it is drawn."""
    cardinalities = [3, 2, 4 + int(draw.integers(0, 3))]
    init = {"n_numerical": 4, "cardinalities": cardinalities, "d_token": 256}
    return Case({"target": name}, init=init, method="get_parameter")


def _as_drawn(draw: Draw) -> list[Probe]:
    """Ask for each parameter by its name, since in the tokens one spread hides another."""
    names = ("weight", "bias", "embedding.weight", "category_bias", "class_token")
    return [Probe((drawn(draw, name).request(),), "spread", {"dim": -1}) for name in names]


def more(draw: Draw, size: int) -> Case:
    """More rows and columns."""
    return _case(draw, size, (3,) * size, b=size + 1)


def one_row(draw: Draw) -> Case:
    """One row with a number and a category."""
    return _case(draw, 1, (1,), b=1)


FEATURE_TOKENIZER = Exercise(
    reference=beyond.FeatureTokenizer,
    rows=(
        rows.numbers(3, mixed, gradients=False, title="Numbers stretch vectors, categories pick rows."),
        rows.numbers(
            1,
            several_categories,
            name="categories",
            gradients=False,
            title="Every categorical column has rows of its own.",
        ),
        rows.numbers(
            0.75,
            numbers_alone,
            zeros,
            one_row,
            name="edges",
            gradients=False,
            title="No categories at all, numbers that are zero, and a single row.",
        ),
        rows.numbers(0.75, mixed, name="gradients", title="Gradients reach the numbers and all weights."),
        rows.Row("initialisation", "All parameters are drawn as the docstring says.", 0.5, _as_drawn, side=True),
        kept_on_any_device(0.5, mixed),
        rows.no_loop(0.5, more, over="rows or columns"),
    ),
)
