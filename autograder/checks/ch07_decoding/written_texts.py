"""Share table-based language models, on which different searches give different texts, among the checks of searches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from autograder.checking.draw import Draw
from autograder.checking.props import TokenTable
from tfcourse.data import EOS

Prop = dict[str, Any]


def table_prop(logits: Tensor) -> Prop:
    """A model that is a table, (places, V, V)."""
    places, vocab_size, _ = logits.shape
    return {"kind": "TokenTable", "init": {"vocab_size": vocab_size, "places": places}, "state": {"logits": logits}}


def built(prop: Prop) -> TokenTable:
    """The model of a prop."""
    model = TokenTable(**prop["init"])
    model.load_state_dict(prop["state"])
    return model


def stories(draw: Draw, ends: Sequence[int | None], *, eos: int = EOS, places: int = 8) -> tuple[Tensor, Prop]:
    """Return a prompt of two tokens for each text, (B, 2), and a model in which each text follows a different path.

    At each position all texts have different tokens, and one next token is the likeliest. At a position beyond its end a text would
    continue with a token that is neither padding nor `eos`.

    Args:
        draw: the stream.
        ends: for each text the number of the step in which it ends, counted from 1; None where it goes on.
        eos: the token that ends a text.
        places: how many places the model has; they bound the length of a text.
    """
    ordinary = [token for token in range(3, 12) if token != eos]
    logits = draw.normal(places, 12, 12)
    ways = [[ordinary[i] for i in draw.permutation(len(ordinary))[: len(ends)].tolist()] for _ in range(places + 1)]
    for position in range(1, places):
        logits[position, eos, ordinary[position % len(ordinary)]] += 30
        logits[position, [0, 1, 2], ordinary[0]] += 30
        for text, end in enumerate(ends):
            following = eos if end == position else ways[position + 1][text]
            row = logits[position, ways[position][text]]
            row[following] = row.max() + 1  # the likeliest, but far from certain: sampling soon draws another one
    prompt = torch.stack([torch.tensor(ways[0]), torch.tensor(ways[1])], dim=1)
    return prompt, table_prop(logits)


def tied_table(draw: Draw, *, vocab_size: int = 9, places: int = 7) -> Prop:
    """A model in which two next tokens are always the likeliest, and equally so."""
    logits = draw.normal(places, vocab_size, vocab_size)
    best = logits.amax(dim=-1) + 1
    for shift in (0, 3):
        column = 3 + shift + draw.integers(0, 3, places, vocab_size)
        logits.scatter_(2, column[..., None], best[..., None])
    return table_prop(logits)


def random_table(draw: Draw, *, eos: int = EOS, vocab_size: int = 7, places: int = 7) -> Prop:
    """A model of drawn logits, in which a text ends sooner or later."""
    logits = draw.normal(places, vocab_size, vocab_size, scale=1.2)
    logits[:, :, eos] += 0.8
    return table_prop(logits)
