"""The rotary dial holds the clocks of the reference."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tfcourse.lessons.explorers.dials import DialExplorer, dial_explorer
from tfcourse.rotary import rotary_embedding, rotary_frequencies

from .examples import data_of, tables_of

ROWS = torch.randn(2, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def explorer(**options: Any) -> DialExplorer:
    return dial_explorer(*ROWS, caption="c", **options)


@pytest.mark.parametrize("interleaved", [False, True])
def test_scores_are_those_of_rows_that_are_turned(interleaved: bool) -> None:
    for clock in explorer().clocks:
        frequencies, positions = torch.tensor(clock.frequencies, dtype=torch.float64), torch.tensor([31.0, 12.0])
        q, k = rotary_embedding(ROWS, positions * clock.scale, frequencies, interleaved=interleaved)
        assert explorer().score(clock, 19, interleaved=interleaved) == pytest.approx(float(q @ k), abs=1e-6)


def test_clocks_are_stretched_by_how_far_the_sliders_reach() -> None:
    trained, squeezed, based, slowed = explorer(trained=32, longest=128).clocks[:4]
    assert trained.frequencies == pytest.approx(rotary_frequencies(8).tolist())
    assert (squeezed.frequencies, squeezed.scale) == (trained.frequencies, 0.25)
    assert based.frequencies[0] == 1
    for clock in (based, slowed):
        assert clock.frequencies[-1] == pytest.approx(trained.frequencies[-1] / 4)


def test_data_and_table_have_every_way_for_every_base() -> None:
    shown = explorer(thetas=(100, 10_000))
    data = data_of(shown)
    assert [base["theta"] for base in data["bases"]] == [100, 10_000]
    assert [len(way["frequencies"]) for base in data["bases"] for way in base["ways"]] == [4] * 8
    assert data["start"] == {"m": 20, "n": 8}
    turns, scores = tables_of(explorer())
    assert float(turns[1][1]) == pytest.approx(64 / 6.2832, abs=0.01), "the first pair turns by one radian a position"
    assert scores[-1] == ["256", *(f"{explorer().score(clock, 256):.2f}" for clock in explorer().clocks[:4])]
