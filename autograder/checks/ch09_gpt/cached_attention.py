"""The check of ``cached_attention``: new queries, old keys."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch05_transformer.ready_made import ATTENTION
from autograder.checks.ch09_gpt.block_cases import gradients_of_the_past
from autograder.checks.combined_rows import also_asking
from tfcourse import gpt

B, H, DH = 2, 3, 5


def _new(draw: Draw, length: int) -> Case:
    q, k, v = (draw.normal(B, H, length, DH) for _ in range(3))
    return Case({"q": q, "k": k, "v": v, "past": None})


def _behind(draw: Draw, case: Case, past: int) -> Case:
    return case.with_arguments(past=(draw.normal(B, H, past, DH), draw.normal(B, H, past, DH)))


def a_chunk(draw: Draw) -> Case:
    """Several new tokens behind more old ones."""
    return _behind(draw, _new(draw, 4), 6)


def a_long_chunk(draw: Draw) -> Case:
    """More new tokens than old ones."""
    return _behind(draw, _new(draw, 4), 2)


def one_more(draw: Draw) -> Case:
    """One new token behind several."""
    return _behind(draw, _new(draw, 1), 5 + int(draw.integers(0, 4)))


def the_beginning(draw: Draw) -> Case:
    """Nothing is cached."""
    return _new(draw, 4)


def more(draw: Draw, size: int) -> Case:
    """More tokens."""
    return _behind(draw, _new(draw, size + 1), size)


def any_chunk(draw: Draw) -> Case:
    """Two to four new tokens behind one or more, and sizes that are all equal, or differ, or are 1."""
    b, h, dh = (2, 2, 2) if int(draw.integers(0, 4)) == 0 else draw.integers(1, 4, 3).tolist()
    new, past = (2, 2) if dh == 2 else (2 + int(draw.integers(0, 3)), 1 + int(draw.integers(0, 4)))
    q, k, v = (draw.normal(b, h, new, dh) for _ in range(3))
    return Case({"q": q, "k": k, "v": v, "past": (draw.normal(b, h, past, dh), draw.normal(b, h, past, dh))})


CACHED_ATTENTION = Exercise(
    reference=gpt.cached_attention,
    rows=(
        rows.numbers(
            5,
            one_more,
            the_beginning,
            title="One new token attends to the cache and to itself; without a cache this is causal attention.",
            gradients=False,
        ),
        also_asking(
            rows.numbers(
                2.5,
                a_chunk,
                a_long_chunk,
                name="chunk",
                title="Several new tokens see all old ones, and the new ones up to themselves.",
                gradients=False,
            ),
            rows.many(0, any_chunk, count=24, title=""),
        ),
        also_asking(
            rows.Row(
                "gradients",
                "All gradients are right and reach the past, and float64 stays float64.",
                0.75,
                lambda draw: gradients_of_the_past(draw.case(one_more)),
            ),
            rows.numbers(0, one_more, the_beginning),
        ),
        rows.inputs_kept(0.5, a_chunk),
        rows.no_loop(0.5, more, over="tokens"),
        rows.device(0.75, a_chunk, the_beginning),
    ),
    forbidden=ATTENTION,
    rule_case=(a_chunk, one_more, the_beginning),
)
