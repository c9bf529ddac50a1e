"""The rotary dial holds the reference's frequencies, and refuses what it cannot show."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import torch

from tfcourse.explorers.dials import dial_explorer
from tfcourse.rotary import interpolate_positions, ntk_theta, rotary_frequencies, rotary_score, scale_frequencies_llama3


def test_ways_are_those_of_the_reference() -> None:
    explorer = dial_explorer(caption="c", d_head=8, theta=1000.0, trained=32)
    plain = rotary_frequencies(8, 1000.0)
    expected = [
        plain,
        interpolate_positions(torch.ones(1, dtype=torch.float64), 0.25) * plain,
        rotary_frequencies(8, ntk_theta(1000.0, 4.0, 8)),
        scale_frequencies_llama3(plain, factor=4.0, original_length=32),
    ]
    for (_, turns), frequencies in zip(explorer.ways, expected, strict=True):
        assert turns == pytest.approx(frequencies.tolist(), rel=1e-12)


@pytest.mark.parametrize("offset", [0, 3, -17, 100])
def test_score_is_that_of_rotations_of_one_vector(offset: int) -> None:
    explorer = dial_explorer(caption="c", d_head=8)
    vector = torch.tensor([1.0, 0.0] * 4, dtype=torch.float64)
    expected = float(rotary_score(vector, vector, torch.tensor(offset), rotary_frequencies(8))) / 4
    assert explorer.score(0, offset) == pytest.approx(expected, abs=1e-9)


def test_data_and_table_hold_the_same_pairs() -> None:
    explorer = dial_explorer(caption="Who turns?", d_head=8)
    data = json.loads(explorer.to_json())
    assert [len(way["turns"]) for way in data["ways"]] == [4] * 4
    assert (data["trained"], data["longest"]) == (64, 256)
    assert f"{2 * math.pi:.1f}" in explorer.plain()
    assert "Who turns?" in explorer.plain()
    assert explorer.summary() == "4 pairs, 4 ways to turn them"


@pytest.mark.parametrize(
    ("options", "match"),
    [({"d_head": 7}, "got 7"), ({"d_head": 40}, "got 40"), ({"trained": 1}, "got 1"), ({"caption": " "}, "caption")],
)
def test_what_cannot_be_shown_is_refused(options: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        dial_explorer(**({"caption": "c"} | options))
