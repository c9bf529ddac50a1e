"""Share cases among the checks of relative positions."""

from __future__ import annotations

from autograder.checking.draw import Draw

# Buckets and largest distance, of which no power falls on a border that rounding could decide.
SETTINGS = ((32, 128), (16, 60), (8, 20), (12, 40), (32, 256))


def setting(draw: Draw) -> dict[str, int]:
    """Another number of buckets than usual."""
    buckets, distance = SETTINGS[1 + int(draw.integers(0, 4))]
    return {"n_buckets": buckets, "max_distance": distance}
