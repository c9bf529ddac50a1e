"""The check of ``llama_parameters``: every number of the model, by part."""

from __future__ import annotations

from typing import Any

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import llama


def any_sizes(draw: Draw) -> Case:
    """Sizes that are pairwise different; four heads share two."""
    v, f = (int(number) for number in (11 + draw.permutation(9))[:2])
    layers = draw.unseen(3, 10)
    return Case({"vocab_size": v, "d_model": 8, "n_heads": 4, "n_kv_heads": 2, "d_ff": f, "n_layers": layers})


def of_8b(draw: Draw) -> Case:
    """The sizes of Llama 3 8B, with another vocabulary."""
    sizes: dict[str, Any] = {"d_model": 4096, "n_heads": 32, "n_kv_heads": 8, "d_ff": 14_336, "n_layers": 32}
    return Case({"vocab_size": 128_000 + int(draw.integers(0, 999)), **sizes})


def tied(draw: Draw) -> Case:
    """One matrix for input and output."""
    return any_sizes(draw).with_arguments(tied=True)


def _part(points: float, place: int, name: str, title: str) -> rows.Row:
    return rows.part(points, any_sizes, of_8b, output=f"output[{place}]", name=name, title=title)


LLAMA_PARAMETERS = Exercise(
    reference=llama.llama_parameters,
    rows=(
        rows.numbers(1.75, any_sizes, of_8b, name="all", title="All five counts are right.", gradients=False),
        _part(0.75, 4, "output", "The output matrix is counted."),
        _part(0.25, 1, "attention", "The four maps of attention are counted."),
        _part(0.25, 2, "feed-forward", "The three maps of the feed-forward network are counted."),
        rows.numbers(1, tied, name="tied", gradients=False, title="A tied output matrix is not counted twice."),
    ),
)
