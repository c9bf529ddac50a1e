"""What a small BERT puts into gaps, and what pre-training is worth to a task with few labels: what lesson 08 reads.

    python experiments/bert.py --record tfcourse/recorded/bert.json

Models of 113,000 parameters learn from names of numbers (`tfcourse.number_names`), with three seeds. Then they learn to tell names from
rows of words that name nothing, from 32 to 512 labelled examples: from scratch, with the pre-trained weights frozen, and with all
weights. The same is done after replaced-token detection (ELECTRA). A few minutes on one core.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tfcourse.bert import (
    Bert,
    MaskedLanguageHead,
    finetune,
    linear_warmup_rate,
    mask_tokens,
    masked_language_loss,
    replaced_token_detection,
)
from tfcourse.data import PAD, UNK
from tfcourse.number_names import NumberNames

NAMES = NumberNames()
V = len(NAMES.vocabulary)
SIZES = {"d_model": 64, "n_heads": 4, "n_layers": 2, "d_ff": 256, "max_length": 16}
GENERATOR = {"d_model": 32, "n_heads": 4, "n_layers": 1, "d_ff": 128, "max_length": 16}
STEPS = 600
ELECTRA_STEPS = 400  # each costs about half as much again
SEEDS = (0, 1, 2)
LABELS = (32, 64, 128, 512)
SHOWN = (17_430, 342, 60_007, 21_600)
COMMAND = "python experiments/bert.py --record tfcourse/recorded/bert.json"
GUESSES = 4  # words recorded for each gap, and the hidden one

_numbers = random.Random(0).sample(range(10**6), 26_000)
TO_READ, TO_TEST, TO_TUNE = _numbers[:20_000], _numbers[20_000:22_000], _numbers[22_000:]


def batch_of(texts: Tensor, generator: torch.Generator, size: int = 64) -> Tensor:
    """Draw texts (B, T), and cut off the columns that are padding in all of them."""
    rows = texts[torch.randint(len(texts), (size,), generator=generator)]
    return rows[:, : int((rows != PAD).sum(dim=1).max())]


def pretrain(seed: int, steps: int = STEPS) -> tuple[Bert, MaskedLanguageHead, float]:
    """Train a model to fill gaps; return it with its head, and the seconds that it took."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    texts, began = NAMES.batch(TO_READ), time.process_time()
    model, head = Bert(V, **SIZES), MaskedLanguageHead(SIZES["d_model"], V)
    optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()], fused=True)
    for step in range(steps):
        _set_rate(optimizer, linear_warmup_rate(step, peak=3e-3, warmup=50, total=steps))
        tokens = batch_of(texts, generator)
        inputs, labels = mask_tokens(tokens, tokens <= UNK, mask_id=NAMES.mask, vocab_size=V, generator=generator)
        hidden, _ = model(inputs, mask=tokens != PAD)
        loss = masked_language_loss(head(hidden, model.embeddings.token_embedding.weight), labels)
        _update(optimizer, loss)
    return model, head, time.process_time() - began


