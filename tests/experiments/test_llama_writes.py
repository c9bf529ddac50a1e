"""The small Llama at the end of the road: its checkpoint is one that `tfcourse generate` loads, and its record says how it came about."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from click.testing import CliRunner

from autograder.commands.main import main
from tfcourse.pretrained import load_pretrained

RECORD = json.loads(
    (Path(__file__).parents[2] / "experiments" / "results" / "llama_writes.json").read_text(encoding="utf-8")
)


@pytest.fixture(scope="module")
def script(experiment: Callable[[str], ModuleType]) -> Any:
    return experiment("llama_writes")


def test_a_saved_model_is_loaded_with_the_same_numbers(script: Any, tmp_path: Path) -> None:
    text = script.Text()
    torch.manual_seed(0)
    model = script.model_of(text, script.GROUPS)
    script.save(model, text, tmp_path)
    tokens = text.test[:1]
    torch.testing.assert_close(load_pretrained(tmp_path)(tokens)[0], model(tokens)[0])


def test_the_recorded_command_writes_from_a_saved_folder(script: Any, tmp_path: Path) -> None:
    record = script.record(tmp_path / "my_llama", steps=2)
    arguments = shlex.split(record["generate"].replace("my_llama/", str(tmp_path / "my_llama")))[1:]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert result.output.rstrip("\n") == record["text"].rstrip("\n")
    assert record["text"].startswith(script.PROMPT)


def test_the_record_is_complete_and_the_model_has_learned(script: Any) -> None:
    assert (RECORD["command"], RECORD["steps"], RECORD["prompt"]) == (script.COMMAND, script.STEPS, script.PROMPT)
    assert RECORD["loss"] < RECORD["untrained_loss"]
    tokenizer = script.Text().tokenizer
    written = tokenizer.encode(RECORD["text"][len(script.PROMPT) :]).ids
    assert len(written) == pytest.approx(script.NEW_TOKENS, abs=3), "cut once more, a text has nearly as many tokens"
    words = set(re.findall(r"[a-z]+", script.prose().lower()))
    assert all(word in words for word in re.findall(r"[a-z]{4,}", RECORD["text"].lower())[:8]), (
        "words that one can read"
    )
