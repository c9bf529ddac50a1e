"""The check of ``sequence_log_probability``: the chain rule, in logarithms."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import gpt


def texts(draw: Draw) -> Case:
    """Short texts of several lengths of vocabulary."""
    b, t, v = draw.sizes(3, low=3)
    first = torch.log_softmax(draw.normal(v), dim=-1)
    return Case({"logits": 2 * draw.normal(b, t, v), "tokens": draw.integers(0, v, b, t), "first": first})


def long_text(draw: Draw) -> Case:
    """A sequence of 400 tokens, whose probability is too small for float32."""
    v = 5
    first = torch.log_softmax(draw.normal(v), dim=-1)
    return Case({"logits": draw.normal(2, 400, v), "tokens": draw.integers(0, v, 2, 400), "first": first})


def one_token(draw: Draw) -> Case:
    """Texts of one token."""
    case = texts(draw)
    return case.with_arguments(logits=case.arguments["logits"][:, :1], tokens=case.arguments["tokens"][:, :1])


def more(draw: Draw, size: int) -> Case:
    """More and longer texts."""
    first = torch.log_softmax(draw.normal(5), dim=-1)
    return Case(
        {
            "logits": draw.normal(size, 3 * size, 5),
            "tokens": draw.integers(0, 5, size, 3 * size),
            "first": first,
        }
    )


def any_texts(draw: Draw) -> Case:
    """Sizes that are all equal, or differ, or are small: one text, and one token among them."""
    b, t, v = (
        (3, 3, 3) if int(draw.integers(0, 4)) == 0 else (draw.integers(1, 5, 3) + torch.tensor([0, 0, 1])).tolist()
    )
    first = torch.log_softmax(draw.normal(v), dim=-1)
    return Case({"logits": 2 * draw.normal(b, t, v), "tokens": draw.integers(0, v, b, t), "first": first})


SEQUENCE_LOG_PROBABILITY = Exercise(
    reference=gpt.sequence_log_probability,
    rows=(
        rows.numbers(
            2.5,
            texts,
            long_text,
            gradients=False,
            title="The log-probability of each text is right, in nats, also for 400 tokens, whose probability underflows in float32.",
        ),
        rows.many(0.75, any_texts, count=48, title="Many random sizes are right, including one text and one token."),
        rows.numbers(0.5, texts, one_token, name="gradients", title="Gradients are right."),
        rows.inputs_kept(0.25, texts),
        rows.no_loop(0.5, more, over="texts or tokens"),
        rows.device(0.5, texts),
    ),
)
