"""A table of counts against a small GPT, six sizes at one budget, fine-tuning with care, and repeated texts: what lesson 09 reads.

    python experiments/gpt.py --record tfcourse/recorded/gpt.json

The text is Python's language reference (`tfcourse.data.prose`), cut into 512 kinds of tokens by chapter 06's byte-pair encoding; the
last tenth is never trained on. About fifty minutes on one core. `--only scaling` renews one part of the record.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tfcourse.bert import linear_warmup_rate
from tfcourse.data import EOS, PAD, prose
from tfcourse.gpt import (
    Gpt,
    bits_per_byte,
    discriminative_rates,
    generate,
    next_token_loss,
    slanted_triangular_rate,
)
from tfcourse.number_names import NumberNames
from tfcourse.tokenization import byte_characters, decode_ids, encode_text, pre_tokenize, train_bpe

COMMAND = "python experiments/gpt.py --record tfcourse/recorded/gpt.json"
V, WINDOW, BATCH = 512, 128, 16
SIZES: dict[str, Any] = {"d_model": 128, "n_heads": 4, "n_layers": 4}
STEPS = 3000
EXAMINED = (50, 100, 200, 400, 600, 800, 1000, 1250, 1500, 1750, 2000, 2500, 3000)
BUDGET = 3e11
WIDTHS = (16, 24, 32, 48, 64, 96)
SEEDS = (0, 1, 2)
LABELS = (32, 128, 512)
KINDS, LENGTH, PERIODS, SHOWN = 64, 32, (8, 16), 12
NAMES = NumberNames()
# Numbers to read, to be examined on, and to tune on: drawn once, all different.
_NUMBERS = torch.randperm(1_000_000, generator=torch.Generator().manual_seed(0))[:26_000].tolist()
TO_READ, TO_TEST, TO_TUNE = _NUMBERS[:20_000], _NUMBERS[20_000:22_000], _NUMBERS[22_000:]


class Prose:
    """The text in tokens: nine tenths to read, and the last tenth to be examined on."""

    def __init__(self) -> None:
        text = prose()
        cut = len(text) * 9 // 10
        words = Counter(
            "".join(byte_characters()[byte] for byte in piece.encode()) for piece in pre_tokenize(text[:cut])
        )
        self.vocabulary, self.merges = train_bpe(words, V, byte_characters())
        self.read, self.test = (encode_text(part, self.vocabulary, self.merges) for part in (text[:cut], text[cut:]))
        self.test_bytes = len(text[cut:].encode())

    def bits(self, nats: float) -> float:
        """Bits per byte of the examined text, from the mean surprise at its tokens."""
        return round(bits_per_byte(nats, len(self.test), self.test_bytes), 3)


class Counts:
    """Counts of up to `order` neighbouring tokens, backed off by Witten and Bell's rule."""

    def __init__(self, tokens: Sequence[int], order: int) -> None:
        self.order = order
        self.after: dict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
        for place, token in enumerate(tokens):
            for length in range(min(order, place + 1)):
                self.after[tuple(tokens[place - length : place])][token] += 1
        self.totals = {before: sum(counts.values()) for before, counts in self.after.items()}

    def probability(self, before: tuple[int, ...], token: int) -> float:
        """The probability of a token behind others, of which at most `order` - 1 count."""
        p = 1 / V
        for length in range(self.order):
            counts = self.after.get(before[len(before) - length :]) if length <= len(before) else None
            if counts is None:
                break
            total = self.totals[before[len(before) - length :]]
            p = (counts[token] + len(counts) * p) / (total + len(counts))
        return p

    def surprise(self, tokens: Sequence[int]) -> float:
        """The mean surprise at the tokens of a text, in nats."""
        span = self.order - 1
        logs = [
            math.log(self.probability(tuple(tokens[max(0, place - span) : place]), token))
            for place, token in enumerate(tokens)
        ]
        return -sum(logs) / len(logs)

    def write(self, length: int, generator: torch.Generator) -> list[int]:
        """Draw a text, token by token."""
        text: list[int] = []
        for _ in range(length):
            before = tuple(text[max(0, len(text) - self.order + 1) :])
            p = torch.tensor([self.probability(before, token) for token in range(V)])
            text.append(int(torch.multinomial(p, 1, generator=generator)))
        return text


