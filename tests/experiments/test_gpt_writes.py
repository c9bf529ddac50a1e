"""The GPT that lessons 07 and 09 show: its folder is a GPT-2 to other libraries, and its record is that of the script."""

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

RECORD = recorded_writing()


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


def test_the_recorded_command_loads_the_folder_and_writes(saved: tuple[Gpt, Path]) -> None:
    arguments = shlex.split(RECORD["command"].replace("my_gpt/", str(saved[1])))[1:]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert result.output.startswith(RECORD["prompt"])


def test_test_paragraphs_are_not_read(text: Any) -> None:
    assert len(text.test) > 50
    assert not any(line in text.read for line in text.test)


def test_counts_find_invented_words_repetitions_and_copies(script: Any, text: Any) -> None:
    line = text.read.split("\n")[0]
    assert script.counts(text, [line])["copied"] == 1
    loop = script.counts(text, ["the class object is " * 10])
    assert loop["repeated"] > 0.85
    assert script.counts(text, ["the value blorfs with quixled objects and more"])["words"] < 1


def test_the_record_is_that_of_the_script(script: Any) -> None:
    assert (RECORD["generated"], RECORD["steps"], RECORD["prompt"]) == (script.COMMAND, script.STEPS, script.PROMPT)
    for key in ("p_greedy", "p_real"):
        assert RECORD[key] == sorted(RECORD[key], reverse=True)
    assert list(RECORD["settings"]) == list(script.SETTINGS)
    assert len(RECORD["p_greedy"]) == len(RECORD["p_real"]) == 101
    assert RECORD["text"].startswith(RECORD["prompt"])
