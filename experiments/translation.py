"""One task, six translators: plain, with additive attention, with each of Luong's scores, and a Transformer; same data, same budget.

    python experiments/translation.py [--jobs 2] [--models NAME ...] [--steps N] [--json FILE] [--record FILE] [--tune]

All translate numbers from English into German, up to 999,999,999,999, and are tested on numbers that no training saw. All are
trained on the same pairs in the same order, with Adam, the same schedule (a tenth of the steps up, then down to zero, both straight)
and gradients clipped at norm 1. Widths are such that they have about as many parameters. The plain one, which the others are to beat,
has the peak learning rate that suits it best of those that ``--tune`` tries on the validation pairs (``--json`` writes what each reaches);
theirs are ordinary ones that nobody has tuned.

``--json`` writes the table for ``write_docs.py``. ``--record`` writes learning curves, exact matches by length, and where each translator
looked in some unseen sentences: the lessons read it with ``tfcourse.data.recorded_translation()``.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from time import process_time
from typing import Any

import torch
from torch import Tensor, nn

from tfcourse.alignment import AttentionSeq2Seq
from tfcourse.data import (
    Batch,
    Pair,
    Vocabulary,
    batches,
    number_pairs,
    number_split,
    number_to_words,
    pad_batch,
    tokenize,
)
from tfcourse.lessons.explorers.heads import record_heads
from tfcourse.seq2seq import Seq2Seq
from tfcourse.training import cross_entropy, shift_right
from tfcourse.transformer import Transformer
from tfcourse.translation import greedy_decode

# `measure` stands beside the benchmarks of the grader.
sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))
from measure import Figures, Target, machine

# What --tune tries.
RATES = (1e-3, 3e-3, 1e-2, 3e-2)
# Unseen numbers whose alignments are recorded: units before tens, at one place and at several.
SHOWN = (347, 62_625, 235_938, 21_131_134)
_WARMUP = 0.1
_CLIP = 1.0
_SMOOTHED = 25
_EVALUATIONS = 8
_MOST_WORDS = 28
_BIN = 4
# More epochs than any budget has: so two seeds never have an epoch's order in common.
_EPOCHS = 1000
_FILES = ("--json", "--record")


@dataclass(frozen=True)
class Task:
    """What is to be translated.

    Attributes:
        source: language of the sources.
        target: language of the targets.
        largest: the largest number.
        train: pairs to train on.
        validation: pairs that learning rates are chosen by, and curves are drawn on.
        test: pairs that nothing is chosen by.
    """

    source: str = "en"
    target: str = "de"
    largest: int = 10**12 - 1
    train: int = 5000
    validation: int = 300
    test: int = 1000

    def pairs(self, split: str) -> list[Pair]:
        """Return the pairs of a split."""
        return number_pairs(
            self.source,
            self.target,
            split=split,  # type: ignore[arg-type]
            count=getattr(self, split),
            largest=self.largest,
        )


@dataclass(frozen=True)
class Budget:
    """What every translator may spend.

    Attributes:
        steps: steps of training.
        batch_size: pairs a step.
        seed: draws the initial weights and the order of the pairs.
    """

    steps: int = 1200
    batch_size: int = 64
    seed: int = 0


@dataclass(frozen=True)
class Translator:
    """One of those that are compared.

    Attributes:
        title: what tables and figures call it.
        chapter: where the course builds it.
        make: makes the model for a number of source and of target tokens.
        rate: its peak learning rate.
    """

    title: str
    chapter: str
    make: Callable[[int, int], nn.Module]
    rate: float


def _attention(score: str, source: int, target: int) -> nn.Module:
    return AttentionSeq2Seq(source, target, 64, 128, score=score)


def _plain(source: int, target: int) -> nn.Module:
    return Seq2Seq(source, target, 64, 128)


def _transformer(source: int, target: int) -> nn.Module:
    return Transformer(
        source,
        target,
        d_model=64,
        n_heads=4,
        d_ff=256,
        n_layers=2,
        dropout=0.0,
        pre_norm=True,
        tie_weights=False,
    )


TRANSLATORS = {
    "seq2seq": Translator("plain sequence to sequence", "01", _plain, 1e-2),
    "additive": Translator("attention, Bahdanau's additive score", "02", partial(_attention, "additive"), 3e-3),
    "dot": Translator("attention, Luong's dot score", "02", partial(_attention, "dot"), 3e-3),
    "general": Translator("attention, Luong's general score", "02", partial(_attention, "general"), 3e-3),
    "location": Translator("attention, Luong's location score", "02", partial(_attention, "location"), 3e-3),
    "transformer": Translator("Transformer", "05", _transformer, 2e-3),
}


@dataclass
class Run:
    """What came of training one translator.

    Attributes:
        name: its key in ``TRANSLATORS``.
        title: what figures call it.
        chapter: where the course builds it.
        rate: the peak learning rate.
        parameters: how many numbers it learns.
        seconds: processor time of the training alone.
        loss: pairs of a step and the mean training loss of the steps since the last entry.
        exact: triples of a step, the seconds until then, and the share of the validation pairs that were translated without any fault.
        test: the share of the test pairs.
        by_length: the same by the length of the source.
        looked: for each of ``SHOWN``, what it wrote and where it looked meanwhile; None for a translator that cannot look back.
    """

    name: str
    title: str
    chapter: str
    rate: float
    parameters: int = 0
    seconds: float = 0.0
    loss: list[tuple[int, float]] = field(default_factory=list)
    exact: list[tuple[int, float, float]] = field(default_factory=list)
    test: float = 0.0
    by_length: list[dict[str, float]] = field(default_factory=list)
    looked: list[dict[str, Any]] | None = None

    def seconds_to(self, share: float) -> float | None:
        """Return after how many seconds so many of the validation pairs were right, or None if they never were."""
        return next((seconds for _, seconds, exact in self.exact if exact >= share), None)


def main() -> None:
    """Train, print the table, and write it if asked to."""
    options = _options()
    task, budget = Task(), Budget(steps=options.steps)
    command = shlex.join(["python", "experiments/translation.py", *_without_files(sys.argv[1:])])
    if options.tune:
        tune(options.models, task, budget, options.jobs, command).tell(options.json)
        return
    runs = train_all([(name, TRANSLATORS[name].rate) for name in options.models], task, budget, options.jobs)
    figures(runs, task, budget, command).tell(options.json)
    if options.record is not None:
        options.record.parent.mkdir(parents=True, exist_ok=True)
        options.record.write_text(record(runs, task, budget, command), encoding="utf-8")


def train_all(plan: Sequence[tuple[str, float]], task: Task, budget: Budget, jobs: int) -> list[Run]:
    """Train translators side by side, each in a process of its own with one thread, and return their runs in the order of the plan."""
    # A fork of a process that has used threads may hang.
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as pool:
        waiting = [pool.submit(train, name, rate, task, budget) for name, rate in plan]
        return [run.result() for run in waiting]


def tune(names: Sequence[str], task: Task, budget: Budget, jobs: int, command: str) -> Figures:
    """Return what every learning rate reaches on the validation pairs."""
    plan = [(name, rate) for name in names for rate in RATES]
    table = Figures("translation_rates", command, ("translator", "peak learning rate", "exact match, validation"))
    table.rows = [(run.title, run.rate, f"{run.exact[-1][2]:.1%}") for run in train_all(plan, task, budget, jobs)]
    return table


def train(name: str, rate: float, task: Task, budget: Budget) -> Run:
    """Train one translator with a peak learning rate, and see what it can do."""
    torch.set_num_threads(1)
    torch.manual_seed(budget.seed)
    pairs = {split: task.pairs(split) for split in ("train", "validation", "test")}
    source = Vocabulary.from_texts(pair.source for pair in pairs["train"])
    target = Vocabulary.from_texts(pair.target for pair in pairs["train"])
    translator = TRANSLATORS[name]
    model = translator.make(len(source), len(target))
    run = Run(name, translator.title, translator.chapter, rate, sum(p.numel() for p in model.parameters()))
    optimizer = torch.optim.Adam(model.parameters())
    losses: list[float] = []
    begin = process_time()
    for step, batch in enumerate(_endless(pairs["train"], source, target, budget), start=1):
        for group in optimizer.param_groups:
            group["lr"] = rate * schedule(step, budget.steps)
        logits = model(batch.source, batch.target[:, :-1], batch.source_mask)
        loss = cross_entropy(logits, batch.target[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), _CLIP)
        optimizer.step()
        losses.append(loss.item())
        if step % _SMOOTHED == 0:
            run.loss.append((step, sum(losses) / len(losses)))
            losses.clear()
        if step % max(1, budget.steps // _EVALUATIONS) == 0 or step == budget.steps:
            # What is spent on looking is not counted as training.
            spent = process_time() - begin
            right = exact_matches(translate(model, pairs["validation"], source, target), pairs["validation"])
            run.exact.append((step, spent, sum(right) / len(right)))
            print(f"{name} {rate:g}: step {step}, {spent:.0f} s, {run.exact[-1][2]:.1%}", file=sys.stderr, flush=True)
            begin = process_time() - spent
        if step == budget.steps:
            break
    run.seconds = process_time() - begin
    right = exact_matches(translate(model, pairs["test"], source, target), pairs["test"])
    run.test = sum(right) / len(right)
    run.by_length = by_length([len(tokenize(pair.source)) for pair in pairs["test"]], right)
    if not isinstance(model, Seq2Seq):
        run.looked = [look(model, shown(number, task), source, target) for number in SHOWN]
    return run


def _endless(pairs: Sequence[Pair], source: Vocabulary, target: Vocabulary, budget: Budget) -> Iterator[Batch]:
    if not pairs:
        raise ValueError("there are no pairs to train on")
    for epoch in count():
        seed = budget.seed * _EPOCHS + epoch
        yield from batches(pairs, source, target, batch_size=budget.batch_size, seed=seed)


def schedule(step: int, steps: int) -> float:
    """Return the part of the peak learning rate that a step, counted from 1, has: straight up, then straight down."""
    up = max(1, round(_WARMUP * steps))
    return min(step / up, (steps - step + 1) / (steps - up + 1))


@torch.no_grad()
def translate(model: nn.Module, pairs: Sequence[Pair], source: Vocabulary, target: Vocabulary) -> list[str]:
    """Return what a translator makes of the sources, decoding greedily."""
    model.eval()
    found = []
    for batch in batches(pairs, source, target, batch_size=250):
        tokens = greedy_decode(model, batch.source, batch.source_mask, max_length=_MOST_WORDS)
        found += [target.decode(row) for row in tokens]
    model.train()
    return found


def exact_matches(translations: Sequence[str], pairs: Sequence[Pair]) -> list[bool]:
    """Return which translations are the wanted ones to the last letter."""
    return [translation == pair.target for translation, pair in zip(translations, pairs, strict=True)]


def by_length(lengths: Sequence[int], right: Sequence[bool]) -> list[dict[str, float]]:
    """Return the share of right ones by length, in bins of four tokens; bins without any are left out."""
    bins: dict[int, list[bool]] = {}
    for length, one in zip(lengths, right, strict=True):
        bins.setdefault((length - 1) // _BIN, []).append(one)
    return [
        {"shortest": _BIN * n + 1, "longest": _BIN * (n + 1), "pairs": len(ones), "exact": sum(ones) / len(ones)}
        for n, ones in sorted(bins.items())
    ]


def shown(number: int, task: Task) -> Pair:
    """Return the pair of a number that no training has seen.

    Raises:
        ValueError: if training may have seen it.
    """
    if number_split(number) != "test":
        raise ValueError(f"{number} belongs to the split {number_split(number)!r}")
    return Pair(number_to_words(number, task.source), number_to_words(number, task.target))


@torch.no_grad()
def look(model: nn.Module, pair: Pair, source: Vocabulary, target: Vocabulary) -> dict[str, Any]:
    """Translate one sentence, and tell where the translator looked for each word that it wrote.

    Returns:
        ``source`` and ``target``, the tokens, EOS as the last of both; ``right``, whether the translation is the wanted one; ``weights``,
        matrices (T, S) by their names: of a decoder with attention one, of a Transformer one for each head of each cross-attention.
    """
    model.eval()
    tokens, mask = pad_batch([source.encode(pair.source, eos=True)])
    written = greedy_decode(model, tokens, mask, max_length=_MOST_WORDS)
    # Row t of the weights belongs to the step that predicts token t of what was written.
    shifted = shift_right(written)
    if isinstance(model, AttentionSeq2Seq):
        weights = {"attention": model.align(tokens, shifted, mask)[0]}
    else:
        weights = _cross_attention(model, tokens, shifted, mask)
    return {
        "source": [*source.pieces(tokens[0]), "<eos>"],
        "target": [*target.pieces(written[0]), "<eos>"][: written.shape[1]],
        "right": target.decode(written[0]) == pair.target,
        "weights": {name: [[round(x, 3) for x in row] for row in matrix.tolist()] for name, matrix in weights.items()},
    }


def _cross_attention(model: nn.Module, source: Tensor, target: Tensor, mask: Tensor) -> Mapping[str, Tensor]:
    layers = [layer.cross_attention for layer in model.decoder_layers]  # type: ignore[union-attr]
    with record_heads(layers) as records:
        model(source, target, mask)
    return {
        f"layer {n + 1}, head {h + 1}": head
        for n, seen in enumerate(records)
        if seen is not None
        for h, head in enumerate(seen.weights[0])
    }


def figures(runs: Sequence[Run], task: Task, budget: Budget, command: str) -> Figures:
    """Return the table."""
    bins = sorted({(part["shortest"], part["longest"]) for run in runs for part in run.by_length})
    table = Figures(
        "translation",
        command,
        (
            "translator",
            "chapter",
            "learning rate",
            "parameters",
            "training, CPU s",
            "CPU s to 95 %",
            "exact match",
            *(f"{shortest:.0f}–{longest:.0f} tokens" for shortest, longest in bins),
        ),
    )
    for run in runs:
        shares = {(part["shortest"], part["longest"]): part["exact"] for part in run.by_length}
        soon = run.seconds_to(0.95)
        table.rows.append(
            (
                run.title,
                run.chapter,
                run.rate,
                f"{run.parameters:,}",
                f"{run.seconds:.0f}",
                "never" if soon is None else f"{soon:.0f}",
                f"{run.test:.1%}",
                *(f"{shares[part]:.0%}" if part in shares else "" for part in bins),
            )
        )
    found = {run.name: run for run in runs}
    if {"seq2seq", "transformer"} <= set(found):
        best, plain = found["transformer"], found["seq2seq"]
        table.targets = [
            Target("Transformer, exact match on unseen numbers", 100 * best.test, 95, unit=" %"),
            Target(
                "Transformer, CPU time until 95 % of the validation pairs are right",
                best.seconds_to(0.95) or float("inf"),
                60,
                most=True,
                unit=" s",
            ),
            Target("Transformer above plain sequence to sequence", 100 * (best.test - plain.test), 10, unit=" points"),
        ]
    table.notes = [
        f"English to German, numbers up to {task.largest:,}: {task.train:,} training pairs, {task.test:,} test pairs; "
        f"{budget.steps:,} steps of {budget.batch_size} pairs on one core. Exact match is the fraction of correct test translations with "
        "greedy decoding; the last columns split it by the length of the source. CPU s to 95 % is the training time until 95 % of the "
        "validation pairs are correct."
    ]
    return table


def record(runs: Sequence[Run], task: Task, budget: Budget, command: str) -> str:
    """Return what the lessons read, as JSON."""
    data = {
        "generated": f"by {command}; change that command and run it again, not this file",
        "machine": machine(),
        "task": asdict(task),
        "budget": asdict(budget),
        "shown": [{"number": number, **shown(number, task)._asdict()} for number in SHOWN],
        "runs": [_rounded(asdict(run)) for run in runs],
    }
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n"


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 5)
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    return [_rounded(part) for part in value] if isinstance(value, list | tuple) else value


def _without_files(arguments: Sequence[str]) -> list[str]:
    """Leave out where results go: it changes nothing about them."""
    kept, skip = [], False
    for word in arguments:
        if not skip and word.partition("=")[0] not in _FILES:
            kept.append(word)
        skip = word in _FILES
    return kept


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=2, help="translators that are trained side by side (default: 2)")
    parser.add_argument(
        "--models", nargs="+", choices=TRANSLATORS, default=list(TRANSLATORS), help="which (default: all)"
    )
    parser.add_argument("--steps", type=int, default=Budget.steps, help=f"of training (default: {Budget.steps})")
    parser.add_argument("--tune", action="store_true", help="only compare learning rates, on the validation pairs")
    parser.add_argument("--json", type=Path, help="where to write the figures for write_docs.py")
    parser.add_argument("--record", type=Path, help="where to write what the lessons read")
    return parser.parse_args()


if __name__ == "__main__":
    main()
