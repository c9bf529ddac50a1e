"""The recorded vocabularies: merges found again in a list of pieces, licences, and a record that is what the command says."""

from __future__ import annotations

import base64
import json
import math
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


def test_larger_vocabularies_make_longer_tokens_of_their_own_text(vocabularies: Any) -> None:
    curve = vocabularies.prose_curve("the cat sat on the mat with the other cat\n" * 3, (256, 260, 270))
    assert curve["256"] == 1
    assert curve["256"] < curve["260"] < curve["270"]


def test_every_source_has_a_version_and_a_licence_that_allows_it() -> None:
    assert {source["licence"] for source in RECORD["sources"].values()} == {"MIT", "Apache-2.0"}
    assert all(
        source["version"] and source["what"] and source["copyright"].startswith("Copyright")
        for source in RECORD["sources"].values()
    )


def test_record_is_small_and_complete(vocabularies: Any) -> None:
    file = Path(__file__).parents[2] / "tfcourse" / "recorded" / "vocabularies.json"
    assert file.stat().st_size < 60_000
    assert [cut["text"] for cut in RECORD["cuts"]] == list(vocabularies.TEXTS)
    assert list(RECORD["neighbours"]) == list(vocabularies.WORDS)
    assert RECORD["gpt2"]["glitches"][" SolidGoldMagikarp"] == 43453


def test_recorded_pieces_of_the_byte_level_models_give_the_text_back(vocabularies: Any) -> None:
    values = {name: byte for byte, name in enumerate(vocabularies._byte_names())}
    for cut in RECORD["cuts"]:
        for model in ("GPT-2", "Tekken"):
            joined = "".join(cut[model]["pieces"])
            assert bytes(values[name] for name in joined).decode("utf-8") == cut["text"]
        assert all(len(cut[model]["pieces"]) == len(cut[model]["ids"]) for model in RECORD["sizes"])


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


def test_cosines_are_cosines() -> None:
    for near in RECORD["neighbours"].values():
        cosines = [cosine for _, cosine in near]
        assert cosines == sorted(cosines, reverse=True)
        assert all(0 < cosine < 1 and math.isfinite(cosine) for cosine in cosines)
