"""The check of ``bits_per_byte``: a measure that does not depend on the tokens."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import gpt


def a_text(draw: Draw) -> Case:
    """Fewer tokens than bytes."""
    tokens = 50 + int(draw.integers(0, 200))
    loss = 1.0 + float(draw.integers(1, 90)) / 30
    return Case({"loss": loss, "n_tokens": tokens, "n_bytes": 3 * tokens + int(draw.integers(0, 99))})


def of_bytes(draw: Draw) -> Case:
    """A token for each byte."""
    case = a_text(draw)
    return case.with_arguments(n_bytes=case.arguments["n_tokens"])


def one_byte(draw: Draw) -> Case:
    """The shortest text."""
    return a_text(draw).with_arguments(n_tokens=1, n_bytes=1)


def no_bytes(draw: Draw) -> Case:
    """An empty text."""
    return a_text(draw).with_arguments(n_bytes=0)


def any_text(draw: Draw) -> Case:
    """Any loss, and any numbers of tokens and of bytes: one, and more tokens than bytes, among them."""
    tokens, bytes_ = (1 + int(draw.integers(0, (1, 5, 9999)[int(draw.integers(0, 3))])) for _ in range(2))
    return Case({"loss": int(draw.integers(0, 60)) / 8, "n_tokens": tokens, "n_bytes": bytes_})


BITS_PER_BYTE = Exercise(
    reference=gpt.bits_per_byte,
    rows=(
        rows.numbers(1.5, a_text, a_text, gradients=False, title="Bits for each byte of a text."),
        rows.many(0.75, any_text, title="Texts of any length are right, including a single byte and a loss of 0."),
        rows.numbers(
            0.5, of_bytes, name="bytes", gradients=False, title="Where tokens are bytes only the unit changes."
        ),
        rows.errors(0.25, one_byte, no_bytes, title="A text has one byte at least; none is a ValueError."),
    ),
)
