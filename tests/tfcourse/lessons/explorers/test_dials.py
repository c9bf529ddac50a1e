"""The rotary dial holds the clocks of the reference, and refuses what it cannot show."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from tfcourse.lessons.explorers.dials import DialExplorer, dial_explorer
from tfcourse.rotary import rotary_embedding, rotary_frequencies


def vectors(width: int = 8) -> tuple[torch.Tensor, torch.Tensor]:
    drawn = torch.randn(2, width, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return drawn[0], drawn[1]


def explorer(**options: Any) -> DialExplorer:
    return dial_explorer(*vectors(), **({"caption": "c"} | options))


@pytest.mark.parametrize("interleaved", [False, True])
def test_scores_are_those_of_rows_that_are_turned(interleaved: bool) -> None:
    shown, (q, k) = explorer(), vectors()
    for clock in shown.clocks:
        frequencies = torch.tensor(clock.frequencies, dtype=torch.float64)
        rows = rotary_embedding(
            torch.stack([q, k]), torch.tensor([31.0, 12.0]) * clock.scale, frequencies, interleaved=interleaved
        )
        assert shown.score(clock, 19, interleaved=interleaved) == pytest.approx(float(rows[0] @ rows[1]), abs=1e-6)


def test_clocks_are_stretched_by_how_far_the_sliders_reach() -> None:
    trained, squeezed, based, slowed = explorer(trained=32, longest=128).clocks[:4]
    assert trained.frequencies == pytest.approx(rotary_frequencies(8).tolist())
    assert (squeezed.frequencies, squeezed.scale) == (trained.frequencies, 0.25)
    assert based.frequencies[0] == 1
    for clock in (based, slowed):
        assert clock.frequencies[-1] == pytest.approx(trained.frequencies[-1] / 4)


def test_data_has_every_way_for_every_base() -> None:
    data = json.loads(explorer(thetas=(100, 10_000)).to_json())
    assert [base["theta"] for base in data["bases"]] == [100, 10_000]
    for base in data["bases"]:
        assert [way["name"] for way in base["ways"]] == [
            "as trained",
            "positions \u00d7 0.25",
            "larger base",
            "Llama 3.1",
        ]
        assert {len(way["frequencies"]) for way in base["ways"]} == {4}
    assert data["start"] == {"m": 20, "n": 8}


def test_tables_and_summary_stand_in_for_the_figure() -> None:
    shown = explorer()
    assert "Turns within 64 positions" in shown.plain()
    assert f"<td>{shown.score(shown.clocks[0], 256):.2f}</td>" in shown.plain()
    assert shown.summary() == "4 pairs of columns, 8 sets of frequencies, positions 0 to 256"


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"query": torch.zeros(7), "key": torch.zeros(7)}, "even width"),
        ({"query": torch.zeros(8), "key": torch.zeros(6)}, "one even width"),
        ({"query": torch.full((8,), torch.nan)}, "not finite"),
        ({"thetas": ()}, "bases"),
        ({"thetas": (1.0,)}, "above 1"),
        ({"trained": 64, "longest": 64}, "beyond the trained"),
        ({"start": (0, 300)}, "outside"),
        ({"caption": " "}, "caption"),
    ],
)
def test_what_cannot_be_shown_is_refused(changed: dict[str, Any], match: str) -> None:
    options: dict[str, Any] = {"query": torch.ones(8), "key": torch.ones(8), "caption": "c"} | changed
    with pytest.raises(ValueError, match=match):
        dial_explorer(options.pop("query"), options.pop("key"), **options)
