"""The check of ``decode_cost``: sums and bytes of one more token."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import llama


def any_sizes(draw: Draw) -> Case:
    """Sizes that are pairwise different."""
    layers, width, length = (int(number) for number in (5 + draw.permutation(9))[:3])
    weights = 1000 + int(draw.integers(0, 9000))
    return Case(
        {"weights": weights, "n_layers": layers, "n_heads": 4, "n_kv_heads": 2, "d_head": width, "length": length}
    )


def of_8b(draw: Draw) -> Case:
    """Llama 3 8B, at some length."""
    sizes = {"weights": 7_504_658_432, "n_layers": 32, "n_heads": 32, "n_kv_heads": 8, "d_head": 128}
    return Case({**sizes, "length": 1000 + int(draw.integers(0, 9000))})


def several(draw: Draw) -> Case:
    """Several texts."""
    return any_sizes(draw).with_arguments(batch=5)


def wider(draw: Draw) -> Case:
    """Numbers of four bytes."""
    return any_sizes(draw).with_arguments(bytes_per_number=4)


def _part(points: float, place: int, name: str, title: str) -> rows.Row:
    return rows.part(points, any_sizes, of_8b, output=f"output[{place}]", name=name, title=title)


def anything(draw: Draw) -> Case:
    """Any sizes, among them equal ones, 1, and as many key heads as query heads."""
    layers, shared, group, width = draw.integers(1, 5, 4).tolist()
    weights, length = draw.integers(0, 100, 2).tolist()
    sizes = {"weights": weights, "n_layers": layers, "n_heads": group * shared, "n_kv_heads": shared}
    return Case({**sizes, "d_head": width, "length": length})


DECODE_COST = Exercise(
    reference=llama.decode_cost,
    rows=(
        rows.numbers(2, any_sizes, of_8b, gradients=False, title="Operations and both kinds of bytes are right."),
        _part(0.5, 0, "operations", "The operations are right."),
        _part(0.25, 1, "weights", "The bytes of the weights are right."),
        _part(0.25, 2, "cache", "The bytes of the cache are right."),
        rows.many(0.5, anything, title="They are right for many small models."),
        rows.numbers(
            1.5, several, wider, name="options", gradients=False, title="Several texts, and other numbers, are counted."
        ),
    ),
)
