"""The check of ``gpt_parameters``: every number of the model, by part."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import gpt


def any_sizes(draw: Draw) -> Case:
    """Four sizes, pairwise distinct."""
    names = ("vocab_size", "max_length", "d_model", "n_layers")
    return Case(dict(zip(names, draw.sizes(4, low=3), strict=True)))


def of_gpt2(draw: Draw) -> Case:
    """The smallest GPT-2, with another vocabulary."""
    return Case(
        {"vocab_size": 40_000 + int(draw.integers(0, 9999)), "max_length": 1024, "d_model": 768, "n_layers": 12}
    )


def another_width(draw: Draw) -> Case:
    """A feed-forward width that is not four times that of the model."""
    return any_sizes(draw).with_arguments(d_ff=17 + int(draw.integers(0, 9)))


def _part(points: float, place: int, name: str, title: str) -> rows.Row:
    return rows.part(points, any_sizes, of_gpt2, output=f"output[{place}]", name=name, title=title)


GPT_PARAMETERS = Exercise(
    reference=gpt.gpt_parameters,
    rows=(
        _part(0.75, 0, "tokens", "The matrix of embeddings is counted, once."),
        _part(0.5, 1, "positions", "The table of positions is counted."),
        _part(0.75, 2, "blocks", "The blocks are counted, with their biases and norms."),
        _part(0.5, 3, "final_norm", "The norm behind the last block is counted."),
        _part(1.5, 4, "total", "The total is right."),
        rows.numbers(1, another_width, name="d_ff", gradients=False, title="The feed-forward width may be another."),
    ),
)
