"""The check of ``embedding_lookup``: a row for each token."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import tokenization


def sentences(draw: Draw) -> Case:
    """A batch of tokens, and more rows than columns."""
    b, t, d = draw.sizes(3)
    v = 8 + int(draw.integers(0, 3, 1))
    return Case({"weight": draw.normal(v, d), "ids": draw.integers(0, v, b, t)})


def one_sentence(draw: Draw) -> Case:
    """A single axis, with more columns than rows; the first and the last token occur."""
    v, d = 5, 7
    ids = torch.cat([torch.tensor([0, v - 1]), draw.integers(0, v, 2)])
    return Case({"weight": draw.normal(v, d), "ids": ids})


def one_token(draw: Draw) -> Case:
    """No axis at all."""
    return Case({"weight": draw.normal(6, 3), "ids": draw.integers(0, 6, 1)[0]})


def repeated(draw: Draw) -> Case:
    """A token that occurs three times: its gradients add up."""
    v = 6
    token = draw.integers(1, v, 1)
    return Case({"weight": draw.normal(v, 4), "ids": torch.cat([token, draw.integers(0, v, 2), token, token])})


def more_tokens(draw: Draw, size: int) -> Case:
    """More tokens of more sentences."""
    return Case({"weight": draw.normal(9, 3), "ids": draw.integers(0, 9, size, 2 * size)})


def negative(draw: Draw) -> Case:
    """An id below zero."""
    return Case({"weight": draw.normal(5, 3), "ids": torch.tensor([2, -1, 0])})


def too_large(draw: Draw) -> Case:
    """An id that is the number of rows."""
    return Case({"weight": draw.normal(5, 7), "ids": torch.tensor([[2], [5]])})


EMBEDDING_LOOKUP = Exercise(
    reference=tokenization.embedding_lookup,
    rows=(
        rows.numbers(2.5, sentences, one_sentence, title="Each token gets its row of the matrix.", gradients=False),
        rows.numbers(
            1,
            repeated,
            sentences,
            name="repeated",
            title="Each row gets its gradient, and the gradients of a token that occurs more than once add up.",
        ),
        rows.edge(0.25, one_token, name="scalar", title="A single id without an axis gives a single row.", dtypes=()),
        rows.precision(0.75, sentences),
        rows.errors(0.5, sentences, negative, too_large, title="An id below 0 or beyond the last row is a ValueError."),
        rows.no_loop(0.5, more_tokens, over="tokens"),
        rows.device(0.5, sentences),
    ),
    forbidden=("embedding", "Embedding", "embedding_bag", "_embedding_bag", "EmbeddingBag"),
    rule_case=sentences,
)
