"""What the Llama wrote comes from its record, and the page says so."""

from __future__ import annotations

import json
from pathlib import Path

from autograder.site.front_page.facts import RECORD, record_nodes

ROOT = Path(__file__).parents[2]


def test_text_and_commands_are_those_of_the_record() -> None:
    record = {
        "command": "python train.py --record results.json",
        "generate": "tfcourse generate folder/ x",
        "parameters": 1234,
        "steps": 2000,
        "untrained_loss": 4.567,
        "loss": 1.234,
        "text": "The with <statement>",
    }
    training, commands, note, text = record_nodes(record)
    assert "1,234 parameters for 2,000 steps" in training.astext()
    assert "from 4.57 to 1.23 nats" in training.astext()
    assert commands.astext().splitlines() == ["python train.py", "tfcourse generate folder/ x"]
    assert "sampled" in note.astext()
    assert text.astext() == "The with <statement>"


def test_the_page_holds_no_text_of_its_own() -> None:
    page = (ROOT / "book" / "road.md").read_text(encoding="utf-8")
    record = json.loads((ROOT / RECORD).read_text(encoding="utf-8"))
    assert "```{written-text}\n```" in page
    assert record["text"][len(record["prompt"]) :][:40] not in page
