"""Make PyTorch's ``DataLoader`` load data in this process instead of in worker processes, which the sandbox refuses.

Otherwise a cell that works on a laptop would fail here. The batches are the same, except that random transforms draw from this process's
generator.
"""

from __future__ import annotations

from copy import copy
from typing import Any

from torch.utils.data import dataloader


class _InProcessLoaderIter(dataloader._SingleProcessDataLoaderIter):
    def __init__(self, loader: Any) -> None:
        alone = copy(loader)
        vars(alone).update(num_workers=0, timeout=0)
        super().__init__(alone)


def load_in_this_process() -> None:
    """Make DataLoader ignore ``num_workers`` from now on."""
    dataloader._MultiProcessingDataLoaderIter = _InProcessLoaderIter  # type: ignore[assignment,misc]
