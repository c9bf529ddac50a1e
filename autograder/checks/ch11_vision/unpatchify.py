"""The check of ``unpatchify``: the inverse of ``patchify``."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch11_vision.patches import CUTTING, sizes
from autograder.checks.variants import changed
from tfcourse import vit


def patches(draw: Draw) -> Case:
    """Patches of pictures that are not square."""
    b, c, patch, high, wide = sizes(draw)
    return Case({"patches": draw.normal(b, high * wide, patch * patch * c), "patch": patch, "grid": (high, wide)})


def other_patches(draw: Draw) -> Case:
    """Patches of pictures of another size."""
    return patches(draw)


def bytes_of_pixels(draw: Draw) -> Case:
    """Patches of a picture as files hold it: a byte for each number."""
    return Case({"patches": draw.integers(0, 256, 2, 6, 12).to(torch.uint8), "patch": 2, "grid": (3, 2)})


def more(draw: Draw, size: int) -> Case:
    """More examples and patches."""
    return Case({"patches": draw.normal(size, size * size, 2), "patch": 1, "grid": (size, size)})


def wrong_grid(draw: Draw) -> Case:
    """A grid of more places than there are patches."""
    return Case({"patches": draw.normal(2, 12, 12), "patch": 2, "grid": (3, 5)})


def part_of_a_channel(draw: Draw) -> Case:
    """Patches that are not made of whole channels."""
    return Case({"patches": draw.normal(2, 12, 10), "patch": 2, "grid": (3, 4)})


UNPATCHIFY = Exercise(
    reference=vit.unpatchify,
    rows=(
        rows.numbers(2, patches, other_patches, title="Every pixel is back in its place."),
        rows.numbers(0.25, bytes_of_pixels, name="integers", title="Whole numbers stay whole, in their dtype."),
        rows.no_loop(0.25, more, over="examples or patches"),
        rows.errors(
            0.5,
            patches,
            wrong_grid,
            changed(wrong_grid, grid=(2, 5)),
            part_of_a_channel,
            changed(patches, patch=0),
            changed(wrong_grid, patch=-2, grid=(3, 4)),
            title="A grid that does not fit, part of a channel, or a patch without a side is a ValueError.",
        ),
    ),
    forbidden=CUTTING,
    rule_case=patches,
)
