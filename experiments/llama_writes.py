"""Train a small Llama, save it as a published checkpoint is, and record what it writes: what the end of the road shows.

    python experiments/llama_writes.py --folder my_llama --record experiments/results/llama_writes.json

It learns the language reference of Python in a vocabulary of 1,024 byte pairs, so that words are made of few tokens. Some two minutes
on one core. Afterwards the folder is a checkpoint like any other:

    tfcourse generate my_llama/ "The with statement" --new-tokens 80 --top-p 0.8 --seed 1
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from grouped_queries import BATCH, LENGTH, RATE, TRAIN_CHARACTERS, train
from safetensors.torch import save_file
from tokenizers import ByteLevelBPETokenizer
from torch import Tensor

from autograder.commands.generate_text import generate_text, make_sampler
from tfcourse.data import prose
from tfcourse.gpt import next_token_loss
from tfcourse.llama import Llama
from tfcourse.pretrained import hugging_face_names

COMMAND = "python experiments/llama_writes.py --folder my_llama --record experiments/results/llama_writes.json"
VOCABULARY, D, H, F, LAYERS = 1_024, 128, 8, 352, 2
GROUPS, STEPS, SEED = 2, 1_000, 0
EXAMINED = 64
PROMPT, NEW_TOKENS, TOP_P, DRAWS = "The with statement", 80, 0.8, 1


class Text:
    """The language reference as byte pairs that were learned from its training part, and what is held out of it."""

    def __init__(self) -> None:
        text = prose()
        self.tokenizer = ByteLevelBPETokenizer()
        self.tokenizer.train_from_iterator([text[:TRAIN_CHARACTERS]], vocab_size=VOCABULARY, show_progress=False)
        self.train, rest = (
            torch.tensor(self.tokenizer.encode(part).ids) for part in (text[:TRAIN_CHARACTERS], text[TRAIN_CHARACTERS:])
        )
        self.test = rest[: EXAMINED * LENGTH].view(EXAMINED, LENGTH)

    def batch(self, draws: torch.Generator) -> Tensor:
        """Texts from anywhere in the training part, (batch, length)."""
        starts = torch.randint(len(self.train) - LENGTH, (BATCH, 1), generator=draws)
        return self.train[starts + torch.arange(LENGTH)]


def model_of(text: Text, groups: int) -> Llama:
    """A Llama with so many heads of keys."""
    vocabulary = text.tokenizer.get_vocab_size()
    return Llama(vocabulary, d_model=D, n_heads=H, n_kv_heads=groups, d_ff=F, n_layers=LAYERS, theta=10_000.0)


@torch.no_grad()
def examined(model: Llama, text: Text) -> float:
    """Mean surprise on what was held out, in nats per token."""
    return round(float(next_token_loss(model(text.test)[0], text.test)), 4)


def config_of(text: Text) -> dict[str, Any]:
    """What `config.json` says of the model."""
    return {
        "model_type": "llama",
        "vocab_size": text.tokenizer.get_vocab_size(),
        "hidden_size": D,
        "intermediate_size": F,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": H,
        "num_key_value_heads": GROUPS,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "rope_theta": 10_000.0,
        "tie_word_embeddings": False,
    }


def save(model: Llama, text: Text, folder: Path) -> None:
    """Write the checkpoint: config.json, model.safetensors with the names of released files, and tokenizer.json."""
    folder.mkdir(parents=True, exist_ok=True)
    config = config_of(text)
    names = hugging_face_names(config)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
    weights = {names[ours].name: weight.contiguous() for ours, weight in model.state_dict().items() if ours in names}
    save_file(weights, folder / "model.safetensors")
    text.tokenizer.save(str(folder / "tokenizer.json"))


def record(folder: Path, steps: int = STEPS) -> dict[str, Any]:
    """Train, save, load again and write; return what the page shows."""
    text = Text()
    torch.manual_seed(SEED)
    model = model_of(text, GROUPS)
    before = examined(model, text)
    train(model, text, steps=steps, seed=SEED, rate=RATE)
    save(model, text, folder)
    written = generate_text(
        folder,
        PROMPT,
        ids=None,
        new_tokens=NEW_TOKENS,
        greedy=False,
        chain=make_sampler(temperature=None, top_k=None, top_p=TOP_P),
        seed=DRAWS,
    )
    return {
        "command": COMMAND,
        "generate": f'tfcourse generate my_llama/ "{PROMPT}" --new-tokens {NEW_TOKENS} --top-p {TOP_P} --seed {DRAWS}',
        "steps": steps,
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "untrained_loss": before,
        "loss": examined(model, text),
        "prompt": PROMPT,
        "text": written.text,
    }


def main() -> None:
    """Record, or print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="where the checkpoint goes")
    parser.add_argument("--record", type=Path, help="file to write")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = json.dumps(record(options.folder), sort_keys=True, indent=1, ensure_ascii=False) + "\n"
    if options.record:
        options.record.write_text(found, encoding="utf-8")
    else:
        print(found)


if __name__ == "__main__":
    main()
