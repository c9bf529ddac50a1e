"""Six kinds of positions, trained on short texts and examined on long ones, and ways to stretch rotations: the record of lesson 12.

    python experiments/positions.py --record tfcourse/recorded/positions.json

A small model of characters learns the language reference of Python in texts of 64 and is examined in texts of up to 1,024. It takes
about ten minutes on one core.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tfcourse.attention import causal_mask
from tfcourse.data import prose
from tfcourse.gpt import next_token_loss
from tfcourse.layers import FeedForward
from tfcourse.multihead import merge_heads, split_heads
from tfcourse.positions import relative_attention, sinusoidal_positions
from tfcourse.rotary import (
    RotaryAttention,
    alibi_bias,
    alibi_slopes,
    convert_rotary_weight,
    loss_by_position,
    ntk_theta,
    rotary_frequencies,
)
from tfcourse.t5 import relative_position_bias

COMMAND = "python experiments/positions.py --record tfcourse/recorded/positions.json"
KINDS = ("none", "sinusoidal", "shaw", "t5", "alibi", "rotary")
D, H, LAYERS, CLIP, THETA = 64, 4, 2, 16, 10_000.0
TRAINED, LENGTHS, TUNED = 64, (64, 96, 128, 256, 512, 1024), 256
STEPS, BATCH, RATE, SEEDS, TUNING = 400, 32, 3e-3, (0, 1), (40, 200)
TRAIN_CHARACTERS, EXAMINED = 420_000, 16_384


class Text:
    """The language reference as numbers of characters, and what is held out of it."""

    def __init__(self) -> None:
        text = prose()
        self.characters = sorted(set(text))
        number = {character: place for place, character in enumerate(self.characters)}
        tokens = torch.tensor([number[character] for character in text])
        self.train, self.test = tokens[:TRAIN_CHARACTERS], tokens[TRAIN_CHARACTERS : TRAIN_CHARACTERS + EXAMINED + 1]

    def batch(self, length: int, batch: int, draws: torch.Generator) -> Tensor:
        """Texts from anywhere in the training part, (batch, length + 1)."""
        starts = torch.randint(len(self.train) - length - 1, (batch, 1), generator=draws)
        return self.train[starts + torch.arange(length + 1)]

    def examination(self, length: int) -> tuple[Tensor, Tensor]:
        """All that is held out, in texts of a length: inputs and targets."""
        count = (len(self.test) - 1) // length
        return self.test[: count * length].view(count, length), self.test[1 : count * length + 1].view(count, length)


class Attention(RotaryAttention):
    """Causal attention with one of six kinds of positions; the maps are the same for all."""

    def __init__(self, kind: str) -> None:
        super().__init__(D, H, theta=THETA)
        self.kind = kind
        if kind == "shaw":
            self.key_offsets = nn.Parameter(torch.randn(2 * CLIP + 1, D // H) * 0.02)
            self.value_offsets = nn.Parameter(torch.randn(2 * CLIP + 1, D // H) * 0.02)

    def read(self, x: Tensor, bias: Tensor | None, frequencies: Tensor | None, scale: float) -> Tensor:
        """Outputs, (B, T, D); `bias` is added to the scores, (H, T, T)."""
        if self.kind == "rotary":
            return self.forward(x, 0, frequencies, scale)
        q, k, v = (split_heads(project(x), H) for project in (self.q_proj, self.k_proj, self.v_proj))
        mask = causal_mask(x.shape[1])
        if self.kind == "shaw":
            heads = relative_attention(q, k, v, self.key_offsets, self.value_offsets, mask)
        else:
            scores = q @ k.mT / (D // H) ** 0.5
            scores = scores if bias is None else scores + bias
            heads = scores.masked_fill(~mask, -torch.inf).softmax(-1) @ v
        output: Tensor = self.o_proj(merge_heads(heads))
        return output


class Reader(nn.Module):
    """A decoder of two layers over characters."""

    def __init__(self, vocab_size: int, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.embedding = nn.Embedding(vocab_size, D)
        self.attentions = nn.ModuleList(Attention(kind) for _ in range(LAYERS))
        self.feed_forwards = nn.ModuleList(FeedForward(D, 4 * D, activation="gelu") for _ in range(LAYERS))
        self.norms = nn.ModuleList(nn.LayerNorm(D) for _ in range(2 * LAYERS + 1))
        self.output = nn.Linear(D, vocab_size)
        if kind == "t5":
            self.table = nn.Parameter(torch.zeros(32, H))

    def forward(self, tokens: Tensor, frequencies: Tensor | None = None, scale: float = 1.0) -> Tensor:
        """Logits, (B, T, V)."""
        length = tokens.shape[1]
        x = self.embedding(tokens)
        bias = None
        if self.kind == "sinusoidal":
            x = x + sinusoidal_positions(length, D)
        elif self.kind == "t5":
            bias = relative_position_bias(self.table, length, length, bidirectional=False)
        elif self.kind == "alibi":
            bias = alibi_bias(alibi_slopes(H), length, length)
        for number, (attention, feed_forward) in enumerate(zip(self.attentions, self.feed_forwards, strict=True)):
            x = x + attention.read(self.norms[2 * number](x), bias, frequencies, scale)
            x = x + feed_forward(self.norms[2 * number + 1](x))
        logits: Tensor = self.output(self.norms[-1](x))
        return logits


def train(model: Reader, text: Text, *, steps: int, length: int, seed: int, rate: float, scale: float = 1.0) -> None:
    """Train in place, with AdamW and a rate that rises and falls."""
    draws = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps)
    for _ in range(steps):
        tokens = text.batch(length, BATCH, draws)
        loss = next_token_loss(model(tokens, scale=scale), tokens)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()


@torch.no_grad()
def losses(model: Reader, text: Text, length: int, bins: int = 1, **options: Any) -> list[float]:
    """Mean surprise on what was held out, in nats, by stretches."""
    inputs, targets = text.examination(length)
    parts = [
        loss_by_position(model(some, **options), wanted, bins=bins)
        for some, wanted in zip(inputs.split(64), targets.split(64), strict=True)
    ]
    weights = torch.tensor([float(len(some)) for some in inputs.split(64)])
    mean = (torch.stack(parts) * weights[:, None]).sum(0) / weights.sum()
    return [round(float(number), 4) for number in mean]


def curve(model: Reader, text: Text, **options: Any) -> list[float]:
    """Mean surprise at all lengths."""
    return [losses(model, text, length, **options)[0] for length in LENGTHS]


def stretched(model: Reader, text: Text, seed: int) -> dict[str, list[float]]:
    """What becomes of a trained rotary model that is asked to read four times as far."""
    found = {"as it is": curve(model, text)}
    found["squeezed to a quarter"] = curve(model, text, scale=0.25)
    for factor in (4.0, 8.0):
        frequencies = rotary_frequencies(D // H, ntk_theta(THETA, factor, D // H))
        found[f"base for factor {factor:g}"] = curve(model, text, frequencies=frequencies)
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for steps, longer in zip(TUNING, ("", " longer"), strict=True):
        for name, scale in (("squeezed, tuned", 0.25), ("tuned", 1.0)):
            model.load_state_dict(state)
            train(model, text, steps=steps, length=TUNED, seed=seed + 100, rate=RATE / 3, scale=scale)
            found[name + longer] = curve(model, text, scale=scale)
    model.load_state_dict(state)
    return found


def other_pairing(model: Reader, text: Text) -> list[float]:
    """Mean surprise in eight stretches of texts of the trained length, if the columns are paired as they were not in training."""
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for attention in model.attentions:
        for project in (attention.q_proj, attention.k_proj):
            # The rows of interleaved pairs, read by code that pairs halves.
            project.weight.data = convert_rotary_weight(project.weight.data, H, to="interleaved")
    found = losses(model, text, TRAINED, bins=8)
    model.load_state_dict(state)
    return found


def record() -> dict[str, Any]:
    """Run everything."""
    text = Text()
    curves: dict[str, list[list[float]]] = {}
    stretches: list[dict[str, list[float]]] = []
    by_place: dict[str, list[float]] = {}
    pairings: list[dict[str, list[float]]] = []
    for seed in SEEDS:
        for kind in KINDS:
            torch.manual_seed(seed)
            model = Reader(len(text.characters), kind)
            train(model, text, steps=STEPS, length=TRAINED, seed=seed, rate=RATE)
            curves.setdefault(kind, []).append(curve(model, text))
            print(seed, kind, curves[kind][-1], flush=True)
            if seed == SEEDS[0]:
                by_place[kind] = losses(model, text, 256, bins=8)
            if kind == "rotary":
                own = losses(model, text, TRAINED, bins=8)
                pairings.append({"trained": own, "other": other_pairing(model, text)})
                stretches.append(stretched(model, text, seed))
                print(stretches[-1], flush=True)
    return {
        "trained": TRAINED,
        "lengths": list(LENGTHS),
        "steps": STEPS,
        "tuning": list(TUNING),
        "seeds": list(SEEDS),
        "curves": curves,
        "by place": by_place,
        "pairings": pairings,
        "stretched": stretches,
        "generated": f"by {COMMAND}; run it again, do not change this file",
    }


def main() -> None:
    """Record, or print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, help="file to write")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = json.dumps(record(), separators=(",", ":")) + "\n"
    if options.record:
        options.record.write_text(found, encoding="utf-8")
    else:
        print(found)


if __name__ == "__main__":
    main()
