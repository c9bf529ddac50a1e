"""Share constants among the checks of the scaling laws."""

from __future__ import annotations

from autograder.checking.draw import Draw


def other_constants(draw: Draw) -> dict[str, float]:
    """Constants that belong to no published fit."""
    e, a, b, alpha, beta = (float(draw.integers(1, 20)) / 20 for _ in range(5))
    return {"E": 1 + e, "A": 300 + 300 * a, "B": 900 + 300 * b, "alpha": 0.3 + alpha / 20, "beta": 0.4 + beta / 20}
