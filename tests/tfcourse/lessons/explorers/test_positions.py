"""The position explorer's numbers are those of the matrices."""

import math

import pytest
import torch
from torch import Tensor

from tfcourse.lessons.explorers.positions import position_explorer
from tfcourse.positions import sinusoidal_positions

from .examples import data_of, tables_of


def encodings(n: int = 6, D: int = 4) -> dict[str, Tensor]:
    drawn = torch.randn(n, D, generator=torch.Generator().manual_seed(0))
    return {"Sinusoids": sinusoidal_positions(n, D), "Drawn": drawn}


def test_json_holds_the_matrices_rounded_to_four_decimals() -> None:
    data = data_of(position_explorer(encodings(), caption="c", start=(1, 5)))
    assert data["start"] == {"first": 1, "second": 5}
    for shown, (name, matrix) in zip(data["encodings"], encodings().items(), strict=True):
        assert shown["name"] == name
        torch.testing.assert_close(torch.tensor(shown["rows"]), matrix, atol=5.1e-5, rtol=0)


def test_table_of_sinusoids_has_one_dot_product_a_distance_and_that_of_others_has_not() -> None:
    distances, _, drawn, _ = tables_of(position_explorer(encodings(40, 32), caption="c"))
    for k, (distance, low, high) in enumerate(distances[1:]):
        value = sum(math.cos(k / 10_000 ** (2 * i / 32)) for i in range(16))
        assert [int(distance), float(low), float(high)] == pytest.approx([k, value, value], abs=0.006)
    assert len(distances) == 1 + 40
    assert float(drawn[1][1]) < float(drawn[1][2]) - 5
