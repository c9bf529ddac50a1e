"""The check of ``unpatchify``: the inverse of ``patchify``."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch11_vision.patches import CUTTING, sizes
from autograder.checks.ch12_rotary.manners import merged
from autograder.checks.variants import changed
from tfcourse import vit


def patches(draw: Draw) -> Case:
    """Patches of pictures that are not square."""
    b, c, patch, high, wide = sizes(draw)
    return Case({"patches": draw.normal(b, high * wide, patch * patch * c), "patch": patch, "grid": (high, wide)})


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


def any_patches(draw: Draw) -> Case:
    """One or two pictures of one to three channels, patches and grids of one to three rows and columns."""
    c, patch, high, wide = draw.integers(1, 4, 4).tolist()
    patches = draw.normal(int(draw.integers(1, 3)), high * wide, patch * patch * c)
    return Case({"patches": patches, "patch": patch, "grid": (high, wide)})


UNPATCHIFY = Exercise(
    reference=vit.unpatchify,
    rows=(
        rows.numbers(1.25, patches, gradients=False, title="Every pixel is back where it was."),
        rows.many(0.75, any_patches, title="Patches of images of many sizes, square or not, are joined."),
        merged(
            rows.numbers(
                0.5,
                bytes_of_pixels,
                name="edges",
                title="Whole numbers stay whole, in their dtype, and gradients reach the patches.",
            ),
            rows.numbers(0, patches),
        ),
        merged(
            rows.errors(
                0.5,
                patches,
                wrong_grid,
                changed(wrong_grid, grid=(2, 5)),
                part_of_a_channel,
                title="What does not fit is a ValueError, and there is no Python loop over examples or patches.",
            ),
            rows.no_loop(0, more, over="examples or patches"),
        ),
    ),
    forbidden=CUTTING,
    rule_case=patches,
)
