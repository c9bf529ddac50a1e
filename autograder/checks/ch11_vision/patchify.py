"""The check of ``patchify``: patches row by row, and in a patch row, column, channel."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch11_vision.patches import CUTTING, sizes
from autograder.checks.ch12_rotary.manners import merged
from tfcourse import vit


def pictures(draw: Draw) -> Case:
    """Pictures that are not square, cut into a grid that is not."""
    b, c, patch, high, wide = sizes(draw)
    return Case({"images": draw.normal(b, c, high * patch, wide * patch), "patch": patch})


def bytes_of_pixels(draw: Draw) -> Case:
    """Pictures as files hold them: a byte for each number."""
    return Case({"images": draw.integers(0, 256, 2, 3, 4, 6).to(torch.uint8), "patch": 2})


def large_integers(draw: Draw) -> Case:
    """Integers that float32 cannot represent."""
    return Case({"images": 2**40 + draw.integers(0, 1000, 2, 2, 6, 3), "patch": 3})


def more(draw: Draw, size: int) -> Case:
    """More and larger pictures."""
    return Case({"images": draw.normal(size, 2, size, size), "patch": 1})


def too_high(draw: Draw) -> Case:
    """Pictures of which a row of pixels is left over."""
    return Case({"images": draw.normal(2, 3, 7, 9), "patch": 3})


def too_wide(draw: Draw) -> Case:
    """Pictures of which a column of pixels is left over."""
    return Case({"images": draw.normal(2, 3, 9, 7), "patch": 3})


def any_pictures(draw: Draw) -> Case:
    """One or two pictures of one to three channels, patches and grids of one to three rows and columns."""
    c, patch, high, wide = draw.integers(1, 4, 4).tolist()
    return Case({"images": draw.normal(int(draw.integers(1, 3)), c, high * patch, wide * patch), "patch": patch})


PATCHIFY = Exercise(
    reference=vit.patchify,
    rows=(
        rows.numbers(
            2.25, pictures, gradients=False, title="Patches come row by row; in a patch, the channel runs fastest."
        ),
        rows.many(0.75, any_pictures, title="Images of many sizes, square or not, are cut as they should be."),
        merged(
            rows.numbers(
                0.5,
                bytes_of_pixels,
                large_integers,
                name="edges",
                title="Whole numbers stay whole, in their dtype, and gradients reach the pixels.",
            ),
            rows.numbers(0, pictures),
        ),
        rows.inputs_kept(0.25, pictures),
        rows.no_loop(0.5, more, over="examples or patches"),
        rows.errors(
            0.75,
            pictures,
            too_high,
            too_wide,
            title="Images that patches do not fill are a ValueError.",
        ),
    ),
    forbidden=CUTTING,
    rule_case=pictures,
)
