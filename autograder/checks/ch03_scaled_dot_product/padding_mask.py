"""The check of ``padding_mask``: no query may attend to positions beyond a sequence's end."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch03_scaled_dot_product.attention_inputs import manners
from autograder.checks.variants import changed
from tfcourse import attention


def lengths_and_size(draw: Draw) -> Case:
    """Lengths of a batch and its size; one sequence is empty, and one was cut off."""
    b, s = draw.sizes(2, low=4)
    lengths = draw.integers(1, s, b)
    lengths[1], lengths[2] = 0, s + 2
    return Case({"lengths": lengths, "S": s + 1})


def usual_lengths(draw: Draw) -> Case:
    """Lengths of a batch and its size; no sequence is empty, and every one has padding."""
    b, s = draw.sizes(2, low=4)
    return Case({"lengths": draw.integers(1, s, b), "S": s})


def short_integers(draw: Draw) -> Case:
    """Lengths as 32-bit integers."""
    case = lengths_and_size(draw)
    return case.with_arguments(lengths=case.arguments["lengths"].to(torch.int32))


def lengths_alone(draw: Draw) -> Case:
    """Lengths whose longest, of more positions than there are sequences, sets the size."""
    b = draw.unseen(3, 9)
    lengths = draw.integers(1, b, b)
    lengths[b // 2] = b + 3
    return Case({"lengths": lengths})


def more_lengths(draw: Draw, size: int) -> Case:
    """More sequences, and longer ones."""
    return Case({"lengths": draw.integers(1, 5 * size, 3 * size), "S": 5 * size})


def broken_lengths(draw: Draw) -> Case:
    """Lengths that are not integers."""
    case = lengths_and_size(draw)
    return case.with_arguments(lengths=case.arguments["lengths"] + 0.5)


PADDING_MASK = Exercise(
    reference=attention.padding_mask,
    rows=(
        rows.numbers(
            2,
            usual_lengths,
            gradients=False,
            title="True where a key stands before the end of its sequence.",
        ),
        rows.numbers(
            1.25,
            lengths_alone,
            name="size",
            gradients=False,
            title="Without S, the mask is as long as the longest sequence.",
        ),
        rows.edge(
            0.5,
            lengths_and_size,
            short_integers,
            name="edges",
            gradients=False,
            dtypes=(),
            title="Lengths may be 0, more than S, and 32-bit integers.",
        ),
        manners(0.75, (lengths_and_size,), more_lengths, over="sequences or positions"),
        rows.errors(
            0.5,
            lengths_and_size,
            broken_lengths,
            changed(lengths_and_size, lengths=torch.tensor([True, False, True])),
            changed(lengths_and_size, lengths=torch.tensor([[2, 1], [3, 2]])),
            changed(lengths_and_size, lengths=torch.tensor(2)),
            title="Lengths that are not a row of whole numbers are a ValueError.",
        ),
    ),
)
