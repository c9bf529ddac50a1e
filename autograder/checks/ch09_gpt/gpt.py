"""The check of ``Gpt``: the model, with and without a cache."""

from __future__ import annotations

from typing import Any

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch05_transformer.layer_cases import (
    drop_everything,
    drop_nothing,
    hardly_drop,
)
from autograder.checks.ch05_transformer.ready_made import ATTENTION
from tfcourse import gpt

V, N, D, H, B, T = 7, 11, 6, 2, 3, 5


def beginning(draw: Draw, **options: Any) -> Case:
    """A model of two blocks with random weights, and texts from their beginning."""
    init: dict[str, Any] = {"vocab_size": V, "max_length": N, "d_model": D, "n_heads": H, "n_layers": 2, **options}
    return Case({"tokens": draw.integers(0, V, B, T)}, init=init, state=draw.weights(gpt.Gpt(**init)))


def going_on(draw: Draw) -> Case:
    """Several tokens behind others."""
    cache = [(draw.normal(B, H, 4, D // H), draw.normal(B, H, 4, D // H)) for _ in range(2)]
    return beginning(draw).with_arguments(cache=cache)


def one_more(draw: Draw) -> Case:
    """One token behind others, the last one that fits."""
    cache = [(draw.normal(B, H, N - 1, D // H), draw.normal(B, H, N - 1, D // H)) for _ in range(2)]
    return beginning(draw).with_arguments(tokens=draw.integers(0, V, B, 1), cache=cache)


def another_width(draw: Draw) -> Case:
    """A feed-forward width that is not four times that of the model, and three blocks."""
    return beginning(draw, d_ff=9, n_layers=3)


def all_dropped(draw: Draw) -> Case:
    """Nothing is left of embeddings, and of what the sublayers say."""
    return drop_everything(beginning(draw))


def not_training(draw: Draw) -> Case:
    """A dropout that must not be used."""
    return drop_nothing(beginning(draw))


def hardly_dropped(draw: Draw) -> Case:
    """A dropout that shows by its divisor alone."""
    return hardly_drop(beginning(draw))


def too_long(draw: Draw) -> Case:
    """A text that is longer than the table of positions."""
    return beginning(draw).with_arguments(tokens=draw.integers(0, V, B, N + 1))


def too_long_with_the_cache(draw: Draw) -> Case:
    """A text that is too long together with what is cached."""
    return one_more(draw).with_arguments(tokens=draw.integers(0, V, B, 2))


def fresh_embeddings(draw: Draw) -> Case:
    """A wide model as it is drawn, without blocks: norm and matrix of embeddings at one place, for many tokens."""
    init = {"vocab_size": 60, "max_length": 4, "d_model": 48, "n_heads": 2, "n_layers": 0}
    return Case({"tokens": draw.permutation(60)[:, None]}, init=init)


GPT = Exercise(
    reference=gpt.Gpt,
    rows=(
        rows.numbers(3.25, beginning, title="Logits and cache are right from the beginning of a text; gradients too."),
        rows.numbers(
            3.5, going_on, one_more, name="cache", title="With a cache, texts go on where they were: positions as well."
        ),
        rows.numbers(2, another_width, name="d_ff", title="The feed-forward width may be another one."),
        rows.numbers(
            2,
            all_dropped,
            not_training,
            hardly_dropped,
            name="dropout",
            title="In training dropout falls on the embeddings and in every block.",
        ),
        rows.initialisation(1, (fresh_embeddings, 0), title="Matrices are drawn with standard deviation 0.02."),
        rows.inputs_kept(0.75, going_on),
        rows.device(0.75, beginning),
        rows.errors(
            0.75, beginning, too_long, too_long_with_the_cache, title="A text that is too long is a ValueError."
        ),
    ),
    forbidden=ATTENTION,
    rule_case=(beginning, going_on),
)
