"""The check of ``Gpt``: the model, with and without a cache."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checking.rows import Probe
from autograder.checks.ch05_transformer.layer_cases import drop_nothing, hardly_drop
from autograder.checks.ch05_transformer.ready_made import ATTENTION
from autograder.checks.ch09_gpt.block_cases import drop_almost_surely
from tfcourse import gpt

# No two sizes are the same number, and the number of heads is three, or two where several tokens follow a cache.
V, N, D, B, T, P = 7, 11, 6, 8, 5, 4
# Matrices of a model that is wide enough to tell from its numbers how they were drawn, and vectors that are not drawn at all.
MATRICES = (
    *("token_embedding", "position_embedding", "blocks.0.attention.q_proj", "blocks.1.attention.k_proj"),
    *("blocks.0.attention.v_proj", "blocks.1.attention.o_proj", "blocks.1.up_proj", "blocks.0.down_proj"),
)
VECTORS = (
    *("blocks.0.attention.q_proj.bias", "blocks.1.attention.o_proj.bias", "blocks.0.up_proj.bias"),
    *("blocks.1.down_proj.bias", "blocks.0.attention_norm.weight", "final_norm.bias"),
)


def beginning(draw: Draw, **options: Any) -> Case:
    """A model of two blocks with random weights, and texts from their beginning."""
    init: dict[str, Any] = {"vocab_size": V, "max_length": N, "d_model": D, "n_heads": 3, "n_layers": 2, **options}
    return Case({"tokens": draw.integers(0, V, B, T)}, init=init, state=draw.weights(gpt.Gpt(**init)))


def going_on(draw: Draw) -> Case:
    """Several tokens after others, in training mode: dropout is 0 by default."""
    cache = [(draw.normal(B, 2, P, D // 2), draw.normal(B, 2, P, D // 2)) for _ in range(2)]
    return replace(beginning(draw, n_heads=2).with_arguments(cache=cache), training=True)


def one_more(draw: Draw, past: int = N - 3) -> Case:
    """One token behind others, in a model of a single block."""
    cache = [(draw.normal(B, 3, past, D // 3), draw.normal(B, 3, past, D // 3))]
    return beginning(draw, n_layers=1).with_arguments(tokens=draw.integers(0, V, B, 1), cache=cache)


def another_width(draw: Draw) -> Case:
    """A feed-forward width that is not four times that of the model, and three blocks."""
    return beginning(draw, d_ff=9, n_layers=3)


def all_dropped(draw: Draw) -> Case:
    """Nothing is left of embeddings, and of what the sublayers say."""
    return drop_almost_surely(beginning(draw))


def not_training(draw: Draw) -> Case:
    """A dropout that must not be used."""
    return drop_nothing(beginning(draw))


def hardly_dropped(draw: Draw) -> Case:
    """A dropout that shows by its divisor alone."""
    return hardly_drop(beginning(draw))


def as_long_as_the_table(draw: Draw) -> Case:
    """A text that has just room in the table of positions."""
    return beginning(draw).with_arguments(tokens=draw.integers(0, V, B, N))


def too_long(draw: Draw) -> Case:
    """A text that is longer than the table of positions."""
    return beginning(draw).with_arguments(tokens=draw.integers(0, V, B, N + 1))


def last_one_that_fits(draw: Draw) -> Case:
    """One token more, and the table is full."""
    return one_more(draw, N - 1)


def one_too_many(draw: Draw) -> Case:
    """One token behind a cache that is full."""
    return one_more(draw, N)


def drawn(draw: Draw, name: str) -> Case:
    """A parameter of a model as it is drawn."""
    sizes = {"vocab_size": 50, "max_length": 40, "d_model": 64, "n_heads": 2, "n_layers": 2 + int(draw.integers(0, 2))}
    return Case({"target": name}, init=sizes, method="get_parameter")


def _as_drawn(draw: Draw) -> list[Probe]:
    """Ask for each parameter by its name, since in the logits of a whole model one spread hides another."""
    probes = [
        Probe((drawn(draw, f"{name}.weight").request(),), "spread", {"dim": 0, "within": 1.1}) for name in MATRICES
    ]
    return probes + [Probe((drawn(draw, name).request(),), "matches") for name in VECTORS]


def equal_sizes(draw: Draw) -> Case:
    """As many texts as tokens, as tokens in the vocabulary and as numbers in a vector, and one head."""
    return _of_four(draw).with_arguments(tokens=draw.integers(0, 4, 4, 4))


def one_token(draw: Draw) -> Case:
    """A batch of one text of a single token."""
    return _of_four(draw).with_arguments(tokens=draw.integers(0, 4, 1, 1))


def _of_four(draw: Draw) -> Case:
    return beginning(draw, vocab_size=4, max_length=4, d_model=4, n_heads=1)


GPT = Exercise(
    reference=gpt.Gpt,
    rows=(
        rows.numbers(
            5.75, beginning, title="Logits and cache are right from the beginning of a text.", gradients=False
        ),
        rows.numbers(
            2.5,
            going_on,
            one_more,
            name="cache",
            title="With a cache, texts go on where they were: positions as well.",
        ),
        rows.numbers(
            1.25,
            another_width,
            beginning,
            equal_sizes,
            one_token,
            name="d_ff",
            title="Another feed-forward width, equal sizes and one head work, and gradients are right.",
        ),
        rows.numbers(
            1.25,
            all_dropped,
            not_training,
            hardly_dropped,
            name="dropout",
            gradients=False,
            title="In training dropout falls on the embeddings and in every block.",
        ),
        rows.Row(
            "initialisation",
            "Every matrix is drawn with its standard deviation, 0.02 or 0.02 / √(2 L), and biases begin as zeros.",
            1.25,
            _as_drawn,
            side=True,
        ),
        rows.inputs_kept(0.75, going_on),
        rows.device(0.5, beginning),
        rows.errors(
            0.75,
            as_long_as_the_table,
            last_one_that_fits,
            too_long,
            one_too_many,
            title="A text of N tokens fits; one that is longer is a ValueError, also where some of it is cached.",
        ),
    ),
    forbidden=ATTENTION,
    rule_case=(beginning, going_on),
)
