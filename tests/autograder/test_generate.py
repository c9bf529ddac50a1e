"""`tfcourse generate`: what chapter 09's loop writes, from a folder, by text or by numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    T5Config,
    T5ForConditionalGeneration,
    ViTConfig,
    ViTModel,
)

from autograder.commands.main import main
from tfcourse.gpt import generate
from tfcourse.pretrained import load_pretrained

WORDS = {"<unk>": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5}


def made(name: str) -> PreTrainedModel:
    torch.manual_seed(0)
    small = {
        "vocab_size": 6,
        "hidden_size": 8,
        "intermediate_size": 12,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    }
    models_ = {
        "gpt2": lambda: GPT2LMHeadModel(
            GPT2Config(
                vocab_size=6, n_positions=16, n_embd=8, n_layer=1, n_head=2, eos_token_id=None, bos_token_id=None
            )
        ),
        "llama": lambda: LlamaForCausalLM(LlamaConfig(**small, eos_token_id=None, bos_token_id=None)),
        "t5": lambda: T5ForConditionalGeneration(
            T5Config(
                vocab_size=6,
                d_model=8,
                d_kv=4,
                d_ff=12,
                num_layers=1,
                num_heads=2,
                eos_token_id=5,
                decoder_start_token_id=0,
            )
        ),
        "bert": lambda: BertModel(BertConfig(**small)),
        "vit": lambda: ViTModel(
            ViTConfig(
                hidden_size=8,
                intermediate_size=12,
                num_hidden_layers=1,
                num_attention_heads=2,
                image_size=8,
                patch_size=4,
            )
        ),
    }
    model = models_[name]().eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(std=0.5)
    return model


@pytest.fixture
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    made(request.param).save_pretrained(tmp_path / "it")
    tokenizer = Tokenizer(models.WordLevel(WORDS, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "it" / "tokenizer.json"))
    return tmp_path / "it"


def run(*words: object) -> Result:
    return CliRunner().invoke(main, ["generate", *map(str, words)])


@pytest.mark.parametrize("folder", ["gpt2", "llama"], indirect=True)
def test_text_goes_on_as_the_loop_of_chapter_09_writes_it(folder: Path) -> None:
    expected = generate(load_pretrained(folder), torch.tensor([[1, 2]]), max_new_tokens=5, greedy=True)[0].tolist()
    by_text = run(folder, "one two", "--greedy", "--new-tokens", 5)
    assert by_text.exit_code == 0
    assert by_text.output.split() == [list(WORDS)[token] for token in expected]
    by_numbers = run(folder, "--ids", "1,2", "--greedy", "--new-tokens", 5, "--json")
    assert json.loads(by_numbers.output)["tokens"] == expected


@pytest.mark.parametrize("folder", ["gpt2", "t5"], indirect=True)
def test_a_seed_draws_one_text_and_samplers_are_obeyed(folder: Path) -> None:
    words = (folder, "--ids", "1 2", "--new-tokens", 12, "--json")
    texts = {seed: run(*words, "--seed", seed, "--temperature", 2).output for seed in range(4)}
    assert run(*words, "--seed", 0, "--temperature", 2).output == texts[0]
    assert len(set(texts.values())) > 1
    assert run(*words, "--top-k", 1).output == run(*words, "--greedy").output == run(*words, "--top-p", 1e-6).output


@pytest.mark.parametrize("folder", ["t5"], indirect=True)
def test_t5_answers_as_hugging_face_does(folder: Path) -> None:
    theirs = made("t5").generate(
        torch.tensor([[1, 2, 3]]), attention_mask=torch.ones(1, 3), max_new_tokens=8, do_sample=False, pad_token_id=0
    )
    expected = theirs[0, 1:].tolist()
    expected = expected[: expected.index(5)] if 5 in expected else expected
    assert (
        json.loads(run(folder, "--ids", "1,2,3", "--greedy", "--new-tokens", 8, "--json").output)["tokens"] == expected
    )


@pytest.mark.parametrize("folder", ["gpt2"], indirect=True)
def test_wrong_input_ends_with_2_and_says_what_to_do(folder: Path) -> None:
    refusals = [
        ((folder,), "--ids"), ((folder, "one", "--ids", "1"), "--ids"), ((folder, "--ids", "one"), "integers"), ((folder, ""), "tokens"),
        ((folder, "--ids", "6"), "0 and 5"), ((folder, "one", "--temperature", 0), "temperature"),
        ((folder, "one", "--new-tokens", 30), "16"), ((folder / "none", "one"), "none"), ((folder, "one"), "tokenizer"),
    ]  # fmt: skip
    for words, says in refusals:
        if words == (folder, "one"):
            (folder / "tokenizer.json").write_text("{", encoding="utf-8")
        result = run(*words)
        assert result.exit_code == 2, result.output
        assert says in result.output
    (folder / "tokenizer.json").unlink()
    assert "--ids 3,1,4" in run(folder, "one").output


@pytest.mark.parametrize("folder", ["bert", "vit"], indirect=True)
def test_models_that_write_no_text_are_refused(folder: Path) -> None:
    result = run(folder, "one")
    assert result.exit_code == 2
    assert "generate" in result.output
