"""The check of ``LlamaLayer``: attention and a gated network around a stream."""

from __future__ import annotations

from dataclasses import replace

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch05_transformer.ready_made import ATTENTION
from autograder.checks.ch12_rotary.manners import kept_on_any_device
from autograder.checks.ch13_grouped_query.layer_cases import frequencies, past
from tfcourse import llama

D, H, G, F = 8, 4, 2, 7


def plain(draw: Draw) -> Case:
    """A short text."""
    case = Case({"x": draw.normal(2, 5, D) + 0.5, "frequencies": frequencies(draw, 1)})
    init = {"d_model": D, "n_heads": H, "n_kv_heads": G, "d_ff": F}
    return replace(case, init=init, state=draw.weights(llama.LlamaLayer(D, H, G, F)))


def other_eps(draw: Draw) -> Case:
    """Another eps, which both norms are given."""
    case = plain(draw)
    assert case.init is not None
    return replace(case, init={**case.init, "eps": 0.5})


def behind(draw: Draw) -> Case:
    """Two new tokens behind three."""
    return plain(draw).with_arguments(x=draw.normal(2, 2, D), past=past(draw, G, 2))


def longer(draw: Draw, size: int) -> Case:
    """More examples, groups and places."""
    case = Case({"x": draw.normal(size, size + 2, 4 * size), "frequencies": frequencies(draw, 1)})
    init = {"d_model": 4 * size, "n_heads": 2 * size, "n_kv_heads": size, "d_ff": 5}
    return replace(case, init=init, state=draw.weights(llama.LlamaLayer(4 * size, 2 * size, size, 5)))


def alone(draw: Draw) -> Case:
    """One text, as long as wide; as many key heads as query heads."""
    case = Case({"x": draw.normal(1, 4, 4), "frequencies": frequencies(draw, 1)})
    init = {"d_model": 4, "n_heads": 2, "n_kv_heads": 2, "d_ff": 4}
    return replace(case, init=init, state=draw.weights(llama.LlamaLayer(4, 2, 2, 4)))


LLAMA_LAYER = Exercise(
    reference=llama.LlamaLayer,
    rows=(
        rows.numbers(2.25, plain, gradients=False, title="Both sublayers add to the stream what they say of its norm."),
        rows.numbers(1.25, behind, name="past", gradients=False, title="New tokens go on behind a past."),
        rows.numbers(
            0.5,
            plain,
            other_eps,
            alone,
            without=("frequencies",),
            name="gradients",
            title="Gradients reach text and weights; another eps reaches both norms; sizes may be equal.",
        ),
        kept_on_any_device(0.5, plain, behind),
        rows.no_loop(0.5, longer, over="examples, heads or positions"),
    ),
    forbidden=ATTENTION,
    rule_case=(plain,),
)
