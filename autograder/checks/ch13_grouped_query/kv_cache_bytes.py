"""The check of ``kv_cache_bytes``: what keys and values weigh."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import llama


def any_sizes(draw: Draw) -> Case:
    """Sizes that are pairwise different."""
    names = ("n_layers", "n_kv_heads", "d_head", "length")
    return Case(dict(zip(names, (int(number) for number in (3 + draw.permutation(9))[:4]), strict=True)))


def of_8b(draw: Draw) -> Case:
    """Llama 3 8B, at some length."""
    return Case({"n_layers": 32, "n_kv_heads": 8, "d_head": 128, "length": 1000 + int(draw.integers(0, 9000))})


def several(draw: Draw) -> Case:
    """Several texts."""
    return any_sizes(draw).with_arguments(batch=5)


def wider(draw: Draw) -> Case:
    """Numbers of four bytes."""
    return any_sizes(draw).with_arguments(bytes_per_number=4)


def anything(draw: Draw) -> Case:
    """Any sizes, among them equal ones and 1, and an empty cache."""
    layers, heads, width = draw.integers(1, 6, 3).tolist()
    return Case({"n_layers": layers, "n_kv_heads": heads, "d_head": width, "length": int(draw.integers(0, 9))})


KV_CACHE_BYTES = Exercise(
    reference=llama.kv_cache_bytes,
    rows=(
        rows.numbers(1.25, any_sizes, of_8b, title="Keys and values of all layers and heads are counted."),
        rows.many(0.75, anything, title="They are counted for many small models."),
        rows.numbers(1, several, wider, name="options", title="Several texts, and other numbers, are counted."),
    ),
)
