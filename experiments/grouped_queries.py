"""Small Llamas with eight, four, two and one head of keys, and what becomes of eight that are pooled: what lesson 13 reads.

    python experiments/grouped_queries.py --record tfcourse/recorded/grouped_queries.json

They learn the language reference of Python character by character. Some six minutes on one core.
"""

from __future__ import annotations

import argparse
import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tfcourse.data import prose
from tfcourse.gpt import next_token_loss
from tfcourse.llama import Llama, pool_key_value_heads

COMMAND = "python experiments/grouped_queries.py --record tfcourse/recorded/grouped_queries.json"
D, H, F, LAYERS = 64, 8, 176, 2
GROUPS, SEEDS = (8, 4, 2, 1), (0, 1)
STEPS, TUNING, BATCH, LENGTH, RATE = 300, 30, 32, 64, 3e-3
TRAIN_CHARACTERS, EXAMINED = 420_000, 16_384


class Text:
    """The language reference as numbers of characters, and what is held out of it."""

    def __init__(self) -> None:
        text = prose()
        self.characters = sorted(set(text))
        number = {character: place for place, character in enumerate(self.characters)}
        tokens = torch.tensor([number[character] for character in text])
        self.train = tokens[:TRAIN_CHARACTERS]
        self.test = tokens[TRAIN_CHARACTERS : TRAIN_CHARACTERS + EXAMINED].view(-1, LENGTH)

    def batch(self, draws: torch.Generator) -> Tensor:
        """Texts from anywhere in the training part, (batch, length)."""
        starts = torch.randint(len(self.train) - LENGTH, (BATCH, 1), generator=draws)
        return self.train[starts + torch.arange(LENGTH)]


def model_of(text: Text, groups: int) -> Llama:
    """A Llama with so many heads of keys."""
    return Llama(len(text.characters), d_model=D, n_heads=H, n_kv_heads=groups, d_ff=F, n_layers=LAYERS, theta=10_000.0)


def train(model: Llama, text: Text, *, steps: int, seed: int, rate: float) -> None:
    """Train in place, with AdamW and a rate that rises and falls."""
    draws = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps)
    for _ in range(steps):
        tokens = text.batch(draws)
        loss = next_token_loss(model(tokens)[0], tokens)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()


@torch.no_grad()
def examined(model: Llama, text: Text) -> float:
    """Mean surprise on what was held out, in nats."""
    return round(float(next_token_loss(model(text.test)[0], text.test)), 4)


def first_of(weight: Tensor, n_old: int, n_new: int) -> Tensor:
    """The first head of each group."""
    return weight.reshape(n_new, n_old // n_new, -1, weight.shape[1])[:, 0].flatten(0, 1)


def fresh(weight: Tensor, n_old: int, n_new: int) -> Tensor:
    """Heads that are drawn anew."""
    return torch.randn(len(weight) // n_old * n_new, weight.shape[1]) * 0.02


WAYS: dict[str, Callable[[Tensor, int, int], Tensor]] = {
    "mean": pool_key_value_heads,
    "first": first_of,
    "fresh": fresh,
}


def converted(model: Llama, text: Text, groups: int, way: str) -> Llama:
    """A copy with fewer heads of keys and values."""
    state = copy.deepcopy(model.state_dict())
    for name, weight in state.items():
        if name.endswith(("k_proj.weight", "v_proj.weight")):
            state[name] = WAYS[way](weight, H, groups)
    few = model_of(text, groups)
    few.load_state_dict(state)
    return few


def record() -> dict[str, Any]:
    """Run everything."""
    text = Text()
    losses: dict[str, list[float]] = {}
    conversion: dict[str, list[list[float]]] = {}
    for seed in SEEDS:
        for groups in GROUPS:
            torch.manual_seed(seed)
            model = model_of(text, groups)
            train(model, text, steps=STEPS, seed=seed, rate=RATE)
            losses.setdefault(str(groups), []).append(examined(model, text))
            print(seed, groups, losses[str(groups)][-1], flush=True)
            if groups != H:
                continue
            for few in (2, 1):
                for way in WAYS:
                    torch.manual_seed(seed)
                    other = converted(model, text, few, way)
                    at_once = examined(other, text)
                    train(other, text, steps=TUNING, seed=seed + 100, rate=RATE / 3)
                    conversion.setdefault(f"{way} {few}", []).append([at_once, examined(other, text)])
                    print(seed, way, few, conversion[f"{way} {few}"][-1], flush=True)
    return {"command": COMMAND, "steps": STEPS, "tuning": TUNING, "losses": losses, "conversion": conversion}


def main() -> None:
    """Record, or print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, help="file to write")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = json.dumps(record(), sort_keys=True) + "\n"
    if options.record:
        options.record.write_text(found, encoding="utf-8")
    else:
        print(found)


if __name__ == "__main__":
    main()
