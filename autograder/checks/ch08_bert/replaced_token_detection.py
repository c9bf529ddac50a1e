"""The check of ``replaced_token_detection``: guesses in the text, and which of them are wrong."""

from __future__ import annotations

from typing import Any

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import bert

B, T, V = 4, 9, 7


def _case(draw: Draw, seed: int) -> Case:
    """A generator that is often right."""
    tokens = draw.integers(0, V, B, T)
    logits = draw.normal(B, T, V) + 2.0 * torch.nn.functional.one_hot(tokens, V)
    chosen = torch.zeros(B, T, dtype=torch.bool)
    for row, count in enumerate((draw.permutation(4) + 1).tolist()):
        chosen[row, draw.permutation(T)[:count]] = True
    arguments = {"tokens": tokens, "chosen": chosen, "generator_logits": logits}
    return Case(arguments, props={"generator": {"kind": "Generator", "init": {"seed": seed}}})


def guesses(draw: Draw) -> Case:
    """Some guesses are right and some are wrong, and the likeliest tokens would be others."""
    while True:
        case = _case(draw, int(draw.integers(1, 10**6)))
        arguments: dict[str, Any] = dict(case.arguments)
        seed = case.props["generator"]["init"]["seed"] if case.props else 0
        _, labels = bert.replaced_token_detection(**arguments, generator=torch.Generator().manual_seed(seed))
        chosen, logits = arguments["chosen"], arguments["generator_logits"]
        wrong = labels.bool()
        likeliest = logits.argmax(dim=-1) != arguments["tokens"]
        if int(wrong.sum()) > 1 and int((chosen & ~wrong).sum()) > 1 and bool(((wrong != likeliest) & chosen).any()):
            return case


def more_guesses(draw: Draw) -> Case:
    """Another batch."""
    return guesses(draw)


def nothing_chosen(draw: Draw) -> Case:
    """No place is chosen."""
    case = guesses(draw)
    return case.with_arguments(chosen=torch.zeros(B, T, dtype=torch.bool))


def in_double(draw: Draw) -> Case:
    """Logits of float64, a place chosen in each row."""
    return guesses(draw)


def another_width(draw: Draw) -> Case:
    """Integers of 32 bits."""
    case = guesses(draw)
    return case.with_arguments(tokens=case.arguments["tokens"].int())


def any_guesses(draw: Draw) -> Case:
    """Small batches, one text and one token among them, and any places chosen."""
    b, t, v = int(draw.integers(1, 4)), int(draw.integers(1, 6)), int(draw.integers(2, 5))
    tokens = draw.integers(0, v, b, t)
    logits = draw.normal(b, t, v) + torch.nn.functional.one_hot(tokens, v)
    arguments = {"tokens": tokens, "chosen": draw.integers(0, 2, b, t) == 1, "generator_logits": logits}
    return Case(arguments, props={"generator": {"kind": "Generator", "init": {"seed": int(draw.integers(1, 10**6))}}})


REPLACED_TOKEN_DETECTION = Exercise(
    reference=bert.replaced_token_detection,
    rows=(
        rows.numbers(
            3.75,
            guesses,
            more_guesses,
            gradients=False,
            title="Guesses stand at the chosen positions, and labels are 1 where a token differs from the original.",
        ),
        rows.many(2, any_guesses, title="Many small random batches are right, whichever positions are chosen."),
        rows.edge(
            0.75,
            nothing_chosen,
            in_double,
            name="edges",
            gradients=False,
            title="Nothing may be chosen; labels have the dtype of the logits.",
        ),
        rows.edge(
            0.25,
            another_width,
            name="integers",
            gradients=False,
            dtypes=(),
            title="Integers keep their dtype.",
        ),
        rows.inputs_kept(0.75, guesses),
        rows.detached(0.5, guesses),
    ),
)
