"""The models that are trained to write: each saves a checkpoint that `tfcourse generate` loads."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from click.testing import CliRunner
from transformers import GPT2LMHeadModel

from autograder.commands.main import main
from tfcourse.data import recorded_writing
from tfcourse.gpt import Gpt
from tfcourse.pretrained import load_pretrained


@pytest.fixture(scope="module")
def script(experiment: Callable[[str], ModuleType]) -> Any:
    return experiment("gpt_writes")


@pytest.fixture(scope="module")
def text(script: Any) -> Any:
    return script.Text()


@pytest.fixture(scope="module")
def saved(script: Any, text: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Gpt, Path]:
    """An untrained model with weights that differ everywhere, and its folder."""
    torch.manual_seed(0)
    model = Gpt(script.V, script.T, **script.SIZES).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(std=0.1)
    folder = tmp_path_factory.mktemp("my_gpt")
    script.save(model, text, folder)
    return model, folder


def test_the_saved_folder_is_a_gpt2_to_hugging_face_and_to_us(saved: tuple[Gpt, Path], text: Any) -> None:
    model, folder = saved
    tokens = torch.tensor([text.encode(text.test[0])[:40]])
    expected = model(tokens)[0]
    torch.testing.assert_close(load_pretrained(folder, into=Gpt)(tokens)[0], expected)
    theirs = GPT2LMHeadModel.from_pretrained(folder)
    torch.testing.assert_close(theirs(tokens).logits, expected, atol=1e-4, rtol=1e-4)


def test_its_tokenizer_cuts_as_chapter_06_does(saved: tuple[Gpt, Path], text: Any) -> None:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(saved[1] / "tokenizer.json"))
    for line in text.test[:5]:
        assert tokenizer.encode(line).ids == text.encode(line)
        assert tokenizer.decode(text.encode(line)) == line


def test_counts_find_invented_words_repetitions_and_copies(script: Any, text: Any) -> None:
    line = text.read.split("\n")[0]
    assert script.counts(text, [line])["copied"] == 1
    loop = script.counts(text, ["the class object is " * 10])
    assert loop["repeated"] > 0.85
    assert script.counts(text, ["the value blorfs with quixled objects and more"])["words"] < 1


def test_the_recorded_command_loads_the_folder_and_writes(saved: tuple[Gpt, Path]) -> None:
    record = recorded_writing()
    arguments = shlex.split(record["command"].replace("my_gpt/", str(saved[1])))[1:]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert result.output.startswith(record["prompt"])


@pytest.fixture(scope="module")
def llama_script(experiment: Callable[[str], ModuleType]) -> Any:
    return experiment("llama_writes")


def test_a_saved_model_is_loaded_with_the_same_numbers(llama_script: Any, tmp_path: Path) -> None:
    text = llama_script.Text()
    torch.manual_seed(0)
    model = llama_script.model_of(text, llama_script.GROUPS)
    llama_script.save(model, text, tmp_path)
    tokens = text.test[:1]
    torch.testing.assert_close(load_pretrained(tmp_path)(tokens)[0], model(tokens)[0])


def test_the_recorded_command_of_the_llama_writes_from_a_saved_folder(llama_script: Any, tmp_path: Path) -> None:
    record = llama_script.record(tmp_path / "my_llama", steps=2)
    arguments = shlex.split(record["generate"].replace("my_llama/", str(tmp_path / "my_llama")))[1:]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert result.output.rstrip("\n") == record["text"].rstrip("\n")
    assert record["text"].startswith(llama_script.PROMPT)
