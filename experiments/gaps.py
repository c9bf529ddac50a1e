"""Train lesson 08's model with 15% of the tokens chosen and with any share of them: what it says when all words are hidden.

    python experiments/gaps.py --record experiments/results/gaps.json

Takes about five minutes on one core.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
from pathlib import Path

import torch
from torch import Tensor

from tfcourse.bert import Bert, MaskedLanguageHead, linear_warmup_rate, mask_tokens, masked_language_loss
from tfcourse.data import BOS, EOS, PAD, UNK
from tfcourse.number_names import NumberNames

COMMAND = "python experiments/gaps.py --record experiments/results/gaps.json"
NAMES = NumberNames()
V = len(NAMES.vocabulary)
SIZES = {"d_model": 64, "n_heads": 4, "n_layers": 2, "d_ff": 256, "max_length": 16}
SEEDS, STEPS, LENGTH = range(3), 500, 6
# The smallest and largest probability of a token to be chosen; each batch draws its own.
PROBABILITIES = {"15%": (0.15, 0.15), "any share": (0.05, 1.0)}
TEXTS = NAMES.batch(random.Random(0).sample(range(10**6), 20_000))


def step_loss(model: Bert, head: MaskedLanguageHead, bounds: tuple[float, float], generator: torch.Generator) -> Tensor:
    """Return the masked-language loss of a new batch."""
    tokens = TEXTS[torch.randint(len(TEXTS), (64,), generator=generator)]  # (B, T)
    low, high = bounds
    probability = low + (high - low) * torch.rand((), generator=generator).item()
    inputs, labels = mask_tokens(
        tokens, tokens <= UNK, mask_id=NAMES.mask, vocab_size=V, probability=probability, generator=generator
    )
    hidden, _ = model(inputs, mask=tokens != PAD)
    return masked_language_loss(head(hidden, model.embeddings.token_embedding.weight), labels)


def train(seed: int, bounds: tuple[float, float]) -> tuple[Bert, MaskedLanguageHead]:
    """Train a model as lesson 08 does."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model, head = Bert(V, **SIZES), MaskedLanguageHead(SIZES["d_model"], V)
    optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()], fused=True)
    for step in range(STEPS):
        optimizer.param_groups[0]["lr"] = linear_warmup_rate(step, peak=3e-3, warmup=50, total=STEPS)
        optimizer.zero_grad()
        step_loss(model, head, bounds, generator).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return model.eval(), head


@torch.no_grad()
def log_probabilities(model: Bert, head: MaskedLanguageHead, inside: Tensor) -> Tensor:
    """Return what the model says at each position of texts (n, T) without their ends, (n, T, V)."""
    begin, end = (torch.full((len(inside), 1), token) for token in (BOS, EOS))
    hidden, _ = model(torch.cat([begin, inside, end], dim=1))
    logits: Tensor = head(hidden[:, 1:-1], model.embeddings.token_embedding.weight)
    return logits.log_softmax(dim=-1)


def distance(model: Bert, head: MaskedLanguageHead) -> float:
    """Return the mean divergence from the true shares to the model's where all tokens are hidden, in nats."""
    hidden = torch.full((LENGTH,), NAMES.mask)
    _, shares = NAMES.fitting(hidden)  # (T, V)
    log_p = log_probabilities(model, head, hidden[None])[0]
    divergence: Tensor = (torch.special.xlogy(shares, shares) - shares * log_p).sum(dim=-1)  # (T,)
    return divergence.mean().item()


def written_in_turn(model: Bert, head: MaskedLanguageHead, n: int = 400) -> float:
    """Return the share of texts, filled from left to right, that name a number."""
    lengths = (TEXTS > UNK).sum(dim=1)[:n]
    valid = 0
    for length in sorted(set(lengths.tolist())):
        text = torch.full((int((lengths == length).sum()), length), NAMES.mask)
        for position in range(length):
            p = log_probabilities(model, head, text)[:, position].exp()  # (n, V)
            p[:, : UNK + 1] = p[:, NAMES.mask] = 0
            text[:, position] = torch.multinomial(p, 1)[:, 0]
        valid += sum(NAMES.is_name(row) for row in text)
    return valid / n


def main() -> None:
    """Train, measure and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", type=Path, required=True)
    path = parser.parse_args().record
    torch.set_num_threads(1)
    runs: dict[str, dict[str, list[float]]] = {}
    for name, bounds in PROBABILITIES.items():
        trained = [train(seed, bounds) for seed in SEEDS]
        runs[name] = {
            "distance": [round(distance(*pair), 3) for pair in trained],
            "in turn": [round(written_in_turn(*pair), 3) for pair in trained],
        }
        print(
            name, {key: (values, round(statistics.mean(values), 3)) for key, values in runs[name].items()}, flush=True
        )
    path.write_text(json.dumps({"command": COMMAND, "runs": runs}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
