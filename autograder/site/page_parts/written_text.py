"""What the course's small Llama wrote, with the commands that made it write: read from the record of that run, never typed into a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive

RECORD = Path("experiments", "results", "llama_writes.json")


class WrittenText(Directive):  # type: ignore[misc] # docutils has no types
    """The directive ``{written-text}``: how the recorded model was trained, the command, and its text."""

    def run(self) -> list[nodes.Node]:
        """Return a paragraph and two blocks."""
        env = self.state.document.settings.env
        path = Path(env.srcdir) / RECORD
        env.note_dependency(str(path))
        return written(json.loads(path.read_text(encoding="utf-8")))


def written(record: dict[str, Any]) -> list[nodes.Node]:
    """Return a record as nodes.

    Args:
        record: what ``experiments/llama_writes.py`` wrote: commands, sizes, losses in nats per token, and the text.
    """
    training = (
        f"The first command trains a Llama of {record['parameters']:,} parameters for {record['steps']:,} steps on Python's language "
        f"reference, in a vocabulary of byte pairs, and saves it as a checkpoint. On text that it has not read, its loss fell from "
        f"{record['untrained_loss']:.2f} to {record['loss']:.2f} nats per token. The second command lets it write:"
    )
    # A reader trains their own, and has no record to renew.
    commands = f"{record['command'].partition(' --record')[0]}\n{record['generate']}"
    note = "This is what that run wrote. It is sampled text of a very small model: read its words and phrases, not its statements."
    return [
        nodes.paragraph("", training),
        nodes.literal_block(commands, commands, language="shell"),
        nodes.paragraph("", note),
        nodes.literal_block(record["text"], record["text"], language="none", classes=["tfc-written"]),
    ]
