"""The recorded grouped queries: nothing examined that was read, models that differ in their heads of keys alone, and a complete record."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from tfcourse.data import recorded_grouped_queries

RECORD = recorded_grouped_queries()


@pytest.fixture(scope="module")
def queries(experiment: Callable[[str], ModuleType]) -> Any:
    return experiment("grouped_queries")


@pytest.fixture(scope="module")
def text(queries: Any) -> Any:
    return queries.Text()


def test_examined_text_is_what_comes_after_the_trained_one(queries: Any, text: Any) -> None:
    assert len(text.train) == queries.TRAIN_CHARACTERS
    assert text.test.shape == (queries.EXAMINED // queries.LENGTH, queries.LENGTH)
    assert text.batch(torch.Generator().manual_seed(0)).shape == (queries.BATCH, queries.LENGTH)


def test_models_differ_in_their_heads_of_keys_alone(queries: Any, text: Any) -> None:
    shapes = [
        {name: tuple(parameter.shape) for name, parameter in queries.model_of(text, groups).named_parameters()}
        for groups in queries.GROUPS
    ]
    for groups, found in zip(queries.GROUPS, shapes, strict=True):
        differing = {name.rsplit(".", 2)[-2] for name in found if found[name] != shapes[0][name]}
        assert differing == (set() if groups == queries.H else {"k_proj", "v_proj"})
        assert found["layers.0.self_attention.k_proj.weight"] == (groups * queries.D // queries.H, queries.D)


def test_a_converted_model_keeps_all_weights_but_those_of_keys_and_values(queries: Any, text: Any) -> None:
    torch.manual_seed(0)
    many = queries.model_of(text, queries.H)
    before = {name: weight.clone() for name, weight in many.state_dict().items()}
    for way in queries.WAYS:
        few = queries.converted(many, text, 2, way).state_dict()
        for name, weight in few.items():
            assert weight.shape[0] == (16 if "k_proj" in name or "v_proj" in name else before[name].shape[0])
            if weight.shape == before[name].shape:
                assert torch.equal(weight, before[name])
    assert all(torch.equal(weight, before[name]) for name, weight in many.state_dict().items())
    weight = before["layers.0.self_attention.k_proj.weight"]
    first = queries.first_of(weight, 8, 2)
    assert torch.equal(first, torch.cat([weight[:8], weight[32:40]]))


def test_a_few_steps_train_and_a_model_is_examined(queries: Any, text: Any) -> None:
    torch.manual_seed(0)
    model = queries.model_of(text, 2)
    untrained = queries.examined(model, text)
    assert untrained == pytest.approx(math.log(len(text.characters)), abs=0.5), "an even guess"
    queries.train(model, text, steps=3, seed=0, rate=queries.RATE)
    assert queries.examined(model, text) < untrained


def test_record_is_small_and_complete(queries: Any) -> None:
    file = Path(__file__).parents[2] / "tfcourse" / "recorded" / "grouped_queries.json"
    assert file.stat().st_size < 5_000
    assert RECORD["command"] == queries.COMMAND
    assert (RECORD["steps"], RECORD["tuning"]) == (queries.STEPS, queries.TUNING)
    assert set(RECORD["losses"]) == {str(groups) for groups in queries.GROUPS}
    assert set(RECORD["conversion"]) == {f"{way} {few}" for way in queries.WAYS for few in (2, 1)}
    for found in (*RECORD["losses"].values(), *RECORD["conversion"].values()):
        assert len(found) == len(queries.SEEDS)
    assert all(at_once > tuned for runs in RECORD["conversion"].values() for at_once, tuned in runs)
