"""The check of ``largest_batch``: how many texts fit beside the weights."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.variants import changed
from tfcourse import llama


def roomy(draw: Draw) -> Case:
    """Room for some."""
    cache = 7 + int(draw.integers(0, 5))
    return Case(
        {"memory_bytes": 200 + int(draw.integers(0, 50)), "weight_bytes": 100, "cache_bytes_per_sequence": cache}
    )


def of_8b(draw: Draw) -> Case:
    """Llama 3 8B on one H100."""
    cache = 131_072 * (1000 + int(draw.integers(0, 9000)))
    return Case({"memory_bytes": 80 * 10**9, "weight_bytes": 16_060_522_496, "cache_bytes_per_sequence": cache})


def too_large(draw: Draw) -> Case:
    """Weights that do not fit."""
    return roomy(draw).with_arguments(memory_bytes=40)


def no_cache(draw: Draw) -> Case:
    """Texts that weigh nothing."""
    return roomy(draw).with_arguments(cache_bytes_per_sequence=0)


def anything(draw: Draw) -> Case:
    """Room for one to nine small texts beside the weights, and sometimes for a part of another one."""
    weights, count = draw.integers(1, 10, 2).tolist()
    cache = int(draw.integers(1, 8))
    room = count * cache + int(draw.integers(0, cache))
    return Case({"memory_bytes": weights + room, "weight_bytes": weights, "cache_bytes_per_sequence": cache})


LARGEST_BATCH = Exercise(
    reference=llama.largest_batch,
    rows=(
        rows.numbers(
            1.25,
            roomy,
            of_8b,
            changed(roomy, cache_bytes_per_sequence=1),
            title="As many texts as fit beside the weights.",
        ),
        rows.many(0.75, anything, title="So many fit for many small sizes, also where nothing is left over."),
        rows.numbers(0.5, too_large, roomy, name="no room", title="None, if the weights alone do not fit."),
        rows.errors(0.5, roomy, no_cache, title="Texts that weigh nothing are a ValueError."),
    ),
)
