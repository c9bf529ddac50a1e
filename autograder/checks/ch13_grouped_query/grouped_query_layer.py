"""The check of ``GroupedQueryAttention``: shared keys, rotations and a cache in one layer."""

from __future__ import annotations

from dataclasses import replace

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch05_transformer.ready_made import ATTENTION
from autograder.checks.ch12_rotary.manners import kept_on_any_device
from autograder.checks.ch13_grouped_query.layer_cases import frequencies, past
from autograder.checks.variants import built
from tfcourse import llama

D, H, G, DH = 12, 6, 2, 2


def plain(draw: Draw) -> Case:
    """A short text."""
    case = Case({"x": draw.normal(2, 5, D), "frequencies": frequencies(draw, DH // 2)})
    init = {"d_model": D, "n_heads": H, "n_kv_heads": G}
    return replace(case, init=init, state=draw.weights(llama.GroupedQueryAttention(D, H, G)))


def wider(draw: Draw) -> Case:
    """Two heads of four columns that share one."""
    case = Case({"x": draw.normal(2, 4, 8), "frequencies": frequencies(draw, 2)})
    init = {"d_model": 8, "n_heads": 2, "n_kv_heads": 1}
    return replace(case, init=init, state=draw.weights(llama.GroupedQueryAttention(8, 2, 1)))


def one_more(draw: Draw) -> Case:
    """A new token behind three."""
    return plain(draw).with_arguments(x=draw.normal(2, 1, D), past=past(draw, G, DH))


def some_more(draw: Draw) -> Case:
    """Four new tokens behind three."""
    return plain(draw).with_arguments(x=draw.normal(2, 4, D), past=past(draw, G, DH))


def other_width(draw: Draw) -> Case:
    """Heads whose width is handed in."""
    case = Case({"x": draw.normal(2, 5, D), "frequencies": frequencies(draw, 2)})
    init = {"d_model": D, "n_heads": H, "n_kv_heads": G, "d_head": 4}
    return replace(case, init=init, state=draw.weights(llama.GroupedQueryAttention(D, H, G, d_head=4)))


def no_multiple(draw: Draw) -> Case:
    """A width that the heads do not divide, which is no matter if the width of a head is given."""
    case = Case({"x": draw.normal(2, 5, 10), "frequencies": frequencies(draw, 1)})
    init = {"d_model": 10, "n_heads": 4, "n_kv_heads": 2, "d_head": 2}
    return replace(case, init=init, state=draw.weights(llama.GroupedQueryAttention(10, 4, 2, d_head=2)))


def longer(draw: Draw, size: int) -> Case:
    """More examples, groups and places."""
    case = Case({"x": draw.normal(size, size + 2, 4 * size), "frequencies": frequencies(draw, 1)})
    init = {"d_model": 4 * size, "n_heads": 2 * size, "n_kv_heads": size}
    return replace(case, init=init, state=draw.weights(llama.GroupedQueryAttention(4 * size, 2 * size, size)))


def alone(draw: Draw) -> Case:
    """One text, as long as wide; as many key heads as query heads."""
    case = Case({"x": draw.normal(1, 4, 4), "frequencies": frequencies(draw, 1)})
    init = {"d_model": 4, "n_heads": 2, "n_kv_heads": 2}
    return replace(case, init=init, state=draw.weights(llama.GroupedQueryAttention(4, 2, 2)))


GROUPED_QUERY_LAYER = Exercise(
    reference=llama.GroupedQueryAttention,
    rows=(
        rows.numbers(4.5, plain, wider, gradients=False, title="Outputs and cache of a text are right."),
        rows.numbers(2.25, one_more, some_more, name="past", gradients=False, title="New tokens go on behind a past."),
        rows.numbers(
            1.5,
            other_width,
            no_multiple,
            name="width",
            gradients=False,
            title="The width of a head may be handed in.",
        ),
        rows.numbers(
            0.75,
            some_more,
            alone,
            without=("frequencies",),
            name="gradients",
            title="Gradients reach text, past and weights; each query head may have its own key head.",
        ),
        kept_on_any_device(0.75, plain, some_more),
        rows.errors(
            0.5,
            plain,
            built(plain, n_kv_heads=4),
            built(plain, d_model=13),
            title="Heads that cannot be shared out evenly, and a width that they do not divide, are a ValueError.",
        ),
        rows.no_loop(0.75, longer, over="examples, heads or positions"),
    ),
    forbidden=ATTENTION,
    rule_case=(plain,),
)
