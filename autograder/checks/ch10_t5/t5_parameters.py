"""The check of ``t5_parameters``: every number of the model, by part."""

from __future__ import annotations

from typing import Any

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import t5


def any_sizes(draw: Draw) -> Case:
    """Six sizes, pairwise distinct; the heads together are not as wide as the model."""
    names = ("vocab_size", "d_model", "n_heads", "d_head", "d_ff", "n_layers")
    return Case(dict(zip(names, (int(number) for number in (3 + draw.permutation(9))[:6]), strict=True)))


def of_3b(draw: Draw) -> Case:
    """The sizes of T5-3B, with another vocabulary."""
    sizes: dict[str, Any] = {"d_model": 1024, "n_heads": 32, "d_head": 128, "d_ff": 16_384, "n_layers": 24}
    return Case({"vocab_size": 32_000 + int(draw.integers(0, 999)), **sizes})


def gated(draw: Draw) -> Case:
    """Version 1.1."""
    return any_sizes(draw).with_arguments(gated=True)


def untied(draw: Draw) -> Case:
    """A separate output matrix."""
    return any_sizes(draw).with_arguments(tied=False)


def more_buckets(draw: Draw) -> Case:
    """Another number of buckets."""
    return any_sizes(draw).with_arguments(n_buckets=40 + 2 * int(draw.integers(0, 9)))


def _part(points: float, place: int, name: str, title: str) -> rows.Row:
    return rows.part(points, any_sizes, of_3b, output=f"output[{place}]", name=name, title=title)


T5_PARAMETERS = Exercise(
    reference=t5.t5_parameters,
    rows=(
        rows.part(
            1.75,
            any_sizes,
            of_3b,
            output="output[4]",
            name="total",
            title="The total is right, of small sizes and of T5-3B.",
        ),
        _part(0.25, 0, "embedding", "The matrix of embeddings is counted, once."),
        _part(0.25, 1, "encoder", "The encoder's layers and its norm are counted."),
        _part(0.25, 2, "decoder", "The decoder's layers and its norm are counted."),
        _part(0.25, 3, "biases", "Both tables of bias are counted."),
        rows.numbers(
            1.25,
            gated,
            untied,
            more_buckets,
            name="options",
            gradients=False,
            title="A gate, an output matrix of its own, and other buckets are counted.",
        ),
    ),
)
