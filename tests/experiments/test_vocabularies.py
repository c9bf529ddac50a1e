"""The recorded vocabularies: merges found again in a list of pieces, licences, and a record that is what the command says."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from tfcourse.data import gpt2_merges, recorded_vocabularies
from tfcourse.tokenization import bpe_encode, byte_characters, encode_text

RECORD = recorded_vocabularies()


@pytest.fixture(scope="module")
def vocabularies(experiment: Callable[[str], ModuleType]) -> Any:
    return experiment("vocabularies")


def test_merges_are_found_again_in_a_list_of_pieces(vocabularies: Any, tmp_path: Path) -> None:
    pieces = [bytes([byte]) for byte in range(256)] + [b"lo", b"low", b" l", b"er", b" low"]
    lines = [f"{base64.b64encode(piece).decode()} {rank}" for rank, piece in enumerate(pieces)]
    (tmp_path / "some.tiktoken").write_text("\n".join(lines) + "\n")
    ranks = vocabularies.tiktoken_ranks(tmp_path / "some.tiktoken")
    merges = vocabularies.recovered_merges(ranks)
    assert merges == [("l", "o"), ("lo", "w"), ("Ġ", "l"), ("e", "r"), ("Ġ", "low")]
    assert vocabularies.byte_level(ranks, merges).encode("low lower").tokens == ["low", "Ġlow", "er"]


def test_a_piece_that_no_merge_makes_is_refused(vocabularies: Any) -> None:
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"low": 256}
    with pytest.raises(ValueError, match=r"b'low' does not come from a merge"):
        vocabularies.recovered_merges(ranks)


def test_neighbours_are_other_words_by_the_cosine(vocabularies: Any) -> None:
    names = ["▁dog", "▁Dog", "▁cat", "dogs", "▁tree", "▁x"]
    weights = torch.tensor([[1.0, 0.0], [9.0, 0.0], [3.0, 4.0], [1.0, 0.1], [0.0, 2.0], [1.0, 0.2]])
    near = vocabularies.neighbours(weights, {name: place for place, name in enumerate(names)}, ["dog"])
    assert near == {"dog": [("cat", 0.6), ("tree", 0.0)]}


def test_recorded_merges_are_the_whole_of_gpt2() -> None:
    merges = gpt2_merges()
    vocabulary = [*sorted(byte_characters()), *("".join(pair) for pair in merges)]
    assert len(vocabulary) == len(set(vocabulary)) == RECORD["sizes"]["GPT-2"] - 1
    assert bpe_encode("Ġstrawberry", merges) == ["Ġstrawberry"]
    for cut in RECORD["cuts"]:
        assert encode_text(cut["text"], vocabulary, merges) == cut["GPT-2"]["ids"]


def test_pair_with_the_smallest_rank_is_merged_first(vocabularies: Any, tmp_path: Path) -> None:
    pieces = [*(bytes([byte]) for byte in range(256)), b"bc", b"ab", b"xyz", b"unused"]
    listed = [{"rank": rank, "token_bytes": base64.b64encode(piece).decode()} for rank, piece in enumerate(pieces)]
    config = {"pattern": r" ?\w+", "default_vocab_size": 261, "default_num_special_tokens": 2}
    (tmp_path / "tekken.json").write_text(json.dumps({"config": config, "vocab": listed}))
    tekken = vocabularies.Tekken(tmp_path / "tekken.json")
    assert tekken.size == 261
    assert tekken.encode("abc") == {"pieces": ["a", "bc"], "ids": [99, 258]}
    assert tekken.encode("xyz xyz")["pieces"] == ["xyz", "Ġ", "x", "y", "z"], "a piece that is a token stays whole"
