"""Train the translator of lesson 02 with each of six scores from five seeds: the intervals of its contest.

    python experiments/scores.py --record experiments/results/scores.json

Takes about five minutes on one core.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from tfcourse import data
from tfcourse.alignment import SCORES, AttentionSeq2Seq

COMMAND = "python experiments/scores.py --record experiments/results/scores.json"
SEEDS = range(2, 7)
# What is trained: a score, and what it is multiplied by before the softmax. The last one removes the narrow range of the cosine.
RUNS = {score: (score, 1.0) for score in SCORES} | {"content, times 10": ("content", 10.0)}
EPOCHS, BATCH = 2, 80
# The scores whose translators write once more with source positions masked.
MASKED = ("additive", "general")
# The names of units; any other German word but "und" is the name of a digit or of a number below a hundred.
UNITS = {"hundert": "hundred", "tausend": "thousand"}


def meanings() -> dict[str, str]:
    """Return the English word of each German one."""
    small = [*range(21), *range(30, 100, 10)]
    words = {data.number_to_words(n, "de"): data.number_to_words(n, "en") for n in small}
    return words | UNITS | {"ein": "one"}


def true_links(source: list[str], target: list[str], words: dict[str, str]) -> list[int | None]:
    """Return for each German token the position of its English one; None for "und"."""
    plain = [token.strip("#-,") for token in source]
    places: list[int | None] = []
    met: dict[str | None, int] = {}
    for token in target:
        word = words.get(token.strip("#"))
        met[word] = met.get(word, 0) + 1
        same = [place for place, other in enumerate(plain) if other == word]
        places.append(same[met[word] - 1] if word else None)
    return places


def train(model: AttentionSeq2Seq, batches: list[data.Batch]) -> None:
    """Train with teacher forcing; the rate falls linearly to zero."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / len(batches))
    for batch in batches:
        logits = model(batch.source, batch.target[:, :-1], batch.source_mask)  # (B, T, V)
        loss = F.cross_entropy(logits.flatten(0, 1), batch.target[:, 1:].flatten(), ignore_index=data.PAD)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()


@torch.no_grad()
def exact(model: AttentionSeq2Seq, batch: data.Batch) -> float:
    """Return the share of sentences that are right to the last token under greedy decoding.

    A sentence is right when the model writes alone if and only if it is right under teacher forcing, which is faster.
    """
    best = model(batch.source, batch.target[:, :-1], batch.source_mask).argmax(dim=-1)
    right = (best == batch.target[:, 1:]) | ~batch.target_mask[:, 1:]
    return right.all(dim=1).double().mean().item()


@torch.no_grad()
def weights_of(model: AttentionSeq2Seq, batch: data.Batch) -> Tensor:
    """Return the alignments of a batch, (B, T, S)."""
    return model.align(batch.source, batch.target[:, :-1], batch.source_mask)


@torch.no_grad()
def right_when_masked(model: AttentionSeq2Seq, batch: data.Batch) -> dict[str, Tensor]:
    """Return which tokens are right without the position of the largest weight, and without any, (B, T) each.

    Only the prediction is made from masked positions; the next step continues from the state without them masked.
    """
    written: dict[str, list[Tensor]] = {"strongest": [], "all": []}
    annotations = model.encoder(batch.source, batch.source_mask)
    state = model.decoder.initial_state(annotations)
    for token in batch.target[:, :-1].unbind(dim=1):
        _, after, weights = model.decoder.step(token, state, annotations, batch.source_mask)
        strongest = weights.argmax(dim=-1, keepdim=True)
        for name, masked in (("strongest", strongest), ("all", torch.arange(weights.shape[-1]).expand_as(weights))):
            allowed = batch.source_mask.scatter(1, masked, value=False)  # (B, S)
            written[name].append(model.decoder.step(token, state, annotations, allowed)[0].argmax(dim=-1))
        state = after
    return {name: torch.stack(tokens, dim=1) == batch.target[:, 1:] for name, tokens in written.items()}


def sharpen(model: AttentionSeq2Seq, sharpness: float) -> None:
    """Multiply the scores of a translator before the softmax."""
    plain = model.decoder.scores
    model.decoder.scores = lambda q, k: sharpness * plain(q, k)


def measure(score: str, sharpness: float, seed: int) -> dict[str, float]:
    """Train one translator; return its shares of exact translations and of right links."""
    pairs = data.number_pairs("en", "de", split="train", count=4000)
    source_words = data.Vocabulary.from_texts(pair.source for pair in pairs)
    target_words = data.Vocabulary.from_texts(pair.target for pair in pairs)
    torch.manual_seed(seed)
    model = AttentionSeq2Seq(len(source_words), len(target_words), 32, 64, score=score)
    if sharpness != 1:
        sharpen(model, sharpness)
    epochs = [
        data.batches(pairs, source_words, target_words, batch_size=BATCH, seed=10 * (seed - SEEDS[0]) + n)
        for n in range(EPOCHS)
    ]
    train(model, [batch for epoch in epochs for batch in epoch])

    asked = data.number_pairs("en", "de", split="test", count=300)
    shifted = [data.Pair(f"and {pair.source}", pair.target) for pair in asked]
    exam, changed = (next(data.batches(some, source_words, target_words, batch_size=300)) for some in (asked, shifted))
    weights = weights_of(model, exam)
    chosen = weights.argmax(dim=-1).tolist()
    words = meanings()
    links: dict[str, list[bool]] = {"digits": [], "units": []}
    for row, pair in zip(chosen, asked, strict=True):
        tokens = data.tokenize(pair.target)
        truth = true_links(data.tokenize(pair.source), tokens, words)
        for place, right, token in zip(row, truth, tokens, strict=False):
            if right is not None:
                links["units" if token.strip("#") in UNITS else "digits"].append(place == right)
    masked: dict[str, float] = {}
    for name, right in (right_when_masked(model, exam) if score in MASKED else {}).items():
        hits: dict[str, list[bool]] = {"digits": [], "units": [], "und": []}
        for row, pair in zip(right.tolist(), asked, strict=True):
            for hit, token in zip(row, data.tokenize(pair.target), strict=False):
                word = token.strip("#")
                hits["units" if word in UNITS else "und" if word == "und" else "digits"].append(hit)
        masked |= {f"{kind} without {name}": statistics.mean(shares) for kind, shares in hits.items()}
    return {
        "exact": exact(model, exam),
        "with and": exact(model, changed),
        "links of digits": statistics.mean(links["digits"]),
        "links of units": statistics.mean(links["units"]),
        "largest weight": weights.amax(dim=-1)[exam.target_mask[:, 1:]].mean().item(),
        **masked,
    }


def main() -> None:
    """Train every score from every seed and record what each reaches."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", type=Path, required=True)
    path = parser.parse_args().record
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    found: dict[str, dict[str, list[float]]] = {}
    for title, (score, sharpness) in RUNS.items():
        runs = [measure(score, sharpness, seed) for seed in SEEDS]
        found[title] = {name: [round(run[name], 3) for run in runs] for name in runs[0]}
    path.write_text(json.dumps({"command": COMMAND, "scores": found}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
