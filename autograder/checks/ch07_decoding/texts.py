"""Share logits, and texts in which tokens occur once, often or never, among the checks of penalties."""

from __future__ import annotations

import torch
from torch import Tensor

from autograder.checking.draw import Case, Draw


def said(draw: Draw) -> dict[str, Tensor]:
    """Logits of both signs, and a text: in each row one token comes three times, two come once, the others not at all."""
    b, more = draw.sizes(2, low=3)
    vocab_size = 5 + more
    logits = draw.normal(b, vocab_size, scale=1.5)
    three = torch.stack([draw.permutation(vocab_size)[:3] for _ in range(b)])
    tokens = three[:, [0, 1, 0, 2, 0]]
    # The logits of what was said: one positive, one negative, one either.
    for row in range(b):
        logits[row, tokens[row, 0]] = logits[row, tokens[row, 0]].abs() + 0.3
        logits[row, tokens[row, 1]] = -logits[row, tokens[row, 1]].abs() - 0.3
    return {"logits": logits, "tokens": tokens}


def holes_and_said(draw: Draw) -> dict[str, Tensor]:
    """The same, with a token excluded that was said and one that was not, and 32-bit tokens."""
    case = said(draw)
    logits, tokens = case["logits"], case["tokens"]
    unsaid = torch.ones_like(logits).scatter(1, tokens, 0).argmax(dim=1, keepdim=True)
    return {
        "logits": logits.scatter(1, tokens[:, 3:4], -torch.inf).scatter(1, unsaid, -torch.inf),
        "tokens": tokens.to(torch.int32),
    }


def one_text_for_all(case: Case) -> Case:
    """The same case with a text of one row for all rows of logits: it would go to the first row alone, without a word."""
    return case.with_arguments(tokens=case.arguments["tokens"][:1])


def any_text(draw: Draw, shortest: int = 0) -> dict[str, Tensor]:
    """Logits of both signs and texts of any length, in which tokens come again and again."""
    b, t, v = int(draw.integers(1, 4)), int(draw.integers(shortest, 7)), int(draw.integers(1, 6))
    return {"logits": draw.normal(b, v, scale=2.0), "tokens": draw.integers(0, v, b, t)}
