"""Numbers for the tests of the reference: drawn from a seed, rounded, and put into modules."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def randn(*shape: int, seed: int = 3, dtype: torch.dtype = torch.float64) -> Tensor:
    """Random inputs in float64, then rounded, so that every dtype sees the same numbers."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def redrawn(module: nn.Module, seed: int = 5, scale: float = 0.3) -> nn.Module:
    """The module in evaluation mode, every weight, factor and bias of it drawn anew."""
    with torch.no_grad():
        for number, parameter in enumerate(module.parameters()):
            parameter.copy_(scale * randn(*parameter.shape, seed=seed + number))
    return module.eval()


def near(one: Tensor, other: Tensor, tolerance: float = 1e-5) -> None:
    """Compare float32 numbers that were computed in another order."""
    torch.testing.assert_close(one, other, atol=tolerance, rtol=tolerance)
