"""The check of ``grouped_query_attention``: query heads that share keys and values."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch05_transformer.ready_made import ATTENTION
from autograder.checks.ch12_rotary.manners import merged
from tfcourse import llama


def _case(draw: Draw, heads: int, shared: int, queries: int = 4) -> Case:
    arguments = {
        "q": draw.normal(2, heads, queries, 4),
        "k": draw.normal(2, shared, 7, 4),
        "v": draw.normal(2, shared, 7, 4),
    }
    return Case(arguments)


def pairs(draw: Draw) -> Case:
    """Two query heads share one."""
    return _case(draw, 6, 3)


def triples(draw: Draw) -> Case:
    """Three query heads share one."""
    return _case(draw, 6, 2)


def one_for_all(draw: Draw) -> Case:
    """One head of keys for all."""
    return _case(draw, 4, 1)


def narrow_values(draw: Draw) -> Case:
    """Values of another width than the keys."""
    return pairs(draw).with_arguments(v=draw.normal(2, 3, 7, 3))


def equal_sizes(draw: Draw) -> Case:
    """A key head for each query head, and as many heads as queries, keys and columns."""
    return Case({name: draw.normal(1, 3, 3, 3) for name in ("q", "k", "v")})


def masked(draw: Draw) -> Case:
    """A mask for each example."""
    return pairs(draw).with_arguments(mask=draw.mask(2, 1, 4, 7))


def masked_heads(draw: Draw) -> Case:
    """A mask for each query head."""
    return triples(draw).with_arguments(mask=draw.mask(2, 6, 4, 7))


def shared_mask(draw: Draw) -> Case:
    """A mask for all."""
    return pairs(draw).with_arguments(mask=draw.mask(4, 7))


def empty_row(draw: Draw) -> Case:
    """A query that may attend to nothing."""
    mask = draw.mask(2, 1, 4, 7)
    mask[:, :, 1] = False
    return pairs(draw).with_arguments(mask=mask)


def uneven(draw: Draw) -> Case:
    """Heads that cannot be shared out evenly."""
    return _case(draw, 5, 2)


def other_values(heads: int) -> rows.Maker:
    """Values of another number of heads than the keys."""

    def unmatched(draw: Draw) -> Case:
        return pairs(draw).with_arguments(v=draw.normal(2, heads, 7, 4))

    return unmatched


def wide(draw: Draw) -> Case:
    """Few queries, wide heads: copies of the keys would be the largest tensors by far."""
    return Case({"q": draw.normal(2, 8, 2, 24), "k": draw.normal(2, 2, 9, 24), "v": draw.normal(2, 2, 9, 24)})


def longer(draw: Draw, size: int) -> Case:
    """More examples, groups, queries and keys."""
    arguments = {"q": draw.normal(size, 2 * size, size + 1, 4), "k": draw.normal(size, size, size + 2, 4)}
    return Case({**arguments, "v": draw.normal(size, size, size + 2, 3)})


GROUPED_QUERY_ATTENTION = Exercise(
    reference=llama.grouped_query_attention,
    rows=(
        rows.numbers(
            3.75,
            pairs,
            triples,
            one_for_all,
            gradients=False,
            title="Neighbouring query heads share a head of keys and values.",
        ),
        rows.numbers(
            1.75,
            masked,
            masked_heads,
            shared_mask,
            name="mask",
            gradients=False,
            title="What may not be looked at counts nothing.",
        ),
        merged(
            rows.edge(
                0.5,
                empty_row,
                narrow_values,
                name="edges",
                dtypes=(torch.float64, torch.bfloat16, torch.float16),
                title="Gradients are right, values may have another width, and a query that may attend to nothing gets zeros.",
            ),
            rows.numbers(0, pairs, equal_sizes),
        ),
        rows.errors(
            0.5,
            pairs,
            uneven,
            other_values(2),
            other_values(6),
            title="Heads that cannot be shared out evenly, and values of other heads than the keys, are a ValueError.",
        ),
        rows.inputs_kept(0.5, masked),
        rows.memory(
            0.5,
            wide,
            limit=lambda case: (
                2 * max(value.numel() for value in case.arguments.values() if isinstance(value, torch.Tensor))
            ),
            title="Keys and values are not copied for each query head.",
        ),
        rows.no_loop(0.5, longer, over="examples, heads or queries"),
    ),
    forbidden=ATTENTION,
    rule_case=(pairs, masked),
)
