"""What a fresh kernel does first."""

from __future__ import annotations

import random


def seed_all(seed: int) -> None:
    """Seed the random generators that student code may use, so that a second run gives the same grades.

    Args:
        seed: the seed; numpy takes its lowest 32 bits.
    """
    random.seed(seed)
    import numpy
    import torch

    numpy.random.seed(seed % 2**32)
    torch.manual_seed(seed)
