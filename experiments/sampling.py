"""What filters do to a model's own distribution, on names of numbers and on prose, over several seeds: what lesson 07 reads.

    python experiments/sampling.py --record tfcourse/recorded/sampling.json

Each seed trains two small GPTs: one on names of numbers, one on the characters of Python's language reference (`tfcourse.data.prose`),
whose last tenth is never trained on. Every rule writes texts with every model. About four minutes on one core.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tfcourse.bert import linear_warmup_rate
from tfcourse.data import (
    BOS,
    EOS,
    PAD,
    Vocabulary,
    detokenize,
    number_split,
    number_to_words,
    pad_batch,
    prose,
)
from tfcourse.gpt import Gpt
from tfcourse.sampling import dry_penalty, sampler_chain

COMMAND = "python experiments/sampling.py --record tfcourse/recorded/sampling.json"
SEEDS = (0, 1, 2)
TEMPERATURES = (0.5, 0.7, 0.8, 0.9, 1.0, 1.5, 2.0)
# One filter of each family, on the model's own distribution: T = 1.
FILTERS: dict[str, list[tuple[str, dict[str, float]]]] = {
    "top-k": [("top_k", {"k": k}) for k in (9, 20)],
    "top-p": [("top_p", {"p": p}) for p in (0.9, 0.95)],
    "min-p": [("min_p", {"p": p}) for p in (0.1, 0.05)],
    "typical": [("locally_typical", {"mass": mass}) for mass in (0.9, 0.95)],
}
HOT = ("temperature", {"t": 2.0})
# The same two steps in both orders.
ORDERS: dict[str, list[tuple[str, dict[str, float]]]] = {
    "temperature, top-p": [HOT, ("top_p", {"p": 0.9})],
    "top-p, temperature": [("top_p", {"p": 0.9}), HOT],
    "temperature, min-p": [HOT, ("min_p", {"p": 0.1})],
    "min-p, temperature": [("min_p", {"p": 0.1}), HOT],
}
WINDOW, PROMPT = 96, 16
NEW = WINDOW - PROMPT
STEPS, TEXTS = 1200, 64
NAMES, NAME_STEPS = 300, 300


def trained(model: Gpt, draw: Callable[[], Tensor], steps: int, peak: float) -> Gpt:
    """Train on batches that `draw` makes; padding is no target."""
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.01, fused=True)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = linear_warmup_rate(step + 1, peak=peak, warmup=max(1, steps // 20), total=steps + 1)
        batch = draw()
        logits = model(batch[:, :-1])[0].transpose(1, 2)  # (B, V, T)
        loss = torch.nn.functional.cross_entropy(logits, batch[:, 1:], ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


@torch.no_grad()
def written(
    model: Gpt, prompt: Tensor, chain: Any, new: int, seed: int, eos: int | None = None
) -> tuple[Tensor, float]:
    """Texts drawn through a chain, (B, new), and the mean entropy in bits of the distributions that they were drawn from, per text."""
    generator = torch.Generator().manual_seed(seed)
    text, over = prompt, torch.zeros(len(prompt), dtype=torch.bool)
    bits, (logits, cache) = torch.zeros(len(prompt)), model(prompt)
    for _ in range(new):
        p = sampler_chain(logits[:, -1], text, chain, generator).softmax(-1)  # (B, V)
        bits += (-torch.xlogy(p, p).sum(-1) / math.log(2)).masked_fill(over, 0)
        token = torch.multinomial(p, 1, generator=generator).masked_fill(over[:, None], PAD)
        text = torch.cat([text, token], dim=1)
        if eos is not None:
            over |= token[:, 0] == eos
        logits, cache = model(token, cache)
    return text[:, prompt.shape[1] :], bits.mean().item()


@cache
def tokens_of_prose() -> tuple[list[str], Tensor, Tensor]:
    """The characters that occur, and the tokens of the nine tenths to read and of the last tenth."""
    text = prose()
    cut = len(text) * 9 // 10
    characters = sorted(set(text))
    number = {character: token for token, character in enumerate(characters, start=1)}  # 0 is padding
    read, test = (torch.tensor([number[character] for character in part]) for part in (text[:cut], text[cut:]))
    return characters, read, test


@cache
def small_names() -> dict[str, int]:
    return {number_to_words(n, "en"): n for n in range(1000)}


def is_name(text: str) -> bool:
    """Whether a text is the name of a number below a million."""
    small = small_names()
    if text in small:
        return True
    thousands, middle, rest = text.partition(" thousand")
    rest = rest.removeprefix(",").removeprefix(" and").strip()
    if not middle or not small.get(thousands) or (rest and rest not in small):
        return False
    return bool(number_to_words(small[thousands] * 1000 + small.get(rest, 0), "en") == text)


class NumberTask:
    """Names of numbers below a million; a text is valid if it is such a name."""

    def __init__(self, seed: int) -> None:
        numbers = torch.randperm(1_000_000, generator=torch.Generator().manual_seed(seed)).tolist()
        names = [number_to_words(n, "en") for n in numbers[:8000] if number_split(n) == "train"][:4000]
        self.vocabulary = Vocabulary.from_texts(names)
        texts, _ = pad_batch([[BOS, *self.vocabulary.encode(name), EOS] for name in names])
        random = torch.Generator().manual_seed(seed)
        torch.manual_seed(seed)
        model = Gpt(len(self.vocabulary), 16, d_model=64, n_heads=4, n_layers=2)
        self.model = trained(
            model, lambda: texts[torch.randint(len(texts), (64,), generator=random)], NAME_STEPS, peak=4e-3
        )

    def marks(self, chain: Any) -> list[float]:
        """The share of valid texts, and the bits of choice per text."""
        prompt = torch.full((NAMES, 1), BOS)
        texts, bits = written(self.model, prompt, chain, 14, 0, EOS)
        valid = 0
        for ids in texts.tolist():
            pieces = self.vocabulary.pieces(ids[: ids.index(EOS)]) if EOS in ids else []
            valid += is_name(detokenize(pieces))
        return [round(valid / NAMES, 4), round(bits, 3)]


class ProseTask:
    """Python's language reference; a word is valid if the reference has it anywhere."""

    def __init__(self, seed: int) -> None:
        self.characters, read, test = tokens_of_prose()
        self.words = set(words_of(prose()))
        random = torch.Generator().manual_seed(seed)
        torch.manual_seed(seed)
        model = Gpt(len(self.characters) + 1, WINDOW, d_model=128, n_heads=4, n_layers=2)

        def draw() -> Tensor:
            return read[torch.randint(len(read) - WINDOW, (12, 1), generator=random) + torch.arange(WINDOW)]

        self.model = trained(model, draw, STEPS, peak=3e-3)
        starts = torch.arange(TEXTS)[:, None] * ((len(test) - WINDOW) // TEXTS)
        self.windows = test[starts + torch.arange(WINDOW)]  # (B, WINDOW)

    def read_text(self, ids: Sequence[int] | Tensor) -> str:
        return "".join(self.characters[token - 1] if token else "?" for token in map(int, ids))

    def marks(self, chain: Any) -> list[float]:
        """The share of written words of four letters or more that exist, and the bits of choice per character."""
        texts, bits = written(self.model, self.windows[:, :PROMPT], chain, NEW, 0)
        words = [word for row in texts for word in words_of(whole_words(self.read_text(row)))]
        return [round(sum(word in self.words for word in words) / len(words), 4), round(bits / NEW, 3)]

    @torch.no_grad()
    def greedy(self, *, dry: bool) -> list[list[int]]:
        """The most probable token, again and again, with or without a penalty for repetition."""
        text = self.windows[:, :PROMPT]  # (B, T)
        logits, cache = self.model(text)
        while text.shape[1] < WINDOW:
            last = logits[:, -1]
            if dry:
                last = dry_penalty(last, text, multiplier=1.0, base=1.75, allowed=8)
            token = last.argmax(-1, keepdim=True)  # (B, 1)
            text = torch.cat([text, token], dim=1)
            logits, cache = self.model(token, cache)
        rows: list[list[int]] = text[:, PROMPT:].tolist()
        return rows

    @torch.no_grad()
    def probabilities(self, row: int, ids: Sequence[int]) -> list[float]:
        """What the model gives to each token of a continuation."""
        text = torch.cat([self.windows[row, :PROMPT], torch.tensor(ids)])
        p = self.model(text[None, :-1])[0][0].softmax(-1).gather(1, text[1:, None])[PROMPT - 1 :, 0]
        return [round(value, 4) for value in p.tolist()]


def whole_words(text: str) -> str:
    """A text without its first and its last word, which may have been cut."""
    return re.sub(r"^[A-Za-z]+|[A-Za-z]+$", "", text)


def words_of(text: str) -> list[str]:
    """Whole words of four letters or more: every letter by itself occurs somewhere, and many pairs do."""
    return [word.lower() for word in re.findall(r"(?<![A-Za-z])[A-Za-z]{4,}(?![A-Za-z])", text)]


def loop_length(ids: Sequence[int]) -> int:
    """The shortest period that the last tokens repeat, 24 of them or two periods, whichever is longer; 0 if there is none."""
    for period in range(1, len(ids) // 2 + 1):
        end = ids[-max(24, 2 * period) :]
        if len(end) > period and end[period:] == end[:-period]:
            return period
    return 0


def all_marks(task: NumberTask | ProseTask) -> dict[str, Any]:
    return {
        "temperature": [task.marks([("temperature", {"t": t})]) for t in TEMPERATURES],
        **{name: [task.marks([step]) for step in steps] for name, steps in FILTERS.items()},
        **{name: task.marks(chain) for name, chain in ORDERS.items()},
    }


def greedy_record(task: ProseTask) -> dict[str, Any]:
    """How often greedy texts loop, and one of them beside the real text."""
    plain, penalised = task.greedy(dry=False), task.greedy(dry=True)
    looping = [row for row, ids in enumerate(plain) if loop_length(ids)]
    row = min(looping, key=lambda row: (abs(loop_length(plain[row]) - 20), row))
    real = task.windows[row, PROMPT:].tolist()
    return {
        "loops": round(len(looping) / TEXTS, 3),
        "loops_with_dry": round(sum(loop_length(ids) > 0 for ids in penalised) / TEXTS, 3),
        "period": loop_length(plain[row]),
        "prompt": task.read_text(task.windows[row, :PROMPT]),
        "text": task.read_text(plain[row]),
        "with_dry": task.read_text(penalised[row]),
        "real": task.read_text(real),
        "p_text": task.probabilities(row, plain[row]),
        "p_real": task.probabilities(row, real),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, required=True, help="file to write")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    record: dict[str, Any] = {
        "generated": COMMAND,
        "seeds": list(SEEDS),
        "temperatures": list(TEMPERATURES),
        "filters": {name: [next(iter(values.values())) for _, values in steps] for name, steps in FILTERS.items()},
        "names": [],
        "prose": [],
        "greedy": [],
    }
    for seed in SEEDS:
        record["names"].append(all_marks(NumberTask(seed)))
        print(seed, record["names"][-1], flush=True)
        task = ProseTask(seed)
        record["prose"].append(all_marks(task))
        record["greedy"].append(greedy_record(task))
        print(seed, record["prose"][-1], record["greedy"][-1], flush=True)
        arguments.record.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