def pretrain_electra(seed: int, steps: int = ELECTRA_STEPS) -> tuple[Bert, float, float]:
    """Train a model to find replaced tokens; return it, the share of tokens that were replaced, and the seconds."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    texts, began, shares = NAMES.batch(TO_READ), time.process_time(), []
    model, detector = Bert(V, **SIZES), nn.Linear(SIZES["d_model"], 1)
    small, head = Bert(V, **GENERATOR), MaskedLanguageHead(GENERATOR["d_model"], V)
    parts = (model, detector, small, head)
    optimizer = torch.optim.AdamW([weight for part in parts for weight in part.parameters()], fused=True)
    for step in range(steps):
        _set_rate(optimizer, linear_warmup_rate(step, peak=3e-3, warmup=50, total=steps))
        tokens = batch_of(texts, generator)
        real = tokens != PAD
        chosen = torch.bernoulli(0.15 * (tokens > UNK), generator=generator).bool()
        hidden, _ = small(tokens.masked_fill(chosen, NAMES.mask), mask=real)
        logits = head(hidden, small.embeddings.token_embedding.weight)
        corrupted, replaced = replaced_token_detection(tokens, chosen, logits, generator=generator)
        found = detector(model(corrupted, mask=real)[0]).squeeze(-1)
        detection = F.binary_cross_entropy_with_logits(found[real], replaced[real])
        _update(optimizer, masked_language_loss(logits, tokens.masked_fill(~chosen, -100)) + 50 * detection)
        if step >= steps // 2:
            shares.append((replaced.sum() / (tokens > UNK).sum()).item())
    return model, sum(shares) / len(shares), time.process_time() - began


def tuned(model: Bert, labels: int, seed: int, *, freeze: bool = False) -> float:
    """Fine-tune a copy of a model on so many labelled examples; return its accuracy on the test sentences."""
    torch.manual_seed(seed)
    model, head = copy.deepcopy(model), nn.Linear(SIZES["d_model"], 2)
    start = 700 * seed
    tokens, targets = NAMES.acceptability(TO_TUNE[start : start + 2 * labels], seed=seed)
    tokens, targets = tokens[:labels], targets[:labels]
    steps = 128 if labels >= 128 else 64  # 64 and 128 labels are both seen 16 times, 512 four times
    order = torch.cat([torch.randperm(labels) for _ in range(16 * steps // labels + 1)])[: 16 * steps]
    batches = [(tokens[rows], targets[rows]) for rows in order.view(steps, 16)]
    weights = [*head.parameters(), *(() if freeze else model.parameters())]
    finetune(model, head, torch.optim.AdamW(weights), batches, rate=1e-2 if freeze else 1e-3, freeze=freeze)
    return accuracy(model, head)


def accuracy(model: Bert, head: nn.Module) -> float:
    """The share of the test sentences that are judged rightly."""
    tokens, targets = NAMES.acceptability(TO_TEST, seed=99)
    model.eval()
    with torch.no_grad():
        said = head(model(tokens, mask=tokens != PAD)[1]).argmax(dim=-1)
    return round((said == targets).double().mean().item(), 4)


def guesses(model: Bert, head: MaskedLanguageHead, number: int) -> list[list[list[tuple[int, float]]]]:
    """For each set of gaps in a name and each of its gaps: the likeliest tokens and the hidden one, with probabilities."""
    tokens = torch.tensor(NAMES.encode(number))
    n, sets = len(tokens) - 2, []
    model.eval()
    for number_of_set in range(2**n):
        gaps = [place + 1 for place in range(n) if number_of_set >> place & 1]
        inputs = tokens.index_fill(0, torch.tensor(gaps, dtype=torch.long), NAMES.mask)
        with torch.no_grad():
            hidden, _ = model(inputs[None])
            shares = head(hidden, model.embeddings.token_embedding.weight)[0].softmax(dim=-1)
        found = []
        for gap in gaps:
            best = shares[gap].topk(GUESSES).indices.tolist()
            kept = dict.fromkeys([*best, int(tokens[gap])])
            found.append([(token, round(shares[gap, token].item(), 3)) for token in kept])
        sets.append(found)
    return sets


def main() -> None:
    """Train, tune, and write the record."""
    options = _options()
    torch.set_num_threads(1)
    record = measure()
    record["generated"] = f"by {COMMAND}; run it again, do not change this file"
    options.record.write_text(json.dumps(record, separators=(",", ":")) + "\n", encoding="utf-8")


def measure() -> dict[str, Any]:
    """Return what the record holds, but for where it comes from."""
    trained = {seed: pretrain(seed) for seed in SEEDS}
    electra = {seed: pretrain_electra(seed) for seed in SEEDS}
    torch.manual_seed(0)
    model, head, _ = trained[0]
    table: dict[str, dict[str, list[float]]] = {}
    for labels in LABELS:
        table[str(labels)] = row = {
            "from scratch": [tuned(_fresh(seed), labels, seed) for seed in SEEDS],
            "frozen": [tuned(trained[seed][0], labels, seed, freeze=True) for seed in SEEDS],
            "all weights": [tuned(trained[seed][0], labels, seed) for seed in SEEDS],
            "after replaced-token detection": [tuned(electra[seed][0], labels, seed) for seed in SEEDS],
        }
        print(labels, row, flush=True)
    return {
        "vocabulary": list(NAMES.vocabulary.tokens),
        "gaps": [{"number": n, "tokens": NAMES.encode(n)[1:-1], "guesses": guesses(model, head, n)} for n in SHOWN],
        "finetuning": table,
        "test_sentences": len(NAMES.acceptability(TO_TEST, seed=99)[1]),
        "replaced": [round(share, 4) for _, share, _ in electra.values()],
        "seconds": {
            "masked": [round(seconds, 1) for _, _, seconds in trained.values()],
            "replaced": [round(seconds, 1) for _, _, seconds in electra.values()],
        },
    }


def _fresh(seed: int) -> Bert:
    torch.manual_seed(seed)
    return Bert(V, **SIZES)


def _set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate


def _update(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--record", type=Path, required=True, help="where to write what the lesson reads")
    return parser.parse_args()


if __name__ == "__main__":
    main()
