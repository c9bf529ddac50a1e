"""The lookup explorer's table is that of the soft lookup that the lesson computes."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest
import torch

from tfcourse.attention import soft_lookup
from tfcourse.lessons.explorers.lookups import LookupExplorer, lookup_explorer

NAMES = ["gale", "breeze", "calm"]
KEYS = torch.tensor([[2.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, -1.0]])
QUERY = math.log(2) * torch.tensor([1.0, 1.0, 1.0, 0.0])
VALUES = torch.tensor([4.2, 2.1, -1.0])


def shown(**options: Any) -> LookupExplorer:
    given = {
        "names": NAMES,
        "scores": KEYS @ QUERY,
        "values": VALUES,
        "answer": "Forecast",
        "unit": "m",
        "caption": "c",
    }
    return lookup_explorer(**(given | options))


def test_answers_are_those_of_a_soft_lookup_whose_query_is_multiplied() -> None:
    told = re.findall(r"c = ([\d.]+): Forecast (-?[\d.]+) m", shown().plain())
    expected = [soft_lookup(c * QUERY, KEYS, VALUES[:, None]).item() for c in (0.0, 0.5, 1.0, 4.0)]
    assert [float(c) for c, _ in told] == [0, 0.5, 1, 4]
    assert [float(answer) for _, answer in told] == pytest.approx(expected, abs=0.0051)


def test_weights_of_the_table_sum_to_one_and_the_last_row_is_the_hard_choice() -> None:
    cells = [float(cell) for cell in re.findall(r"<td[^>]*>([\d.]+)</td>", shown(largest=40.0).plain())]
    rows = [cells[at : at + 3] for at in range(0, 12, 3)]
    assert [sum(row) for row in rows] == pytest.approx([1] * 4, abs=0.011)
    assert rows[0] == [0.33] * 3
    assert rows[-1] == [1.0, 0.0, 0.0]


def test_json_holds_what_the_script_computes_with() -> None:
    data = json.loads(shown(scores=(KEYS @ QUERY).half().requires_grad_()).to_json())
    assert data["names"] == NAMES
    assert data["scores"] == pytest.approx((KEYS @ QUERY).tolist(), abs=2e-3)
    assert data["values"] == pytest.approx(VALUES.tolist())
    assert (data["answer"], data["unit"], data["largest"]) == ("Forecast", "m", 4.0)


def test_numbers_without_a_unit_end_with_the_number() -> None:
    assert "c = 0: Forecast 1.77<" in shown(unit="").plain()


def test_text_form_says_what_there_is_to_see() -> None:
    assert repr(shown(caption="How?")) == "LookupExplorer: gale, breeze, calm; c from 0 to 4. How?"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"names": []}, "at least one"),
        ({"names": ["a", "b"]}, r"each of 2 pages.*\(3,\)"),
        ({"scores": torch.ones(1, 3)}, r"\(1, 3\)"),
        ({"values": torch.tensor([1.0, math.inf, 0.0])}, "finite"),
        ({"scores": torch.tensor([1.0, math.nan, 0.0])}, "finite"),
        ({"largest": 1.0}, "largest=1.0"),
        ({"largest": math.inf}, "largest=inf"),
        ({"names": ["a", " ", "c"]}, "a name for each page"),
        ({"answer": ""}, "a word for its answer"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_values(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        shown(**options)
