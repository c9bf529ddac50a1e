"""Forecast waves with a network whose weights are fixed, and with the attention of lesson 03 from five starts.

    python experiments/fixed_weights.py --record experiments/results/fixed_weights.json

Takes about three minutes on one core.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import torch
from torch import Tensor, nn

from tfcourse.attention import merge_query_key, projected_attention

COMMAND = "python experiments/fixed_weights.py --record experiments/results/fixed_weights.json"
PAGES, WIDTH, SEEDS = 20, 256, range(3)
# The first seed is that of the lesson.
ATTENTION_SEEDS, LONGER = range(3, 8), 60
# Updates and logs per update: those of the attention in the lesson, and forty times as many logs.
SHORT, LONG = (300, 64), (3000, 256)


def make_logs(n_logs: int, generator: torch.Generator, pages: int = PAGES) -> tuple[Tensor, Tensor]:
    """Draw logs as lesson 03 does; return the flattened readings, (B, 6 (S + 1)), and tonight's heights, (B, 1)."""
    turn = 2 * math.pi
    open_sea = turn * torch.rand(n_logs, 1, generator=generator)
    wind, moon = turn * torch.rand(2, n_logs, pages + 1, generator=generator)
    warmth = torch.randn(n_logs, pages + 1, generator=generator)
    height = 0.5 + 2.5 * torch.relu(torch.cos(wind - open_sea))
    rows = torch.stack([wind.cos(), wind.sin(), moon.cos(), moon.sin(), warmth, height], dim=-1)
    tonight = rows[:, -1, 5:].clone()
    rows[:, -1, 5] = 0
    return rows.flatten(1), tonight


def train(seed: int, updates: int, batch: int) -> tuple[float, int]:
    """Train a network with two hidden layers; return its mean squared error on new lighthouses, and its parameters."""
    torch.manual_seed(seed)
    model = nn.Sequential(
        nn.Linear(6 * (PAGES + 1), WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1, 0.05, updates)
    generator = torch.Generator().manual_seed(100 + seed)
    for _ in range(updates):
        rows, height = make_logs(batch, generator)
        loss = (model(rows) - height).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    rows, height = make_logs(2000, generator)
    with torch.no_grad():
        error = (model(rows) - height).square().mean().item()
    return error, sum(p.numel() for p in model.parameters())


def train_attention(seed: int, updates: int, batch: int) -> dict[str, float]:
    """Train the attention of the lesson; return its errors on logs of two lengths, and what it compares and passes on."""
    generator = torch.Generator().manual_seed(seed)
    projections = [(0.3 * torch.randn(6, width, generator=generator)).requires_grad_() for width in (4, 4, 1)]
    optimizer = torch.optim.Adam(projections, lr=0.03)

    def error(n_logs: int, pages: int = PAGES) -> Tensor:
        flat, height = make_logs(n_logs, generator, pages)
        rows = flat.unflatten(1, (pages + 1, 6))
        forecast = projected_attention(rows[:, -1:], rows[:, :-1], *projections)  # (B, 1, 1)
        return (forecast[:, 0] - height).square().mean()

    for _ in range(updates):
        optimizer.zero_grad()
        error(batch).backward()
        optimizer.step()
    with torch.no_grad():
        compared = merge_query_key(*projections[:2])  # (D, D)
        wind = compared.diagonal()[:2].tolist()
        compared.diagonal()[:2] = 0
        return {
            "error": error(2000).item(),
            "error on longer logs": error(2000, LONGER).item(),
            "wind with wind": min(wind),
            "largest other entry": compared.abs().max().item(),
            "value of the wind": projections[2][:2].abs().max().item(),
            "value of the height": projections[2][5].item(),
        }


def main() -> None:
    """Train from every seed and record the errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", type=Path, required=True)
    path = parser.parse_args().record
    torch.set_num_threads(1)
    errors: dict[int, list[float]] = {}
    for updates, batch in (SHORT, LONG):
        runs = [train(seed, updates, batch) for seed in SEEDS]
        errors[updates * batch] = [round(error, 3) for error, _ in runs]
    attention = [train_attention(seed, *SHORT) for seed in ATTENTION_SEEDS]
    record = {
        "command": COMMAND,
        "parameters": runs[0][1],
        "errors by logs": errors,
        "attention": {name: [round(run[name], 3) for run in attention] for name in attention[0]},
    }
    path.write_text(json.dumps(record) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
