"""The check of ``T5``: the whole model, with each of its options."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checking.rows import Probe
from autograder.checks.ch05_transformer.layer_cases import drop_everything, drop_nothing, hardly_drop
from autograder.checks.ch05_transformer.ready_made import ATTENTION
from tfcourse import t5

V, D, H, DH, F = 7, 6, 2, 5, 9
# Matrices of a model that is wide enough to tell from its numbers how they were drawn, and vectors that are not drawn at all.
MATRICES = (
    *("embedding", "output", "encoder_layers.0.self_attention.q_proj", "decoder_layers.0.self_attention.k_proj"),
    *("decoder_layers.0.cross_attention.v_proj", "decoder_layers.0.cross_attention.o_proj"),
    *("encoder_layers.0.feed_forward.up_proj", "decoder_layers.0.feed_forward.gate_proj"),
    "encoder_layers.0.feed_forward.down_proj",
)
TABLES = ("encoder_bias", "decoder_bias")
VECTORS = ("encoder_norm.weight", "decoder_layers.0.cross_attention_norm.weight")


def model(draw: Draw, **options: Any) -> Case:
    """A small model with random weights, source and target, and no padding."""
    init: dict[str, Any] = {
        "vocab_size": V,
        "d_model": D,
        "n_heads": H,
        "d_head": DH,
        "d_ff": F,
        "n_layers": 2,
        "n_buckets": 8,
        **options,
    }
    t, s = (3, 5) if bool(draw.integers(0, 2)) else (5, 3)
    arguments = {"source": draw.integers(1, V, 2, s), "target": draw.integers(1, V, 2, t)}
    return Case(arguments, init=init, state=draw.weights(t5.T5(**init), scale=0.4))


def defaults(draw: Draw) -> Case:
    """A text long enough for 32 buckets up to 128, in training mode: all options have their defaults, so nothing is dropped."""
    init: dict[str, Any] = {"vocab_size": V, "d_model": D, "n_heads": H, "d_head": DH, "d_ff": F, "n_layers": 1}
    arguments = {"source": draw.integers(1, V, 1, 3), "target": draw.integers(1, V, 1, 80)}
    return Case(arguments, init=init, state=draw.weights(t5.T5(**init), scale=0.4), training=True)


def encoder(draw: Draw) -> Case:
    """The output of the encoder."""
    case = model(draw)
    return replace(case, arguments={"source": case.arguments["source"]}, method="encode")


def one_text(draw: Draw) -> Case:
    """One source and one target, equally long, one layer and one head."""
    case = model(draw, n_heads=1, d_head=D, n_layers=1)
    return case.with_arguments(source=draw.integers(1, V, 1, 4), target=draw.integers(1, V, 1, 4))


def padded(draw: Draw) -> Case:
    """Padding in the source."""
    case = model(draw)
    return case.with_arguments(source_mask=draw.mask(*case.arguments["source"].shape))


def padded_layer(draw: Draw) -> Case:
    """The same, with one layer a stack."""
    case = model(draw, n_layers=1)
    return case.with_arguments(source_mask=draw.mask(*case.arguments["source"].shape))


def gated(draw: Draw) -> Case:
    """A gate and a separate output matrix: version 1.1."""
    return model(draw, gated=True, tie_weights=False, n_layers=1)


def small_distance(draw: Draw) -> Case:
    """A small distance, and a source that is long enough for it to matter."""
    case = model(draw, max_distance=6, n_layers=1)
    return case.with_arguments(source=draw.integers(1, V, 2, 12), target=draw.integers(1, V, 2, 10))


def all_dropped(draw: Draw) -> Case:
    """Nothing is left of embeddings, and of what the sublayers say."""
    return drop_everything(model(draw, n_layers=1))


def not_training(draw: Draw) -> Case:
    """A dropout that must not be used."""
    return drop_nothing(model(draw, n_layers=1))


def hardly_dropped(draw: Draw) -> Case:
    """A dropout that shows by its divisor alone."""
    return hardly_drop(model(draw, n_layers=1))


def longer(draw: Draw, size: int) -> Case:
    """More and longer examples; the number 0 is among their tokens, and nothing is padding."""
    source, target = draw.integers(0, V, size, size + 1), draw.integers(0, V, size, size + 2)
    source[0, 0] = 0
    return model(draw, n_layers=1).with_arguments(source=source, target=target)


def drawn(draw: Draw, name: str) -> Case:
    """A parameter of a model as it is drawn."""
    init = {
        "vocab_size": 50,
        "d_model": 32,
        "n_heads": 4,
        "d_head": 12,
        "d_ff": 56 + int(draw.integers(0, 3)),
        "n_layers": 1,
        "n_buckets": 128,
    }
    return Case({"target": name}, init={**init, "gated": True, "tie_weights": False}, method="get_parameter")


def _as_drawn(draw: Draw) -> list[Probe]:
    """Ask for each parameter by its name, since in the logits of a whole model one spread hides another."""
    spreads = [(name, 1.12) for name in MATRICES] + [(name, 1.2) for name in TABLES]
    probes = [
        Probe((drawn(draw, f"{name}.weight").request(),), "spread", {"dim": 0, "within": within})
        for name, within in spreads
    ]
    return probes + [Probe((drawn(draw, name).request(),), "matches") for name in VECTORS]


T5 = Exercise(
    reference=t5.T5,
    rows=(
        rows.numbers(
            6,
            model,
            encoder,
            gradients=False,
            title="With tied weights, logits and memory are right; the future changes no logits.",
        ),
        rows.numbers(
            3, padded, name="mask", gradients=False, title="Nobody attends to padding, neither encoder nor decoder."
        ),
        rows.numbers(
            2.25,
            gated,
            defaults,
            small_distance,
            all_dropped,
            not_training,
            hardly_dropped,
            name="options",
            gradients=False,
            title="A gate, an output matrix of its own, other largest distances and dropout work.",
        ),
        rows.numbers(
            0.5, one_text, name="gradients", title="Gradients reach all weights; there may be one text, layer and head."
        ),
        rows.Row(
            "initialisation",
            "Every matrix is drawn with the standard deviation of the docstring, and norms begin as ones.",
            2.25,
            _as_drawn,
            side=True,
        ),
        rows.device(0.25, one_text),
        rows.no_loop(0.75, longer, over="examples or positions"),
    ),
    forbidden=ATTENTION,
    rule_case=(one_text, padded_layer),
)
