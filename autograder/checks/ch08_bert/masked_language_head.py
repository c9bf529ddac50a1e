"""The check of ``MaskedLanguageHead``: from hidden states to logits, with the model's own embedding matrix."""

from __future__ import annotations

from dataclasses import replace

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import bert
from tfcourse.layers import gelu

D, V = 6, 9


def all_places(draw: Draw) -> Case:
    """Hidden states of a batch of texts."""
    return _case(draw, 3, 5)


def _case(draw: Draw, *places: int) -> Case:
    """A head whose activations vary so much that the eps of the norm does not show."""
    state = draw.weights(bert.MaskedLanguageHead(D, V))
    while True:
        hidden = 20 * draw.normal(*places, D)
        activated = gelu(hidden @ state["transform.weight"].mT + state["transform.bias"])
        if bool((activated.var(dim=-1) > 20).all()):
            arguments = {"hidden": hidden, "embedding": draw.normal(V, D)}
            return Case(arguments, init={"d_model": D, "vocab_size": V}, state=state)


def some_places(draw: Draw) -> Case:
    """Hidden states of the hidden places alone."""
    return _case(draw, 7)


def tiny_numbers(draw: Draw) -> Case:
    """Activations so small that the eps of the norm decides."""
    case = all_places(draw).to(torch.float64)
    small = {name: value * (1e-4 if "transform" in name else 1) for name, value in (case.state or {}).items()}
    return replace(case, state=small)


def freshly_made(draw: Draw) -> Case:
    """A head as it is made, over hidden states of which the transform makes nothing: only the bias is left."""
    case = replace(all_places(draw), state=None)
    return case.with_arguments(embedding=torch.zeros(V, D))


MASKED_LANGUAGE_HEAD = Exercise(
    reference=bert.MaskedLanguageHead,
    rows=(
        rows.numbers(
            4, all_places, gradients=False, title="The logits are right: transform, GELU, norm, embedding matrix, bias."
        ),
        rows.numbers(
            1.75,
            all_places,
            some_places,
            name="gradients",
            title="Gradients flow into the embedding matrix; hidden states may have one axis of positions.",
        ),
        rows.edge(0.5, tiny_numbers, name="eps", dtypes=(), title="The norm has an eps of 1e-12."),
        rows.numbers(0.5, freshly_made, name="fresh", gradients=False, title="The bias is zero at first."),
        rows.inputs_kept(0.5, all_places),
        rows.device(0.75, all_places),
    ),
)
