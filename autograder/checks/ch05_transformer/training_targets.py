"""Share targets with padding, and the names of forbidden ready-made losses, among the checks of training."""

from __future__ import annotations

import math

from torch import Tensor

from autograder.checking.draw import Draw

READY_LOSSES = (
    *("cross_entropy", "cross_entropy_loss", "linear_cross_entropy", "kl_div", "Categorical"),
    *("nll_loss", "nll_loss_nd", "nll_loss_forward", "_nll_loss_forward", "nll_loss2d", "nll_loss2d_forward"),
)


def padded_targets(draw: Draw, batch: int, length: int, vocab_size: int) -> Tensor:
    """Target tokens with EOS and padding: the first example is as long as it can be, and all others are shorter."""
    targets = draw.integers(3, vocab_size, batch, length)
    for example in range(batch):
        end = length - math.ceil(example * (length - 2) / batch)
        targets[example, end - 1] = 2
        targets[example, end:] = 0
    return targets
