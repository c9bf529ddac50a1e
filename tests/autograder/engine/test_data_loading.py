"""A loader with worker processes gives its batches where none can be started."""

from __future__ import annotations

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset, dataloader

from autograder.engine.student.data_loading import load_in_this_process


@pytest.fixture
def without_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataloader, "_MultiProcessingDataLoaderIter", dataloader._MultiProcessingDataLoaderIter)
    monkeypatch.setattr("os.fork", None)
    load_in_this_process()


@pytest.mark.parametrize("options", [{}, {"persistent_workers": True}, {"timeout": 5}, {"prefetch_factor": 3}])
def test_a_loader_with_workers_gives_its_batches(without_workers: None, options: dict[str, int]) -> None:
    numbers = torch.arange(6)
    loader: DataLoader[tuple[torch.Tensor, ...]] = DataLoader(
        TensorDataset(numbers), batch_size=4, num_workers=2, **options
    )
    for _ in range(2):  # epochs
        assert [batch.tolist() for (batch,) in loader] == [[0, 1, 2, 3], [4, 5]]
    assert loader.num_workers == 2
