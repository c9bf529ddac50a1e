"""The lookup explorer's table is that of the soft lookup that the lesson computes."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
import torch

from tfcourse.attention import soft_lookup
from tfcourse.lessons.explorers.lookups import LookupExplorer, lookup_explorer

from .examples import data_of, tables_of

NAMES = ["gale", "breeze", "calm"]
KEYS = torch.tensor([[2.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, -1.0]])
QUERY = math.log(2) * torch.tensor([1.0, 1.0, 1.0, 0.0])
VALUES = torch.tensor([4.2, 2.1, -1.0])


def shown(scores: torch.Tensor = KEYS @ QUERY, **options: Any) -> LookupExplorer:
    return lookup_explorer(NAMES, scores, VALUES, answer="Forecast", caption="c", **options)


@pytest.mark.parametrize("unit", ["m", ""])
def test_weights_and_answers_are_those_of_a_soft_lookup_whose_query_is_multiplied(unit: str) -> None:
    (table,) = tables_of(shown(unit=unit, largest=40.0))
    for (first, *weights), c in zip(table[1:], (0.0, 0.5, 1.0, 40.0), strict=True):
        setting, answer = map(float, re.findall(r"-?[\d.]+", first))
        assert (setting, first.endswith(unit or first[-1])) == (c, True)
        assert answer == pytest.approx(soft_lookup(c * QUERY, KEYS, VALUES[:, None]).item(), abs=0.0051)
        expected = torch.softmax(c * KEYS @ QUERY, 0).tolist()
        assert [float(weight) for weight in weights] == pytest.approx(expected, abs=0.0051)


def test_json_holds_what_the_script_computes_with() -> None:
    data = data_of(shown((KEYS @ QUERY).half().requires_grad_(), unit="m"))
    assert data["names"] == NAMES
    assert data["scores"] == pytest.approx((KEYS @ QUERY).tolist(), abs=2e-3)
    assert data["values"] == pytest.approx(VALUES.tolist())
    assert (data["answer"], data["unit"], data["largest"]) == ("Forecast", "m", 4.0)
