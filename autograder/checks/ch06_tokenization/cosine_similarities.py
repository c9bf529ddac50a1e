"""The check of ``cosine_similarities``: the angle between embeddings."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.combined_rows import also_asking
from tfcourse import tokenization


def embeddings(draw: Draw) -> Case:
    """Rows of different lengths."""
    n, d = draw.sizes(2, low=3)
    weight = draw.normal(9, d) * (0.5 + draw.integers(0, 9, 9, 1))
    return Case({"weight": weight, "ids": draw.permutation(9)[:n]})


def one_token(draw: Draw) -> Case:
    """A single token, in a wide matrix."""
    return Case({"weight": draw.normal(5, 8, scale=2.0), "ids": draw.integers(0, 5, 1)})


def short_rows(draw: Draw) -> Case:
    """Rows that are nearly zero have directions as well."""
    weight = draw.normal(6, 4)
    weight[::2] *= 1e-7
    return Case({"weight": weight, "ids": torch.tensor([2, 1, 4])})


def rows_of_zeros(draw: Draw) -> Case:
    """Two rows are zero, and one of them is the query."""
    weight = draw.normal(6, 3)
    weight[1] = weight[4] = 0
    return Case({"weight": weight, "ids": torch.tensor([4, 0, 5])})


def long_rows(draw: Draw) -> Case:
    """Rows whose squares overflow in half precision."""
    return Case({"weight": draw.normal(5, 4, scale=300.0), "ids": torch.tensor([1, 3])})


def very_long_rows(draw: Draw) -> Case:
    """Rows whose lengths overflow in half precision, though none of their numbers does."""
    signs = 2.0 * draw.integers(0, 2, 5, 4) - 1
    return Case({"weight": signs * draw.integers(38, 60, 5, 4) * 1024, "ids": torch.tensor([4, 0])})


def more_rows(draw: Draw, size: int) -> Case:
    """More tokens and a larger vocabulary."""
    return Case({"weight": draw.normal(3 * size, 4), "ids": draw.integers(0, 3 * size, size)})


COSINE_SIMILARITIES = Exercise(
    reference=tokenization.cosine_similarities,
    rows=(
        rows.numbers(
            2.75,
            embeddings,
            one_token,
            title="Each token is compared with every row, by the cosine.",
            gradients=False,
        ),
        also_asking(
            rows.numbers(
                0.75,
                short_rows,
                name="short",
                title="The norm of a row does not matter, even if it is very small, and gradients are right.",
                without=("weight",),
            ),
            rows.numbers(0, embeddings, one_token),
        ),
        # The gradient by a row of zeros is a matter of definition, so no question asks for it.
        rows.numbers(
            0.75, rows_of_zeros, name="zeros", title="A row of zeros has the cosine 0 with every row.", gradients=False
        ),
        rows.precision(
            0.5, embeddings, long_rows, very_long_rows, title="In half precision, it is computed in float32."
        ),
        rows.device(0.25, embeddings),
        rows.inputs_kept(0.5, embeddings),
        rows.no_loop(0.5, more_rows, over="tokens or rows"),
    ),
    forbidden=("cosine_similarity", "CosineSimilarity", "normalize", "cosine_embedding_loss"),
    rule_case=embeddings,
)
