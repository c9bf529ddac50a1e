"""Race post-norm with and without warm-up against pre-norm, as lesson 05 does, from five seeds.

    python experiments/warm_up.py --record experiments/results/warm_up.json

Takes about two minutes on one core.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path

import torch

from tfcourse.data import Batch, Pair, Vocabulary, batches, number_pairs
from tfcourse.training import shift_right, training_step
from tfcourse.transformer import Transformer

COMMAND = "python experiments/warm_up.py --record experiments/results/warm_up.json"
BOLD, STEPS, SEEDS = 0.006, 90, range(5)
# Name of a run: whether the norm comes first, and the steps of warm-up.
RUNS = {
    "post-norm, at once": (False, 1),
    "post-norm, warmed up": (False, STEPS // 2),
    "pre-norm, at once": (True, 1),
}


def batches_of(pairs: list[Pair], vocabulary: Vocabulary) -> Iterator[Batch]:
    """Yield batches of 24 pairs, epoch after epoch, in the order of the lesson."""
    for epoch in count():
        yield from batches(pairs, vocabulary, vocabulary, batch_size=24, seed=epoch, bucketed=True)


def train(seed: int, pre_norm: bool, warmup: int, pairs: list[Pair], vocabulary: Vocabulary) -> float:
    """Train a Transformer of six layers on each side; return the mean loss of its last 20 steps."""
    torch.manual_seed(seed)
    size = len(vocabulary)
    model = Transformer(size, size, d_model=32, n_heads=4, d_ff=64, n_layers=6, dropout=0.0, pre_norm=pre_norm)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=True)
    losses = []
    for step, batch in enumerate(islice(batches_of(pairs, vocabulary), STEPS), start=1):
        target = batch.target[:, 1:]
        inputs = (batch.source, shift_right(target), batch.source_mask)
        rate = BOLD * min(1, step / warmup)
        losses.append(training_step(model, optimizer, inputs, target, learning_rate=rate).item())
    return statistics.mean(losses[-20:])


def main() -> None:
    """Train every model from every seed and record the final losses."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", type=Path, required=True)
    path = parser.parse_args().record
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    pairs = number_pairs("en", "de", count=4000, largest=99_999)
    vocabulary = Vocabulary.from_texts(text for pair in pairs for text in pair)
    finish = {
        name: [round(train(seed, *options, pairs, vocabulary), 2) for seed in SEEDS] for name, options in RUNS.items()
    }
    path.write_text(json.dumps({"command": COMMAND, "finish": finish}) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
