"""The recorded BERT: texts to read, to tune and to test on are different ones, and the record is small and complete."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from tfcourse.data import recorded_bert

RECORD = recorded_bert()


@pytest.fixture(scope="module")
def bert(experiment: Callable[[str], ModuleType]) -> Any:
    return experiment("bert")


def test_no_number_is_read_and_tested_or_tuned_on(bert: Any) -> None:
    parts = [set(bert.TO_READ), set(bert.TO_TEST), set(bert.TO_TUNE)]
    assert len(set.union(*parts)) == sum(map(len, parts)) == 26_000
    assert 700 * max(bert.SEEDS) + 2 * max(bert.LABELS) <= len(bert.TO_TUNE)


def test_a_few_steps_lower_the_loss_and_find_replaced_tokens(bert: Any) -> None:
    torch.manual_seed(0)
    model, head, seconds = bert.pretrain(0, steps=2)
    assert seconds > 0
    assert 0 <= bert.tuned(model, 32, 0) <= 1
    sets = bert.guesses(model, head, 342)
    assert [len(gaps) for gaps in sets] == [bin(number).count("1") for number in range(32)]
    _, share, _ = bert.pretrain_electra(0, steps=2)
    assert 0 < share < 0.3


def test_record_is_small_and_complete(bert: Any) -> None:
    file = Path(__file__).parents[2] / "tfcourse" / "recorded" / "bert.json"
    assert file.stat().st_size < 60_000
    assert RECORD["generated"].startswith(f"by {bert.COMMAND};")
    assert list(RECORD["finetuning"]) == [str(labels) for labels in bert.LABELS]
    assert all(len(runs) == len(bert.SEEDS) for row in RECORD["finetuning"].values() for runs in row.values())
    assert [gap["number"] for gap in RECORD["gaps"]] == list(bert.SHOWN)
    assert RECORD["vocabulary"] == list(bert.NAMES.vocabulary.tokens)


def test_every_gap_has_the_hidden_word_among_its_guesses() -> None:
    for gap in RECORD["gaps"]:
        for number, gaps in enumerate(gap["guesses"]):
            hidden = [token for place, token in enumerate(gap["tokens"]) if number >> place & 1]
            for token, guess in zip(hidden, gaps, strict=True):
                shares = dict(guess)
                assert token in shares
                assert sum(shares.values()) < 1.01
