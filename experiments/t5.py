"""Three tasks for one model, with and without span corruption first, and how its weights begin: what lesson 10 reads.

    python experiments/t5.py --record tfcourse/recorded/t5.json

A small T5 learns to translate numbers from English to German and back, and to write dates the ISO way. About ten minutes on one core.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tfcourse.bert import linear_warmup_rate
from tfcourse.data import BOS, EOS, PAD, Pair, Vocabulary, date_pairs, number_pairs, pad_batch
from tfcourse.t5 import T5, corrupt_spans, random_span_mask, to_text

COMMAND = "python experiments/t5.py --record tfcourse/recorded/t5.json"
SIZES: dict[str, Any] = {"d_model": 64, "n_heads": 4, "d_head": 16, "d_ff": 128, "n_layers": 2}
TASKS = ("translate English to German", "translate German to English", "write the date")
LABELS, SEEDS = (200, 600, 1500), (0, 1)
STEPS, STEPS_BEFORE, BATCH, EXAMINED = 800, 600, 48, 60
SPREADS = (1.0, 4.0, 8.0)
N_SENTINELS = 12


def pairs_of(task: str, split: Any, count: int) -> list[Pair]:
    """Pairs of a task, without its prefix."""
    if task == TASKS[2]:
        return date_pairs(split=split, count=count, locales=("en", "de", "fr"))
    pairs = number_pairs("en", "de", split=split, count=count, largest=9999)
    return [Pair(target, source) for source, target in pairs] if task == TASKS[1] else pairs


class Texts:
    """The pairs of all tasks, and one vocabulary with sentinels for all of them."""

    def __init__(self) -> None:
        self.train = {task: pairs_of(task, "train", max(LABELS)) for task in TASKS}
        self.test = {task: pairs_of(task, "test", EXAMINED) for task in TASKS}
        self.alone = [text for pairs in self.train.values() for pair in pairs for text in pair]
        read = Vocabulary.from_texts([*self.alone, *(to_text(task, {"": ""}) for task in TASKS)])
        marks = [f"<extra_{number}>" for number in range(N_SENTINELS)]
        self.vocabulary = Vocabulary([*read.tokens[4:], *marks])
        self.sentinels = range(len(self.vocabulary) - N_SENTINELS, len(self.vocabulary))

    def labelled(self, labels: int) -> list[tuple[list[int], list[int]]]:
        """Source and target of so many pairs of each task, with prefixes."""
        return [self.pair(task, pair) for task in TASKS for pair in self.train[task][:labels]]

    def pair(self, task: str, pair: Pair) -> tuple[list[int], list[int]]:
        """A pair as tokens: its source behind the task's name."""
        encode = self.vocabulary.encode
        return encode(to_text(task, {"": pair.source}), eos=True), encode(pair.target, bos=True, eos=True)

    def corrupted(self, text: str, generator: torch.Generator) -> tuple[list[int], list[int]]:
        """A text without its spans, and the spans: a question that nobody had to label."""
        tokens = torch.tensor(self.vocabulary.encode(text, bos=True))
        noise = random_span_mask(len(tokens), generator, noise_density=0.3, mean_span_length=2.0)
        source, target = corrupt_spans(tokens, noise, self.sentinels)
        return [*source.tolist(), EOS], [BOS, *target.tolist(), EOS]


def loss_of(model: T5, group: Sequence[tuple[list[int], list[int]]]) -> Tensor:
    """The mean surprise at the targets' tokens."""
    source, mask = pad_batch([source for source, _ in group])
    target, _ = pad_batch([target for _, target in group])
    logits = model(source, target[:, :-1], mask)
    return nn.functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD)


def train(model: T5, steps: int, draw: Any) -> list[float]:
    """Train on the groups that `draw` draws; return the loss of every step."""
    optimizer, losses = torch.optim.AdamW(model.parameters(), fused=True), []
    for step in range(steps):
        rate = linear_warmup_rate(step + 1, peak=3e-3, warmup=steps // 10, total=steps + 1)
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss = loss_of(model.train(), draw())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


@torch.no_grad()
def right(model: T5, texts: Texts, task: str) -> float:
    """The share of unseen texts of a task that are answered rightly, token by token, greedily."""
    pairs = [texts.pair(task, pair) for pair in texts.test[task]]
    source, mask = pad_batch([source for source, _ in pairs])
    memory = model.eval().encode(source, mask)
    written = torch.full((len(pairs), 1), BOS)
    for _ in range(max(len(target) for _, target in pairs)):
        nxt = model.decode(written, memory, mask)[:, -1].argmax(dim=-1, keepdim=True)
        written = torch.cat([written, nxt], dim=1)
    answers = [row[1 : row.index(EOS) + 1] if EOS in row else row[1:] for row in written.tolist()]
    return round(sum(answer == target[1:] for answer, (_, target) in zip(answers, pairs, strict=True)) / len(pairs), 4)


def run(texts: Texts, labels: int, seed: int, *, steps_before: int, steps: int = STEPS) -> dict[str, Any]:
    """Train a model on labelled texts, after span corruption or not, and examine it."""
    torch.manual_seed(seed)
    chance, draws = random.Random(seed), torch.Generator().manual_seed(seed)
    model, labelled = T5(len(texts.vocabulary), **SIZES), texts.labelled(labels)
    before = train(model, steps_before, lambda: [texts.corrupted(t, draws) for t in chance.sample(texts.alone, BATCH)])
    after = train(model, steps, lambda: chance.sample(labelled, BATCH))
    shares = [right(model, texts, task) for task in TASKS]
    print(labels, seed, steps_before, shares, f"{after[-1]:.3f}", flush=True)
    return {"right": shares, "before": [round(x, 3) for x in before[::20]], "after": [round(x, 3) for x in after[::20]]}


def beginnings(texts: Texts, steps: int = 300) -> dict[str, list[float]]:
    """The loss over the first steps, with queries that begin as T5's do, and so many times larger."""
    found = {}
    for spread in SPREADS:
        torch.manual_seed(0)
        chance, model, labelled = random.Random(0), T5(len(texts.vocabulary), **SIZES), texts.labelled(max(LABELS))
        with torch.no_grad():
            for name, weight in model.named_parameters():
                if "q_proj" in name:
                    weight *= spread
        losses = train(model, steps, lambda chance=chance, labelled=labelled: chance.sample(labelled, BATCH))
        found[str(spread)] = [round(sum(losses[k : k + 10]) / 10, 3) for k in range(0, steps, 10)]
        print(spread, found[str(spread)][-1], flush=True)
    return found


def main() -> None:
    """Train, examine, and write the record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--record", type=Path, required=True, help="where to write what the lesson reads")
    file = parser.parse_args().record
    torch.set_num_threads(1)
    texts = Texts()
    record: dict[str, Any] = {
        "beginnings": beginnings(texts),
        "runs": {
            str(labels): {
                name: [run(texts, labels, seed, steps_before=before) for seed in SEEDS]
                for name, before in (("from scratch", 0), ("spans first", STEPS_BEFORE))
            }
            for labels in LABELS
        },
        "vocabulary": len(texts.vocabulary),
        "generated": f"by {COMMAND}; run it again, do not change this file",
    }
    file.write_text(json.dumps(record, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
