"""The check of ``Transformer``: the whole translator, with each of its options."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checking.rows import Maker, Row
from autograder.checks.ch03_scaled_dot_product.cases import joined
from autograder.checks.ch05_transformer.layer_cases import (
    D,
    H,
    drop_everything,
    drop_nothing,
    hardly_drop,
    with_options,
)
from autograder.checks.ch05_transformer.ready_made import ATTENTION
from tfcourse import transformer

V = 7


def translator(draw: Draw, *, source_vocab_size: int = V, **options: Any) -> Case:
    """A small model of two layers a stack with random weights, source and target tokens, and no mask.

    No token has the number 0: an embedding may be made so that padding does not learn.
    """
    init: dict[str, Any] = {
        "source_vocab_size": source_vocab_size,
        "target_vocab_size": V,
        "d_model": D,
        "n_heads": H,
        "d_ff": 5,
        "n_layers": 2,
        **options,
    }
    t, s = (3, 5) if bool(draw.integers(0, 2)) else (5, 3)
    arguments = {"source": draw.integers(1, V, 2, s), "target": draw.integers(1, V, 2, t)}
    return Case(arguments, init=init, state=draw.weights(transformer.Transformer(**init)))


def encoding(case: Case) -> Case:
    """Return the case for the encoder alone."""
    arguments = {name: value for name, value in case.arguments.items() if name != "target"}
    return replace(case, arguments=arguments, method="encode")


def tied(draw: Draw) -> Case:
    """The model of the paper, but small: post-norm, tied weights, sinusoids."""
    return translator(draw)


def one_layer(draw: Draw) -> Case:
    """The same, with one layer a stack."""
    return translator(draw, n_layers=1)


def tied_encoder(draw: Draw) -> Case:
    """Its encoder."""
    return encoding(one_layer(draw))


def masked(draw: Draw) -> Case:
    """Padding in the source."""
    case = translator(draw)
    return case.with_arguments(source_mask=draw.mask(*case.arguments["source"].shape))


def pre_norm(draw: Draw) -> Case:
    """Pre-norm, with a norm behind each stack."""
    return translator(draw, pre_norm=True, n_layers=1)


def small(draw: Draw) -> Case:
    """One example, one head, one layer, and sentences as long as the vectors are wide: no shape shows which axis is which."""
    case = translator(draw, d_model=4, n_heads=1, d_ff=4, n_layers=1)
    return case.with_arguments(source=draw.integers(1, V, 1, 4), target=draw.integers(1, V, 1, 4))


def untied(draw: Draw) -> Case:
    """Two vocabularies, and a matrix for each of three tasks."""
    return translator(draw, source_vocab_size=V + 2, tie_weights=False, n_layers=1)


def learned(draw: Draw) -> Case:
    """Learned positions, in a table that is longer than needed."""
    return translator(draw, positions="learned", max_length=7, n_layers=1)


def every_layer(draw: Draw) -> Case:
    """Positions before every layer."""
    return translator(draw, d_model=4, positions_every_layer=True)


def all_dropped(draw: Draw) -> Case:
    """Nothing is left of embeddings, and of what the sublayers say."""
    return drop_everything(translator(draw, n_layers=1))


def not_training(draw: Draw) -> Case:
    """A dropout that must not be used."""
    return drop_nothing(translator(draw, n_layers=1))


def hardly_dropped(draw: Draw) -> Case:
    """A dropout that shows by its divisor alone."""
    return hardly_drop(translator(draw, n_layers=1))


def with_gelu(draw: Draw) -> Case:
    """With GELU."""
    return with_options(translator(draw, n_layers=1), activation="gelu")


def mixed_up(draw: Draw) -> Case:
    """Two vocabularies, and weights that are to be tied all the same."""
    return replace(with_options(untied(draw), tie_weights=True), state=None)


def mixed_up_the_other_way(draw: Draw) -> Case:
    """The same, with the larger vocabulary on the other side."""
    return replace(with_options(mixed_up(draw), source_vocab_size=V - 2), state=None)


def unknown_positions(draw: Draw) -> Case:
    """An unknown kind of positions."""
    return replace(with_options(tied(draw), positions="rotary"), state=None)


def odd_width(draw: Draw) -> Case:
    """A sine without its cosine."""
    return replace(with_options(tied(draw), d_model=5, n_heads=1), state=None)


def too_long_for_the_table(draw: Draw) -> Case:
    """A learned table that ends too early, for the target alone."""
    case = translator(draw, positions="learned", max_length=4)
    return case.with_arguments(source=case.arguments["source"][:, :3], target=draw.integers(1, V, 2, 5))


def whole_numbers_as_mask(draw: Draw) -> Case:
    """A mask of ones and zeros that are no truth values."""
    case = masked(draw)
    return case.with_arguments(source_mask=case.arguments["source_mask"].long())


def longer(draw: Draw, size: int) -> Case:
    """More and longer examples; the number 0 is among their tokens, and nothing is padding."""
    source, target = draw.integers(0, V, size, size + 1), draw.integers(0, V, size, size + 2)
    source[0, 0] = 0
    case = translator(draw, n_layers=1)
    return case.with_arguments(source=source, target=target)


def device_and_loops(points: float) -> Row:
    """Return the row of two manners."""
    loops, device = rows.no_loop(points, longer, over="examples or positions"), rows.device(points, pre_norm)
    title = "It runs on the device of its inputs, and there is no Python loop over examples or positions."
    row = joined(loops, device)
    return replace(row, name="device and loops", title=title)


def _fresh(source: torch.Tensor, **options: Any) -> Case:
    """A wide model as it is drawn, without layers: its encoder returns embeddings times the square root of D, plus positions."""
    init = {"source_vocab_size": 60, "target_vocab_size": 60, "d_model": 48, "n_heads": 2, "d_ff": 4, "n_layers": 0}
    return Case({"source": source}, init={**init, **options}, method="encode")


def fresh_embeddings(draw: Draw) -> Case:
    """Many tokens at the same place."""
    return _fresh(1 + draw.permutation(59)[:, None])


def fresh_table(draw: Draw) -> Case:
    """One token at many learned places."""
    return _fresh(torch.full((1, 60), int(draw.integers(1, 60))), positions="learned", max_length=60)


def _parameter(name: str, **init: Any) -> Maker:
    """A parameter of a model some of whose sizes are not given."""
    init = {"source_vocab_size": V, "target_vocab_size": V, **init}
    return lambda draw: Case({"target": name}, init=init, method="get_parameter")


def usual_layers(draw: Draw) -> Case:
    """A narrow model with as many layers and heads as there usually are; its weights fit no other number of layers."""
    init: dict[str, Any] = {"source_vocab_size": V, "target_vocab_size": V, "d_model": 8, "d_ff": 2}
    state = draw.weights(transformer.Transformer(**init))
    return Case({"target": "embedding.weight"}, init=init, state=state, method="get_parameter")


_NETWORK = "feed_forward.up_proj.weight"
# Each size that is not given shows in a shape, and each model is small: numbers would make the recorded check large.
USUAL_SIZES = (
    _parameter("embedding.weight", n_layers=0),
    _parameter(f"encoder_layers.0.{_NETWORK}", d_model=2, n_heads=1, n_layers=1),
    _parameter("position_table", d_model=2, n_heads=1, n_layers=0, positions="learned"),
    usual_layers,
)


def with_usual_sizes(row: Row) -> Row:
    """Return a row that asks as well which sizes a model has where none are given."""

    def probes(draw: Draw) -> list[rows.Probe]:
        shapes = [rows.Probe((draw.case(maker).request("functions"),), "matches") for maker in USUAL_SIZES]
        return [*row.probes(draw), *shapes]

    return replace(row, probes=probes)


TRANSFORMER = Exercise(
    reference=transformer.Transformer,
    rows=(
        rows.numbers(
            6,
            tied,
            gradients=False,
            title="With tied weights and post-norm, the logits are right; the future changes no logits.",
        ),
        rows.numbers(
            2.75,
            masked,
            name="mask",
            gradients=False,
            title="Nobody attends to padding, neither the encoder nor the decoder.",
        ),
        rows.numbers(
            1.5,
            pre_norm,
            name="pre-norm",
            gradients=False,
            title="With pre-norm a norm stands behind each stack.",
        ),
        rows.numbers(
            0.75,
            small,
            tied_encoder,
            name="gradients",
            title="Gradients reach every weight, one example with one head works, and encode gives the memory.",
        ),
        with_usual_sizes(
            rows.numbers(
                1,
                untied,
                learned,
                every_layer,
                name="tables",
                gradients=False,
                title="Weights that are not tied, learned positions, positions before every layer, and the usual sizes.",
            )
        ),
        rows.numbers(
            0.75,
            all_dropped,
            not_training,
            hardly_dropped,
            with_gelu,
            name="dropout and activation",
            gradients=False,
            title="Dropout falls on embeddings with their positions, and it and the activation reach every layer.",
        ),
        rows.initialisation(
            0.75,
            (fresh_embeddings, 0),
            (fresh_table, 1),
            title="Embeddings are drawn with standard deviation 1 / sqrt(D), a learned table with 0.02.",
        ),
        device_and_loops(0.75),
        rows.errors(
            0.75,
            tied,
            mixed_up,
            mixed_up_the_other_way,
            unknown_positions,
            odd_width,
            too_long_for_the_table,
            whole_numbers_as_mask,
            title="Tied vocabularies of two sizes, positions that are unknown, too few or odd, and a mask of other kind are a ValueError.",
        ),
    ),
    forbidden=ATTENTION,
    rule_case=(one_layer, pre_norm),
)
