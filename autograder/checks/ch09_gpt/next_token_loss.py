"""The check of ``next_token_loss``: each place against the token after it."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch05_transformer.training_targets import READY_LOSSES
from autograder.checks.combined_rows import also_asking
from tfcourse import gpt


def whole_texts(draw: Draw) -> Case:
    """Texts of which every token counts."""
    b, t, v = draw.sizes(3, low=4)
    return Case({"logits": 2 * draw.normal(b, t, v), "tokens": draw.integers(0, v, b, t)})


def _padded(draw: Draw, pad: int) -> Case:
    """Texts of several lengths; no token but padding has its number."""
    b, t, v = 3, 7, 6
    tokens = draw.integers(0, v - 1, b, t)
    tokens = tokens + (tokens >= pad)
    ends = 2 + draw.permutation(5)[:b]
    return Case(
        {
            "logits": 2 * draw.normal(b, t, v),
            "tokens": tokens.masked_fill(torch.arange(t) >= ends[:, None], pad),
            "pad": pad,
        }
    )


def padded(draw: Draw) -> Case:
    """Padding is 0."""
    return _padded(draw, 0)


def other_padding(draw: Draw) -> Case:
    """Padding has another number, and token 0 counts."""
    return _padded(draw, int(draw.integers(1, 6)))


def one_token(draw: Draw) -> Case:
    """Texts of a single token: there is nothing to predict."""
    return Case({"logits": draw.normal(3, 1, 5), "tokens": draw.integers(0, 5, 3, 1)})


def large_logits(draw: Draw) -> Case:
    """Logits whose exponentials overflow, and a single target, whose probability is rounded to zero in float32."""
    tokens = draw.integers(0, 5, 1, 2)
    logits = (200 + 2 * draw.normal(1, 2, 5)).scatter(2, tokens[:, 1:, None], 50.0)
    return Case({"logits": logits, "tokens": tokens})


def more(draw: Draw, size: int) -> Case:
    """More and longer texts."""
    return Case({"logits": draw.normal(size, size + 1, 5), "tokens": draw.integers(0, 5, size, size + 1)})


def any_texts(draw: Draw) -> Case:
    """Sizes that are all equal, or differ, or are small: one text, and one token among them."""
    b, t, v = (
        (3, 3, 3) if int(draw.integers(0, 4)) == 0 else (draw.integers(1, 5, 3) + torch.tensor([0, 0, 1])).tolist()
    )
    return Case({"logits": 2 * draw.normal(b, t, v), "tokens": draw.integers(0, v, b, t)})


NEXT_TOKEN_LOSS = Exercise(
    reference=gpt.next_token_loss,
    rows=(
        rows.numbers(
            2.75,
            whole_texts,
            whole_texts,
            gradients=False,
            title="The mean of -log p of each next token, of all texts together.",
        ),
        rows.numbers(1.5, padded, other_padding, name="padding", gradients=False, title="Padding is no target."),
        also_asking(
            rows.edge(
                0.5,
                one_token,
                large_logits,
                whole_texts,
                name="edges",
                title="Texts of one token have a loss of 0, large logits and many sizes work, and gradients are right.",
            ),
            rows.many(0, any_texts, count=32, title=""),
        ),
        rows.inputs_kept(0.5, padded),
        rows.no_loop(0.25, more, over="texts or positions"),
        rows.device(0.5, whole_texts),
    ),
    forbidden=READY_LOSSES,
    rule_case=(whole_texts, padded),
)
