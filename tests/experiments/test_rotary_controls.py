"""The recorded controls of rotary positions: complete, and with the slow pairs alone held still."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from tfcourse.rotary import rotary_frequencies

RESULTS = Path(__file__).parents[2] / "experiments" / "results" / "rotary_controls.json"


@pytest.fixture(scope="module")
def controls(experiment: Callable[[str], ModuleType]) -> Any:
    return experiment("rotary_controls")


def test_record_has_a_loss_for_every_length(controls: Any) -> None:
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    for name in ("all pairs", "fast pairs", "continued at 64"):
        assert len(found[name]) == len(controls.LENGTHS)


def test_fast_pairs_are_those_that_turn_within_a_training_text(controls: Any) -> None:
    frequencies = rotary_frequencies(controls.D // controls.H)
    turns = frequencies * (controls.TRAINED - 1) / (2 * torch.pi)
    assert int((turns >= 1).sum()) == controls.FAST


def test_continued_training_has_as_many_characters_as_the_fine_tuning(controls: Any) -> None:
    steps = controls.TUNING[0] * controls.TUNED // controls.TRAINED
    assert steps * controls.TRAINED == controls.TUNING[0] * controls.TUNED
