"""Share cases among the checks of splitting images into patches and joining them."""

from __future__ import annotations

from autograder.checking.draw import Draw

# Functions that would cut pictures, or put them together, by themselves.
CUTTING = ("einops", "unfold", "im2col", "pixel_unshuffle", "fold", "col2im", "pixel_shuffle", "space_to_depth")


def sizes(draw: Draw) -> tuple[int, int, int, int, int]:
    """Sizes for images that are not square: examples, channels, side of a patch, rows and columns of patches."""
    patch, high, wide = draw.sizes(3)
    return 2, 3, patch, high, wide
