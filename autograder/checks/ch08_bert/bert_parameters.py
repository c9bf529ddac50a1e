"""The check of ``bert_parameters``: every number of the model, by part."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import bert


def any_sizes(draw: Draw) -> Case:
    """Four sizes, pairwise distinct, and the longest text of the paper."""
    names = ("vocab_size", "d_model", "n_layers", "d_ff")
    return Case(dict(zip(names, draw.sizes(4, low=3), strict=True)))


def base(draw: Draw) -> Case:
    """BERT-Base, with another vocabulary."""
    return Case({"vocab_size": 20_000 + int(draw.integers(0, 9999)), "d_model": 768, "n_layers": 12, "d_ff": 3072})


def other_tables(draw: Draw) -> Case:
    """Other numbers of places and of segments."""
    places, segments = draw.sizes(2, low=5)
    return any_sizes(draw).with_arguments(max_length=places, segments=segments)


def without_pooler(draw: Draw) -> Case:
    """No pooler."""
    return any_sizes(draw).with_arguments(pooler=False)


def _part(points: float, place: int, name: str, title: str) -> rows.Row:
    return rows.part(points, any_sizes, base, output=f"output[{place}]", name=name, title=title)


BERT_PARAMETERS = Exercise(
    reference=bert.bert_parameters,
    rows=(
        _part(1.5, 0, "embeddings", "Three tables and their norm are counted."),
        _part(1.25, 1, "layers", "The layers are counted, with their biases and norms."),
        _part(0.5, 2, "pooler", "The pooler is counted."),
        _part(0.75, 3, "total", "The total is right."),
        rows.numbers(
            1, other_tables, name="tables", gradients=False, title="Positions and segments may be of other numbers."
        ),
        rows.numbers(1, without_pooler, name="no pooler", gradients=False, title="There may be no pooler."),
    ),
)
