"""The check of ``relative_position_bucket``: exactly near, coarsely far."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch10_t5.offsets import setting
from autograder.checks.variants import changed
from tfcourse import t5

# Of 128, the largest distance, one more or less moves these distances to another bucket: in both directions, and backwards.
TELLING = (67, 76, 90, 91)
# Here rounding could decide, with 32 buckets.
UNDECIDED = (16, 32, 64)


def _case(draw: Draw, *, bidirectional: bool, **options: int) -> Case:
    """Near and far offsets of both signs, as a table."""
    near, far = torch.arange(-12, 13), 40 * torch.arange(-7, 8) + draw.integers(-19, 20, 15)
    far[torch.isin(far.abs(), torch.tensor(UNDECIDED))] += 1
    telling = torch.tensor(TELLING)
    offset = torch.cat([near, far, telling, -telling])[draw.permutation(48)].view(6, 8)
    return Case({"offset": offset, "bidirectional": bidirectional, **options})


def _behind(case: Case) -> Case:
    return case.with_arguments(offset=-case.arguments["offset"].abs())


def both_ways(draw: Draw) -> Case:
    """Keys behind and ahead."""
    return _case(draw, bidirectional=True)


def backwards(draw: Draw) -> Case:
    """Keys behind; those ahead count as 0."""
    return _case(draw, bidirectional=False)


def others_both_ways(draw: Draw) -> Case:
    """Other buckets, both ways."""
    return _case(draw, bidirectional=True, **setting(draw))


def others_backwards(draw: Draw) -> Case:
    """Other buckets, backwards; all keys are behind."""
    return _behind(_case(draw, bidirectional=False, **setting(draw)))


def odd(draw: Draw) -> Case:
    """An odd number of buckets on a side."""
    return both_ways(draw).with_arguments(n_buckets=6)


def too_near(draw: Draw) -> Case:
    """A largest distance among the distances that have exact buckets."""
    return both_ways(draw).with_arguments(n_buckets=32, max_distance=8)


def just_far_enough(draw: Draw) -> Case:
    """The smallest possible largest distance: one beyond the distances that have exact buckets."""
    return both_ways(draw).with_arguments(max_distance=9)


def twos(draw: Draw) -> Case:
    """Two buckets, which is the smallest even number, backwards."""
    return _behind(backwards(draw)).with_arguments(n_buckets=2)


RELATIVE_POSITION_BUCKET = Exercise(
    reference=t5.relative_position_bucket,
    rows=(
        rows.numbers(
            3, both_ways, name="both ways", gradients=False, title="Offsets of keys behind and ahead are sorted."
        ),
        rows.numbers(
            1.75,
            backwards,
            name="backwards",
            gradients=False,
            title="Looking back only, all buckets are for keys behind.",
        ),
        rows.numbers(
            1.25,
            others_both_ways,
            others_backwards,
            just_far_enough,
            twos,
            name="sizes",
            gradients=False,
            title="Number of buckets and largest distance may be others.",
        ),
        rows.inputs_kept(0.5, both_ways),
        rows.errors(
            0.5,
            both_ways,
            odd,
            too_near,
            changed(both_ways, n_buckets=9),
            changed(backwards, n_buckets=7),
            changed(backwards, max_distance=16),
            title="Buckets that cannot be halved and a largest distance that is too small are a ValueError.",
        ),
    ),
)
