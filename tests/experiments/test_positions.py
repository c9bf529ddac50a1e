"""The recorded positions: nothing examined that was read, six kinds that run at every length, and a record that is small and complete."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from tfcourse.data import recorded_positions

RECORD = recorded_positions()


@pytest.fixture(scope="module")
def positions(experiment: Callable[[str], ModuleType]) -> Any:
    return experiment("positions")


@pytest.fixture(scope="module")
def text(positions: Any) -> Any:
    return positions.Text()


def test_examined_text_is_what_comes_after_the_trained_one(positions: Any, text: Any) -> None:
    assert len(text.train) == positions.TRAIN_CHARACTERS
    assert len(text.test) == positions.EXAMINED + 1
    for length in positions.LENGTHS:
        inputs, targets = text.examination(length)
        assert inputs.shape == targets.shape == (positions.EXAMINED // length, length)
        assert torch.equal(inputs[:, 1:], targets[:, :-1])


@pytest.mark.parametrize("kind", ["none", "sinusoidal", "shaw", "t5", "alibi", "rotary"])
def test_every_kind_looks_back_only_and_begins_with_an_even_guess(positions: Any, text: Any, kind: str) -> None:
    torch.manual_seed(0)
    model = positions.Reader(len(text.characters), kind)
    tokens = text.batch(96, 2, torch.Generator().manual_seed(0))[:, :-1]
    changed = tokens.clone()
    changed[:, 50:] = (changed[:, 50:] + 1) % len(text.characters)
    with torch.no_grad():
        torch.testing.assert_close(model(tokens)[:, :50], model(changed)[:, :50], atol=1e-4, rtol=1e-4)
        assert model(tokens).log_softmax(-1).mean().item() == pytest.approx(-math.log(len(text.characters)), abs=0.6)


def test_a_few_steps_train(positions: Any, text: Any) -> None:
    torch.manual_seed(0)
    model = positions.Reader(len(text.characters), "rotary")
    before = positions.losses(model, text, 64)[0]
    positions.train(model, text, steps=8, length=64, seed=0, rate=positions.RATE)
    assert positions.losses(model, text, 64)[0] < before - 0.5


def test_the_other_pairing_changes_the_loss_and_leaves_the_model(positions: Any, text: Any) -> None:
    torch.manual_seed(0)
    model = positions.Reader(len(text.characters), "rotary")
    before = positions.losses(model, text, 64, bins=8)
    assert positions.other_pairing(model, text) != before
    assert positions.losses(model, text, 64, bins=8) == before


def test_record_is_small_and_complete(positions: Any) -> None:
    file = Path(__file__).parents[2] / "tfcourse" / "recorded" / "positions.json"
    assert file.stat().st_size < 20_000
    assert RECORD["generated"].startswith(f"by {positions.COMMAND};")
    assert RECORD["lengths"] == list(positions.LENGTHS)
    assert set(RECORD["curves"]) == set(RECORD["by place"]) == set(positions.KINDS)
    for curves in RECORD["curves"].values():
        assert [len(curve) for curve in curves] == [len(positions.LENGTHS)] * len(positions.SEEDS)
    assert [{name: len(stretches) for name, stretches in run.items()} for run in RECORD["pairings"]] == [
        {"trained": 8, "other": 8} for _ in positions.SEEDS
    ]
    ways = {"as it is", "squeezed to a quarter", "base for factor 4", "base for factor 8"}
    ways |= {"squeezed, tuned", "tuned", "squeezed, tuned longer", "tuned longer"}
    assert [set(found) for found in RECORD["stretched"]] == [ways] * len(positions.SEEDS)
