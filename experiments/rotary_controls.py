"""Two controls of lesson 12: RoPE without its slow pairs, and continued training at the old length.

    python experiments/rotary_controls.py --record experiments/results/rotary_controls.json

Trains the rotary model of `positions.py` as it is, and with its fast pairs alone (the others are not rotated). The first model is
then trained further at length 64, for as many characters as 40 steps at length 256 have. About a minute on one core.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from positions import BATCH, LENGTHS, RATE, STEPS, TRAINED, TUNED, TUNING, D, H, Reader, Text, losses
from torch import Tensor, nn

from tfcourse.gpt import next_token_loss
from tfcourse.rotary import rotary_frequencies

COMMAND = "python experiments/rotary_controls.py --record experiments/results/rotary_controls.json"
SEED, FAST = 0, 3


def train(model: Reader, text: Text, frequencies: Tensor, *, steps: int, seed: int, rate: float) -> None:
    """Train in place at length 64, as `positions.train` does, with these frequencies."""
    draws = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps)
    for _ in range(steps):
        tokens = text.batch(TRAINED, BATCH, draws)
        loss = next_token_loss(model(tokens, frequencies=frequencies), tokens)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()


def curve(model: Reader, text: Text, frequencies: Tensor) -> list[float]:
    """Mean loss per character, by length."""
    return [losses(model, text, length, frequencies=frequencies)[0] for length in LENGTHS]


def record() -> dict[str, object]:
    """Run both controls."""
    text = Text()
    every = rotary_frequencies(D // H)
    fast = torch.where(torch.arange(len(every)) < FAST, every, 0.0)
    found: dict[str, object] = {"seed": SEED, "lengths": list(LENGTHS), "generated": f"by {COMMAND}"}
    for name, frequencies in (("fast pairs", fast), ("all pairs", every)):
        torch.manual_seed(SEED)
        model = Reader(len(text.characters), "rotary")
        train(model, text, frequencies, steps=STEPS, seed=SEED, rate=RATE)
        found[name] = curve(model, text, frequencies)
    longer = TUNING[0] * TUNED // TRAINED
    train(model, text, every, steps=longer, seed=SEED + 100, rate=RATE / 3)
    found["continued at 64"] = curve(model, text, every)
    return found


def main() -> None:
    """Record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--record", type=Path, required=True, help="file to write")
    file = parser.parse_args().record
    torch.set_num_threads(1)
    file.write_text(json.dumps(record()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
