"""The recorded GPT: counts are distributions, what is examined was not read, and the record is small and complete."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from tfcourse.data import recorded_gpt
from tfcourse.gpt import Gpt, next_token_loss

RECORD = recorded_gpt()


@pytest.fixture(scope="module")
def gpt(experiment: Callable[[str], ModuleType]) -> Any:
    return experiment("gpt")


def test_counts_are_distributions_and_by_hand_what_the_rule_says(gpt: Any) -> None:
    tokens = [1, 2, 1, 2, 3]
    counts = gpt.Counts(tokens, 3)
    for before in ((), (1,), (1, 2), (9, 9)):
        assert sum(counts.probability(before, token) for token in range(gpt.V)) == pytest.approx(1)
    # Five tokens of three kinds, then behind 2 one token each of two kinds.
    alone = (2 + 3 / gpt.V) / (5 + 3)
    assert counts.probability((), 1) == pytest.approx(alone)
    assert counts.probability((2,), 1) == pytest.approx((1 + 2 * alone) / (2 + 2))
    assert gpt.Counts(tokens, 1).surprise([1]) == pytest.approx(-math.log(alone))


def test_surprise_of_a_long_text_is_that_of_its_windows(gpt: Any) -> None:
    torch.manual_seed(0)
    model = Gpt(gpt.V, gpt.WINDOW, d_model=8, n_heads=2, n_layers=1).eval()
    text = torch.randint(gpt.V, (gpt.WINDOW // 2 + 1,)).tolist()
    with torch.no_grad():
        whole = next_token_loss(model(torch.tensor([text]))[0], torch.tensor([text]))
    assert gpt.surprise(model, text) == pytest.approx(whole.item(), rel=1e-5)
    longer = torch.randint(gpt.V, (3 * gpt.WINDOW,)).tolist()
    assert math.isfinite(gpt.surprise(model, longer))


def test_a_few_steps_train_and_a_tuned_model_is_examined(gpt: Any) -> None:
    torch.manual_seed(0)
    model, seen = Gpt(gpt.V, gpt.WINDOW, d_model=8, n_heads=2, n_layers=1), []
    gpt.train(model, list(range(400)), 2, peak=1e-3, seed=0, examine=lambda step, seconds: seen.append(step))
    assert seen == [1, 2]
    small = gpt.pretrained(0, steps=1)
    for care in (False, True):
        assert 0 <= gpt.tuned(small, 32, 0, care=care) <= 1


def test_no_number_is_read_and_tested_or_tuned_on(gpt: Any) -> None:
    parts = [set(gpt.TO_READ), set(gpt.TO_TEST), set(gpt.TO_TUNE)]
    assert len(set.union(*parts)) == sum(map(len, parts))
    assert 700 * max(gpt.SEEDS) + 2 * max(gpt.LABELS) <= len(gpt.TO_TUNE)


def test_record_is_small_and_complete(gpt: Any) -> None:
    file = Path(__file__).parents[2] / "tfcourse" / "recorded" / "gpt.json"
    assert file.stat().st_size < 60_000
    assert RECORD["generated"].startswith(f"by {gpt.COMMAND};")
    assert [step for step, _, _ in RECORD["prose"]["curve"]] == list(gpt.EXAMINED)
    assert len(RECORD["scaling"]["runs"]) == len(gpt.WIDTHS)
    assert all(len(losses) == len(gpt.SEEDS) for _, _, losses in RECORD["scaling"]["runs"])
    assert list(RECORD["finetuning"]) == [str(labels) for labels in gpt.LABELS]
