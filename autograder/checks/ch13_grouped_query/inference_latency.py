"""The check of ``inference_latency``: the larger of two times."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch12_rotary.manners import merged
from autograder.checks.variants import changed
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


def equal(draw: Draw) -> Case:
    """Both take exactly as long."""
    return Case({"flops": 6e12, "bytes_moved": 12e9, "peak_flops": 1e12, "bandwidth": 2e9})


def slow(draw: Draw) -> Case:
    """A device that does less than one thing per second."""
    return moving(draw).with_arguments(flops=0.125, peak_flops=0.5, bytes_moved=2.0, bandwidth=0.25)


def anything(draw: Draw) -> Case:
    """Small work and rates, in powers of 2, so that both often take equally long."""
    names = ("flops", "bytes_moved", "peak_flops", "bandwidth")
    return Case(dict(zip(names, (2.0 ** draw.integers(-3, 4, 4).double()).tolist(), strict=True)))


INFERENCE_LATENCY = Exercise(
    reference=llama.inference_latency,
    rows=(
        rows.numbers(1.25, computing, moving, gradients=False, title="The larger time counts, and is named."),
        rows.numbers(
            0.75, shared, shared_sums, name="devices", gradients=False, title="Devices share both kinds of work."
        ),
        merged(
            rows.edge(
                0.5,
                equal,
                slow,
                name="edges",
                gradients=False,
                dtypes=(),
                title="Many rates are right, also below 1; if both take equally long, it is named compute.",
            ),
            rows.many(0, anything, title=""),
        ),
        rows.errors(
            0.5,
            moving,
            no_rate,
            changed(moving, bandwidth=-0.5),
            changed(moving, peak_flops=0.0),
            changed(moving, peak_flops=-0.5),
            changed(moving, n_devices=0),
            title="A rate or a number of devices that is not positive is a ValueError.",
        ),
    ),
)
