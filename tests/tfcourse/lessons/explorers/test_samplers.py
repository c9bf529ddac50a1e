"""The sampler explorer's record: normal logits in order, every sampler of the course that needs no text, and what is refused."""

from __future__ import annotations

import inspect
import json
from typing import Any

import pytest
import torch

from tfcourse import sampling
from tfcourse.lessons.explorers.samplers import SAMPLERS, sampler_explorer

LOGITS = torch.tensor([1.0, 3.0, 2.0, -4.0])
WORDS = ["b", "d", "c", "a"]


def told(**options: Any) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(sampler_explorer({"one": (WORDS, LOGITS)}, caption="c", **options).to_json())
    return data


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
    page = sampler_explorer({"one": (WORDS, LOGITS)}, caption="c").plain()
    assert f"<td>{torch.softmax(LOGITS, 0)[1]:.4f}</td>" in page


@pytest.mark.parametrize(
    ("distributions", "chain", "complaint"),
    [
        ({}, [], "at least one"),
        ({"x": (WORDS, LOGITS[:3])}, [], r"\(3,\)"),
        ({"x": (WORDS[:2], LOGITS[:2])}, [], "at least 3"),
        ({"x": (WORDS, LOGITS / 0)}, [], "finite"),
        ({"x": (WORDS, LOGITS)}, [("top_q", {})], "'top_q'"),
        ({"x": (WORDS, LOGITS)}, [("top_p", {"k": 1})], "got k"),
        ({"x": (WORDS, LOGITS)}, [("top_p", {"p": 2})], "got 2"),
        ({"x": (WORDS, LOGITS)}, [("top_p", {}), ("top_p", {})], "once"),
    ],
)
def test_what_cannot_be_shown_is_refused(distributions: Any, chain: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        sampler_explorer(distributions, chain=chain, caption="c")
