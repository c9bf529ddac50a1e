"""The check of ``inference_latency``: the slower of two clocks."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import llama


def computing(draw: Draw) -> Case:
    """Sums take longer."""
    return Case(
        {"flops": 1e12 * (5 + int(draw.integers(0, 9))), "bytes_moved": 1e9, "peak_flops": 1e12, "bandwidth": 2e9}
    )


def moving(draw: Draw) -> Case:
    """Bytes take longer."""
    return Case(
        {"flops": 1e12, "bytes_moved": 1e9 * (7 + int(draw.integers(0, 9))), "peak_flops": 1e12, "bandwidth": 2e9}
    )


def shared(draw: Draw) -> Case:
    """Three devices, and bytes take longer."""
    return moving(draw).with_arguments(n_devices=3)


def shared_sums(draw: Draw) -> Case:
    """Three devices, and sums take longer."""
    return computing(draw).with_arguments(n_devices=3)


def no_rate(draw: Draw) -> Case:
    """A device that moves nothing."""
    return moving(draw).with_arguments(bandwidth=0.0)


INFERENCE_LATENCY = Exercise(
    reference=llama.inference_latency,
    rows=(
        rows.numbers(1.75, computing, moving, title="The slower clock counts, and is named."),
        rows.numbers(0.75, shared, shared_sums, name="devices", title="Devices share both kinds of work."),
        rows.errors(0.5, moving, no_rate, title="A rate of nothing is a ValueError."),
    ),
)
