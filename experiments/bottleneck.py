"""Reverse strings through one state, for several widths and seeds: the intervals of lesson 01.

    python experiments/bottleneck.py --record experiments/results/bottleneck.json

Takes about three minutes on one core.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfcourse.data import BOS, EOS, PAD, pad_batch
from tfcourse.seq2seq import Seq2Seq

COMMAND = "python experiments/bottleneck.py --record experiments/results/bottleneck.json"
FIRST, LETTERS, LONGEST, ASKED = 4, 16, 12, 8
RUNS = {"16": (16, 500), "32": (32, 500), "64": (64, 500), "16, three times as long": (16, 1500)}
SEEDS = range(5)


def strings(n: int, rng: random.Random, length: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Draw n strings, (B, S), their mask, and their reversals with BOS and EOS, (B, T + 1)."""
    lengths = [length or rng.randint(1, LONGEST) for _ in range(n)]
    drawn = [[FIRST + rng.randrange(LETTERS) for _ in range(one)] for one in lengths]
    source, mask = pad_batch(drawn)
    target, _ = pad_batch([[BOS, *reversed(one), EOS] for one in drawn])
    return source, mask, target


def train(d_model: int, updates: int, seed: int) -> Seq2Seq:
    """Train a translator as lesson 01 does; the seed sets its weights and its strings."""
    torch.manual_seed(seed)
    model = Seq2Seq(FIRST + LETTERS, FIRST + LETTERS, 16, d_model)
    with torch.no_grad():
        for lstm in (model.encoder, model.decoder):
            lstm.bias_ih_l0[d_model : 2 * d_model] = 1.0  # forget gates open
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=True)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1, 0.02, updates)
    rng = random.Random(seed)
    for _ in range(updates):
        source, mask, target = strings(32, rng)
        logits = model(source, target[:, :-1], mask)  # (B, T, V)
        loss = F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return model.eval()


@torch.no_grad()
def exact(model: Seq2Seq, length: int = ASKED) -> float:
    """Return the share of 500 strings that are right to the last letter under greedy decoding.

    A string is right when the model writes alone if and only if it is right under teacher forcing, which is faster.
    """
    source, mask, target = strings(500, random.Random(100 + length), length)
    best = model(source, target[:, :-1], mask).argmax(dim=-1)
    return (best == target[:, 1:]).all(dim=1).double().mean().item()


def main() -> None:
    """Train every width from every seed and record the shares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", type=Path, required=True)
    path = parser.parse_args().record
    torch.set_num_threads(1)
    shares = {name: [round(exact(train(*run, seed)), 3) for seed in SEEDS] for name, run in RUNS.items()}
    record = {"command": COMMAND, "length": ASKED, "exact": shares}
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
