"""The sampler explorer's record: normal logits in order and every sampler of the course that needs no text."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch

from tfcourse import sampling
from tfcourse.lessons.explorers.samplers import SAMPLERS, sampler_explorer

from .examples import data_of, tables_of

LOGITS = torch.tensor([1.0, 3.0, 2.0, -4.0])
WORDS = ["b", "d", "c", "a"]


def told(**options: Any) -> dict[str, Any]:
    return data_of(sampler_explorer({"one": (WORDS, LOGITS)}, caption="c", **options))


def test_tokens_come_in_order_with_logarithms_of_probabilities() -> None:
    data = told()
    assert data["tokens"] == [["d", "c", "b", "a"]]
    assert sum(torch.tensor(data["logits"][0]).exp()) == pytest.approx(1, abs=1e-4)
    assert data["logits"][0] == sorted(data["logits"][0], reverse=True)


def test_its_samplers_are_those_of_the_course_that_need_no_text_with_their_settings() -> None:
    without_text = {
        name
        for name in sampling.__all__
        if "tokens" not in (parameters := inspect.signature(getattr(sampling, name)).parameters)
        and "mu" not in parameters
    }
    assert set(SAMPLERS) == without_text
    for name, (_, settings) in SAMPLERS.items():
        assert set(settings) <= set(inspect.signature(getattr(sampling, name)).parameters)
        for least, most, step, start in settings.values():
            assert least <= start <= most
            assert step > 0


def test_the_chain_has_a_value_for_every_setting() -> None:
    assert told(chain=[("quadratic", {"factor": 0.5})])["chain"] == [["quadratic", {"factor": 0.5, "curve": 1.0}]]


def test_the_table_has_the_models_probabilities() -> None:
    (table,) = tables_of(sampler_explorer({"one": (WORDS, LOGITS)}, caption="c"))
    best = torch.softmax(LOGITS, 0).sort(descending=True).values
    assert [float(row[1]) for row in table[1:]] == pytest.approx(best.tolist(), abs=5.1e-5)
