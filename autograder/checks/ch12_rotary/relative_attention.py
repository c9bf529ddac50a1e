"""The check of ``relative_attention``: a vector for each offset, for keys and for values."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checking.rows import Maker
from autograder.checks.ch05_transformer.ready_made import ATTENTION
from autograder.checks.ch12_rotary.manners import kept_on_any_device, merged
from tfcourse import positions


def _case(draw: Draw, T: int = 5, S: int = 7, dh: int = 4, furthest: int = 2) -> Case:
    """Queries and keys of two examples with three heads; offsets beyond the table occur."""
    arguments = {"q": draw.normal(2, 3, T, dh), "k": draw.normal(2, 3, S, dh), "v": draw.normal(2, 3, S, 6)}
    return Case({**arguments, "key_offsets": draw.normal(2 * furthest + 1, dh)})


def keys_alone(draw: Draw) -> Case:
    """Offsets change the scores alone."""
    return _case(draw)


def as_many(draw: Draw) -> Case:
    """As many queries as keys."""
    return _case(draw, T=6, S=6, dh=7, furthest=3)


def with_values(draw: Draw) -> Case:
    """Offsets change what is read, too."""
    return _case(draw).with_arguments(value_offsets=draw.normal(5, 6))


def of_two_lengths(draw: Draw) -> Case:
    """The two tables have different numbers of rows."""
    return _case(draw, T=3, S=5).with_arguments(value_offsets=draw.normal(7, 6))


def masked(draw: Draw) -> Case:
    """A mask for each example."""
    return _case(draw).with_arguments(mask=draw.mask(2, 1, 5, 7))


def shared_mask(draw: Draw) -> Case:
    """A mask for all."""
    return as_many(draw).with_arguments(mask=draw.mask(6, 6))


def empty_row(draw: Draw) -> Case:
    """A query that may attend to nothing."""
    mask = draw.mask(2, 1, 5, 7)
    mask[:, :, 1] = False
    return with_values(draw).with_arguments(mask=mask)


def nearest(draw: Draw) -> Case:
    """Every offset counts as 0: tables of one row."""
    return _case(draw, T=3, S=5).with_arguments(key_offsets=draw.normal(1, 4), value_offsets=draw.normal(1, 6))


def _with_tables(keys: tuple[int, int], values: tuple[int, int] = (5, 6)) -> Maker:
    """Make tables of any shape."""

    def wrong(draw: Draw) -> Case:
        return _case(draw).with_arguments(key_offsets=draw.normal(*keys), value_offsets=draw.normal(*values))

    return wrong


def longer(draw: Draw, size: int) -> Case:
    """More examples, queries and keys."""
    arguments = {
        "q": draw.normal(size, size + 1, 4),
        "k": draw.normal(size, size + 2, 4),
        "v": draw.normal(size, size + 2, 3),
    }
    return Case({**arguments, "key_offsets": draw.normal(5, 4), "value_offsets": draw.normal(5, 3)})


def equal_sizes(draw: Draw) -> Case:
    """No axis of examples or heads, and as many queries as keys, columns and offsets."""
    return Case({name: draw.normal(3, 3) for name in ("q", "k", "v", "key_offsets")})


RELATIVE_ATTENTION = Exercise(
    reference=positions.relative_attention,
    rows=(
        rows.numbers(3.75, keys_alone, as_many, gradients=False, title="Scores know how far away a key is."),
        rows.numbers(
            1.75,
            with_values,
            of_two_lengths,
            nearest,
            name="value offsets",
            gradients=False,
            title="What is read may depend on the offset, too.",
        ),
        rows.numbers(
            1.5, masked, shared_mask, name="mask", gradients=False, title="What may not be looked at counts nothing."
        ),
        merged(
            rows.edge(
                0.5,
                empty_row,
                name="edges",
                dtypes=(torch.float64, torch.bfloat16, torch.float16),
                title="A query that may attend to nothing gets zeros, in every precision; gradients reach inputs and tables.",
            ),
            rows.numbers(0, keys_alone, equal_sizes),
        ),
        rows.errors(
            0.5,
            with_values,
            _with_tables((4, 4)),
            _with_tables((5, 4), (6, 6)),
            _with_tables((5, 3)),
            _with_tables((5, 5)),
            _with_tables((5, 4), (7, 5)),
            _with_tables((5, 4), (7, 7)),
            title="A table with an even number of rows or of another width is a ValueError.",
        ),
        kept_on_any_device(0.5, with_values, masked),
        rows.no_loop(0.5, longer, over="examples, queries or keys"),
    ),
    forbidden=ATTENTION,
    rule_case=(keys_alone, masked),
)
