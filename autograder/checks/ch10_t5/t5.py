"""The check of ``T5``: the whole model, with each of its options."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch05_transformer.layer_cases import drop_everything, drop_nothing, hardly_drop
from autograder.checks.ch05_transformer.ready_made import ATTENTION
from tfcourse import t5

V, D, H, DH = 7, 6, 2, 5


def model(draw: Draw, **options: Any) -> Case:
    """A small model with random weights, source and target, and no padding."""
    init: dict[str, Any] = {
        "vocabulary": V,
        "d_model": D,
        "n_heads": H,
        "d_head": DH,
        "d_ff": 5,
        "n_layers": 2,
        "n_buckets": 8,
        **options,
    }
    t, s = (3, 5) if bool(draw.integers(0, 2)) else (5, 3)
    arguments = {"source": draw.integers(1, V, 2, s), "target": draw.integers(1, V, 2, t)}
    return Case(arguments, init=init, state=draw.weights(t5.T5(**init)))


def encoding(case: Case) -> Case:
    """Return the case for the encoder alone."""
    arguments = {name: value for name, value in case.arguments.items() if name != "target"}
    return replace(case, arguments=arguments, method="encode")


def encoder(draw: Draw) -> Case:
    """What the encoder gives."""
    return encoding(model(draw))


def padded(draw: Draw) -> Case:
    """Padding in the source."""
    case = model(draw)
    return case.with_arguments(source_mask=draw.mask(*case.arguments["source"].shape))


def padded_encoder(draw: Draw) -> Case:
    """Padding, for the encoder alone."""
    return encoding(padded(draw))


def untied(draw: Draw) -> Case:
    """An output matrix of its own."""
    return model(draw, tie_weights=False)


def gated(draw: Draw) -> Case:
    """A gate and an output matrix of its own: version 1.1."""
    return model(draw, gated=True, tie_weights=False)


def small_distance(draw: Draw) -> Case:
    """A small distance, and a source that is long enough for it to matter."""
    case = model(draw, max_distance=6, n_layers=1)
    return case.with_arguments(source=draw.integers(1, V, 2, 12), target=draw.integers(1, V, 2, 10))


def all_dropped(draw: Draw) -> Case:
    """Nothing is left of embeddings, and of what the sublayers say."""
    return drop_everything(model(draw))


def not_training(draw: Draw) -> Case:
    """A dropout that must not be used."""
    return drop_nothing(model(draw))


def hardly_dropped(draw: Draw) -> Case:
    """A dropout that shows by its divisor alone."""
    return hardly_drop(model(draw))


def longer(draw: Draw, size: int) -> Case:
    """More and longer examples; the number 0 is among their tokens, and nothing is padding."""
    source, target = draw.integers(0, V, size, size + 1), draw.integers(0, V, size, size + 2)
    source[0, 0] = 0
    return model(draw, n_layers=1).with_arguments(source=source, target=target)


def _fresh(draw: Draw, **options: Any) -> Case:
    """A wide model as it is drawn: many tokens alone, whose logits show how the matrices are spread."""
    sizes = {"vocabulary": 60, "d_model": 48, "n_heads": 2, "d_head": 12, "d_ff": 40, "n_layers": 1}
    tokens = draw.permutation(60)[:, None]
    return Case({"source": tokens, "target": tokens.flip(0)}, init={**sizes, **options})


def fresh_tied(draw: Draw) -> Case:
    """With tied weights."""
    return _fresh(draw)


def fresh_untied(draw: Draw) -> Case:
    """With a matrix of its own."""
    return _fresh(draw, tie_weights=False)


T5 = Exercise(
    reference=t5.T5,
    rows=(
        rows.numbers(
            2.5, model, encoder, title="With tied weights, logits and memory are right; the future changes no logits."
        ),
        rows.numbers(
            3.25, padded, padded_encoder, name="mask", title="Nobody attends to padding, neither encoder nor decoder."
        ),
        rows.numbers(
            3.25,
            untied,
            gated,
            name="version 1.1",
            title="An output matrix of its own gives logits as they are; the feed-forward networks may be gated.",
        ),
        rows.numbers(2, small_distance, name="distance", title="The largest distance may be another one."),
        rows.numbers(
            2,
            all_dropped,
            not_training,
            hardly_dropped,
            name="dropout",
            title="In training dropout falls on the embeddings and in every layer.",
        ),
        rows.initialisation(
            0.75, (fresh_tied, 0), (fresh_untied, 0), title="Weights are drawn with the deviations of the docstring."
        ),
        rows.device(0.5, model),
        rows.no_loop(0.75, longer, over="examples or positions"),
    ),
    forbidden=ATTENTION,
    rule_case=(model, padded),
)
