"""The check of ``Llama``: the whole model, with its cache."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch05_transformer.ready_made import ATTENTION
from autograder.checks.ch12_rotary.manners import kept_on_any_device
from autograder.checks.ch13_grouped_query.layer_cases import past
from tfcourse import llama

V, D, H, G, F, L = 11, 8, 2, 1, 6, 2
SIZES: dict[str, Any] = {"d_model": D, "n_heads": H, "n_kv_heads": G, "d_ff": F, "n_layers": L}


def _case(draw: Draw, length: int = 5, **init: Any) -> Case:
    options = {**SIZES, **init}
    case = Case({"tokens": draw.integers(0, V, 2, length)}, init={"vocab_size": V, **options})
    return replace(case, state=draw.weights(llama.Llama(V, **options)))


def plain(draw: Draw) -> Case:
    """Two short texts."""
    return _case(draw)


def shared_keys(draw: Draw) -> Case:
    """Four heads, two of them for keys."""
    return _case(draw, n_heads=4, n_kv_heads=2, n_layers=1)


def behind(draw: Draw) -> Case:
    """Two new tokens behind three."""
    cache = [past(draw, G, D // H) for _ in range(L)]
    return _case(draw, length=2).with_arguments(cache=cache)


def tied(draw: Draw) -> Case:
    """One matrix for input and output."""
    return _case(draw, tie_weights=True, n_layers=1)


def other_base(draw: Draw) -> Case:
    """Another base."""
    return _case(draw, theta=30.0, n_layers=1)


def scaled(draw: Draw) -> Case:
    """Frequencies that are scaled for longer texts."""
    scaling = {"factor": 4.0, "low": 1.0, "high": 4.0, "original_length": 16}
    return _case(draw, length=9, theta=30.0, rope_scaling=scaling, n_layers=1)


def other_eps(draw: Draw) -> Case:
    """Another eps."""
    return _case(draw, eps=0.5)


def fresh(draw: Draw) -> Case:
    """A model as it is drawn."""
    return Case({"tokens": draw.integers(0, 50, 4, 20)}, init={"vocab_size": 50, **SIZES, "d_model": 32})


def one_text(draw: Draw) -> Case:
    """One text, and one head for keys for each of queries."""
    case = _case(draw, length=3, n_kv_heads=2, n_layers=1)
    return case.with_arguments(tokens=draw.integers(0, V, 1, 3))


def longer(draw: Draw, size: int) -> Case:
    """More texts and tokens."""
    case = Case({"tokens": draw.integers(0, V, size, size + 2)}, init={"vocab_size": V, **SIZES})
    return replace(case, state=draw.weights(llama.Llama(V, **SIZES)))


LLAMA_MODEL = Exercise(
    reference=llama.Llama,
    rows=(
        rows.numbers(5.25, plain, shared_keys, gradients=False, title="Logits and cache of a text are right."),
        rows.numbers(2.75, behind, name="cache", gradients=False, title="New tokens go on behind a cache."),
        rows.numbers(
            1.75,
            tied,
            other_base,
            scaled,
            other_eps,
            name="options",
            gradients=False,
            title="One matrix may serve input and output; base, scaling and eps may be others.",
        ),
        rows.numbers(
            1,
            plain,
            one_text,
            name="gradients",
            title="Gradients reach all weights; a single text, and as many key heads as query heads, work too.",
        ),
        rows.initialisation(0.75, (fresh, 0), title="Matrices are drawn with a standard deviation of 0.02."),
        kept_on_any_device(0.75, plain, behind),
        rows.no_loop(0.75, longer, over="texts or tokens"),
    ),
    forbidden=ATTENTION,
    rule_case=(plain,),
)
