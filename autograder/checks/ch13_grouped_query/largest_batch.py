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


LARGEST_BATCH = Exercise(
    reference=llama.largest_batch,
    rows=(
        rows.numbers(
            2,
            roomy,
            of_8b,
            changed(roomy, cache_bytes_per_sequence=1),
            title="As many texts as fit beside the weights.",
        ),
        rows.numbers(0.5, too_large, roomy, name="no room", title="None, if the weights alone do not fit."),
        rows.errors(0.5, roomy, no_cache, title="Texts that weigh nothing are a ValueError."),
    ),
)
