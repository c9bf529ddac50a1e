"""The widest floating-point type of a device."""

import torch

__all__ = ["widest_float"]

# Devices whose hardware has no float64.
WITHOUT_FLOAT64 = frozenset({"mps"})


def widest_float(device: torch.device | str | None) -> torch.dtype:
    """Return float64, or float32 on a device without it, such as Apple's GPUs.

    Args:
        device: The device; None means PyTorch's current default.
    """
    used = torch.get_default_device() if device is None else torch.device(device)
    return torch.float32 if used.type in WITHOUT_FLOAT64 else torch.float64
