"""What a published BERT makes of words and sentences: texts that are what they should be, and measures that measure what they say.

That the record is what the command finds is tested in tests/tfcourse/test_published_weights.py, which has the weights.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from tfcourse.data import recorded_sentence_vectors

RECORD = recorded_sentence_vectors()


@pytest.fixture(scope="module")
def script(experiment: Callable[[str], ModuleType]) -> Any:
    return experiment("sentence_vectors")


def test_every_sentence_has_its_word_and_the_control_word_and_senses_are_equally_long(script: Any) -> None:
    for word, senses in script.SENSES.items():
        assert [len(sense) for sense in senses.values()] == [4, 4]
        for text in (text for sense in senses.values() for text in sense):
            words = re.findall(r"[a-z]+", text.lower())
            assert words.count(word) == 1, text
            assert "the" in words, text


def test_questions_are_answered_by_entries_of_the_glossary_and_all_are_recorded(script: Any) -> None:
    entries = script.glossary()
    assert len(entries) == RECORD["search"]["entries"]
    assert "word" not in entries
    assert [(one["question"], one["answer"]) for one in RECORD["search"]["questions"]] == list(script.QUESTIONS)
    for one in RECORD["search"]["questions"]:
        assert one["answer"] in entries
        assert {entry for entry, _ in one["best"]} <= set(entries), "the glossary has changed: run the command again"


def test_a_vector_is_compared_with_its_kind_and_with_the_other(script: Any) -> None:
    vectors = torch.tensor([[1.0, 0.0], [2.0, 0.1], [0.0, 1.0], [0.1, 3.0], [9.0, 1.0]])
    found = script.compared(vectors, [0, 0, 1, 1, 1])
    of = torch.nn.functional.cosine_similarity(vectors[:, None], vectors[None], dim=-1)
    assert found["within"] == pytest.approx((of[0, 1] + of[2, 3] + of[2, 4] + of[3, 4]).item() / 4, abs=1e-3)
    assert found["between"] == pytest.approx(of[:2, 2:].mean().item(), abs=1e-3)
    assert found["nearest"] == 4, "the last lies nearest to the second, which is of the other kind"


def test_measures_of_a_head_are_known_for_three_patterns(script: Any) -> None:
    before = torch.eye(4).roll(-1, dims=1)  # each query looks at the token before it, the first at the last
    even = torch.full((4, 4), 0.25)
    first = torch.tensor([1.0, 0, 0, 0]).expand(4, 4)
    found = dict(zip(script.MEASURES, script.measured(torch.stack([before, even, first])[None]), strict=True))
    assert {name: found[name].mean(dim=-1)[0].tolist() for name in script.MEASURES} == {
        "previous": [1.0, 0.25, pytest.approx(1 / 3)],
        "next": [0.0, 0.25, 0.0],
        "[CLS]": [0.25, 0.25, 1.0],
        "[SEP]": [0.25, 0.25, 0.0],
        "self": [0.0, 0.25, 0.25],
        "entropy": pytest.approx([0.0, 1.0, 0.0]),
    }


def test_other_weights_are_refused(script: Any, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    with pytest.raises(ValueError, match="published"):
        script.record(tmp_path)