@torch.no_grad()
def surprise(model: Gpt, tokens: Sequence[int]) -> float:
    """The mean surprise at the tokens of a text but for the first, each with half a window before it at least."""
    text, half, logs = torch.tensor(tokens), WINDOW // 2, []
    model.eval()
    for start in range(0, len(text) - 1, half):
        window = text[max(0, start - half) : start + half + 1]
        asked = min(half, len(text) - 1 - start)
        log_p = model(window[None, :-1])[0][0].log_softmax(-1)
        logs.append(log_p.gather(1, window[1:, None])[-asked:, 0])
    return -torch.cat(logs).mean().item()


def train(
    model: Gpt, tokens: Sequence[int], steps: int, *, peak: float, seed: int, examine: Callable[[int, float], None]
) -> None:
    """Train on windows that begin anywhere; `examine` is told each step's number and the seconds of training so far."""
    random, text = torch.Generator().manual_seed(seed), torch.tensor(tokens)
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    seconds = 0.0
    for step in range(steps):
        began = time.process_time()
        model.train()
        rate = linear_warmup_rate(step + 1, peak=peak, warmup=max(1, steps // 20), total=steps + 1)
        starts = torch.randint(len(text) - WINDOW, (BATCH, 1), generator=random)
        update(optimizer, next_token_loss(*_read(model, text[starts + torch.arange(WINDOW)])), rate)
        seconds += time.process_time() - began
        examine(step + 1, seconds)


def _read(model: Gpt, tokens: Tensor) -> tuple[Tensor, Tensor]:
    return model(tokens)[0], tokens


def update(optimizer: torch.optim.Optimizer, loss: Tensor, rate: float | Sequence[float]) -> None:
    """One step, at a rate for all groups or one for each."""
    groups = optimizer.param_groups
    for group, one in zip(groups, [rate] * len(groups) if isinstance(rate, float) else rate, strict=True):
        group["lr"] = one
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def crossing(text: Prose) -> dict[str, Any]:
    """Bits per byte of counts and, as its training goes on, of a GPT; and what both of them write."""
    tables = {order: Counts(text.read, order) for order in (1, 2, 3, 4)}
    counts = {str(order): text.bits(table.surprise(text.test)) for order, table in tables.items()}
    print(counts, flush=True)
    torch.manual_seed(0)
    model, curve = Gpt(V, WINDOW, **SIZES, dropout=0.1), []

    def examine(step: int, seconds: float) -> None:
        if step in EXAMINED:
            curve.append([step, round(seconds), text.bits(surprise(model, text.test))])
            print(*curve[-1], flush=True)

    train(model, text.read, STEPS, peak=2e-3, seed=0, examine=examine)
    random = torch.Generator().manual_seed(1)
    prompt = torch.tensor([encode_text("\n", text.vocabulary, text.merges)])
    written = generate(model, prompt, max_new_tokens=WINDOW - prompt.shape[1], generator=random)[0, prompt.shape[1] :]
    return {
        "counts": counts,
        "curve": curve,
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "tokens": [len(text.read), len(text.test), text.test_bytes],
        "written": {
            "counts": decode_ids(tables[3].write(len(written), random), text.vocabulary),
            "gpt": decode_ids(written.tolist(), text.vocabulary),
        },
    }


def one_budget(text: Prose) -> dict[str, Any]:
    """Six sizes, each trained with the same number of operations from several seeds."""
    runs = []
    for width in WIDTHS:
        losses = []
        for seed in SEEDS:
            torch.manual_seed(seed)
            model = Gpt(V, WINDOW, d_model=width, n_heads=width // 8, n_layers=2)
            parameters = sum(weight.numel() for weight in model.parameters())
            steps = round(BUDGET / (6 * parameters) / (BATCH * WINDOW))
            train(model, text.read, steps, peak=4e-3, seed=seed, examine=lambda step, seconds: None)
            losses.append(round(surprise(model, text.test), 4))
        runs.append([parameters, steps * BATCH * WINDOW, losses])
        print(*runs[-1], flush=True)
    return {"flops": BUDGET, "runs": runs}


# ------------------------------------------------------------------------------------------------------- fine-tuning


def pretrained(seed: int, steps: int = 600) -> Gpt:
    """A GPT that has read names of numbers."""
    torch.manual_seed(seed)
    random = torch.Generator().manual_seed(seed)
    model = Gpt(len(NAMES.vocabulary), 16, d_model=64, n_heads=4, n_layers=2)
    texts = NAMES.batch(TO_READ)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    for step in range(steps):
        tokens = texts[torch.randint(len(texts), (64,), generator=random)]
        rate = linear_warmup_rate(step + 1, peak=3e-3, warmup=50, total=steps + 1)
        update(optimizer, next_token_loss(model(tokens)[0], tokens, pad=PAD), rate)
    return model


class Classifier(nn.Module):
    """A GPT, and a linear map of the state at each text's last token."""

    def __init__(self, model: Gpt) -> None:
        super().__init__()
        self.model, self.output = model, nn.Linear(model.final_norm.normalized_shape[0], 2)

    def forward(self, tokens: Tensor) -> Tensor:
        """Give logits of two classes, (B, 2), for texts (B, T) that end with EOS."""
        model = self.model
        x = model.token_embedding(tokens) + model.position_embedding.weight[: tokens.shape[1]]
        for block in model.blocks:
            x, _ = block(x)
        last = (tokens == EOS).int().argmax(dim=1)
        logits: Tensor = self.output(model.final_norm(x[torch.arange(len(x)), last]))
        return logits

    def groups(self) -> list[list[nn.Parameter]]:
        """The weights in groups, from the embeddings to the output."""
        model = self.model
        parts = [[model.token_embedding, model.position_embedding], *([block] for block in model.blocks)]
        return [
            [weight for part in group for weight in part.parameters()]
            for group in (*parts, [model.final_norm, self.output])
        ]


def tuned(model: Gpt, labels: int, seed: int, *, care: bool) -> float:
    """Fine-tune a copy on so many labelled examples; return its accuracy on other ones.

    With care: lower groups learn more slowly, the rate is a slanted triangle, and the groups thaw one after the other, from the last one.
    """
    torch.manual_seed(seed)
    classifier = Classifier(copy.deepcopy(model)).train()
    start, steps = 700 * seed, 128 if labels > 128 else 64
    tokens, targets = NAMES.acceptability(TO_TUNE[start : start + 2 * labels], seed=seed)
    tokens, targets = tokens[:labels], targets[:labels]
    order = torch.cat([torch.randperm(labels) for _ in range(16 * steps // labels + 1)])[: 16 * steps].view(steps, 16)
    groups = classifier.groups()
    optimizer = torch.optim.AdamW([{"params": group} for group in groups])
    shares = discriminative_rates(1.0, len(groups))
    for step, rows in enumerate(order):
        rate = slanted_triangular_rate(step, steps, peak=1e-3 if not care else 2e-3)
        thawed = min(len(groups), 1 + step * 2 * len(groups) // steps)
        rates = [rate * share for share in shares] if care else [rate] * len(groups)
        frozen = len(groups) - thawed if care else 0
        loss = F.cross_entropy(classifier(tokens[rows]), targets[rows])
        update(optimizer, loss, [0.0] * frozen + rates[frozen:])
    tokens, targets = NAMES.acceptability(TO_TEST, seed=99)
    with torch.no_grad():
        right = classifier.eval()(tokens).argmax(dim=-1) == targets
    return float(round(right.double().mean().item(), 4))


def fine_tuning() -> dict[str, Any]:
    """What care is worth, and pre-training."""
    trained = {seed: pretrained(seed) for seed in SEEDS}
    fresh = {seed: pretrained(seed, steps=0) for seed in SEEDS}
    table = {
        str(labels): {
            "from scratch": [tuned(fresh[seed], labels, seed, care=False) for seed in SEEDS],
            "one rate": [tuned(trained[seed], labels, seed, care=False) for seed in SEEDS],
            "with care": [tuned(trained[seed], labels, seed, care=True) for seed in SEEDS],
        }
        for labels in LABELS
    }
    print(table, flush=True)
    return table


# -------------------------------------------------------------------------------------------------- texts that repeat


def repeating(texts: int, periods: tuple[int, int], random: torch.Generator) -> Tensor:
    """Draw texts (B, T) of random tokens that begin again after so many tokens, a number of its own for each text."""
    begun = torch.randint(KINDS, (texts, periods[1]), generator=random)
    period = torch.randint(periods[0], periods[1] + 1, (texts, 1), generator=random)
    return begun.gather(1, torch.arange(LENGTH) % period)


def in_context(layers: int, seed: int) -> dict[str, list[float]]:
    """Train on repeating texts; return the surprisal by position of texts that repeat after 12 tokens, and of texts that do not."""
    torch.manual_seed(seed)
    random, steps = torch.Generator().manual_seed(seed), 1000
    model = Gpt(KINDS, LENGTH, d_model=64, n_heads=4, n_layers=layers)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    for step in range(steps):
        rate = linear_warmup_rate(step + 1, peak=3e-3, warmup=50, total=steps + 1)
        update(optimizer, next_token_loss(*_read(model, repeating(64, PERIODS, random))), rate)
    random = torch.Generator().manual_seed(99)
    repeated = repeating(1000, (SHOWN, SHOWN), random)
    fresh = torch.cat([repeated[:, :SHOWN], torch.randint(KINDS, (1000, LENGTH - SHOWN), generator=random)], dim=1)
    found = {}
    with torch.no_grad():
        for name, text in (("repeated", repeated), ("fresh", fresh)):
            log_p = model.eval()(text[:, :-1])[0].log_softmax(-1)
            surprisal = -log_p.gather(-1, text[:, 1:, None])[..., 0].mean(dim=0)  # (T - 1,)
            found[name] = [round(nats, 3) for nats in surprisal.tolist()]
    print(layers, seed, *(round(sum(found[name][SHOWN:]) / (LENGTH - 1 - SHOWN), 3) for name in found), flush=True)
    return found


def repetitions() -> dict[str, Any]:
    """Models of two layers and of one, from three seeds each."""
    runs = {str(layers): [in_context(layers, seed) for seed in SEEDS] for layers in (2, 1)}
    return {"period": SHOWN, "layers": runs}


def main() -> None:
    """Count, train, tune, repeat, and write the record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--record", type=Path, required=True, help="where to write what the lesson reads")
    parser.add_argument(
        "--only", choices=("finetuning", "scaling", "prose", "repeats"), help="renew this part and keep the others"
    )
    arguments = parser.parse_args()
    file = arguments.record
    torch.set_num_threads(1)
    parts: dict[str, Callable[[], Any]] = {
        "finetuning": fine_tuning,
        "scaling": lambda: one_budget(Prose()),
        "prose": lambda: crossing(Prose()),
        "repeats": repetitions,
    }
    record: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if arguments.only else {}
    record |= {part: make() for part, make in parts.items() if arguments.only in (None, part)}
    record["generated"] = f"by {COMMAND}; run it again, do not change this file"
    file.write_text(json.dumps(record, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
