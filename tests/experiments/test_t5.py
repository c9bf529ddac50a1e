"""The recorded T5: questions that fit their texts, nothing examined that was read, and a record that is small and complete."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from tfcourse.data import BOS, EOS, UNK, recorded_t5
from tfcourse.t5 import T5, restore_spans

RECORD = recorded_t5()


@pytest.fixture(scope="module")
def t5(experiment: Callable[[str], ModuleType]) -> Any:
    return experiment("t5")


@pytest.fixture(scope="module")
def texts(t5: Any) -> Any:
    return t5.Texts()


def test_a_corrupted_text_can_be_restored(t5: Any, texts: Any) -> None:
    draws = torch.Generator().manual_seed(0)
    for text in texts.alone[:20]:
        source, target = texts.corrupted(text, draws)
        assert (source[-1], target[0], target[-1]) == (EOS, BOS, EOS)
        restored = restore_spans(torch.tensor(source[:-1]), torch.tensor(target[1:-1]), texts.sentinels)
        assert restored.tolist() == texts.vocabulary.encode(text, bos=True)


def test_nothing_is_unknown_and_nothing_examined_was_read(t5: Any, texts: Any) -> None:
    for task in t5.TASKS:
        read = {pair.source for pair in texts.train[task]}
        assert not read & {pair.source for pair in texts.test[task]}
        assert len(texts.test[task]) == t5.EXAMINED
        assert all(UNK not in texts.pair(task, pair)[0] for pair in texts.train[task][:200])


def test_a_few_steps_train_and_a_model_is_examined(t5: Any, texts: Any) -> None:
    found = t5.run(texts, 50, 0, steps_before=2, steps=2)
    assert len(found["before"]) == len(found["after"]) == 1
    assert all(0 <= share <= 1 for share in found["right"])
    torch.manual_seed(0)
    loss = t5.loss_of(T5(len(texts.vocabulary), **t5.SIZES), texts.labelled(4))
    assert loss.item() == pytest.approx(math.log(len(texts.vocabulary)), abs=1.5)


def test_record_is_small_and_complete(t5: Any, texts: Any) -> None:
    file = Path(__file__).parents[2] / "tfcourse" / "recorded" / "t5.json"
    assert file.stat().st_size < 60_000
    assert RECORD["generated"].startswith(f"by {t5.COMMAND};")
    assert RECORD["vocabulary"] == len(texts.vocabulary)
    assert list(RECORD["runs"]) == [str(labels) for labels in t5.LABELS]
    for row in RECORD["runs"].values():
        assert {name: len(runs) for name, runs in row.items()} == {"from scratch": 2, "spans first": 2}
    assert list(RECORD["beginnings"]) == [str(spread) for spread in t5.SPREADS]
