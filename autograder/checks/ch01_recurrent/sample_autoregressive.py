"""The check of ``sample_autoregressive``: draw a token, append it, ask again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checking.rows import Maker
from autograder.checks.ch03_scaled_dot_product.cases import joined
from autograder.checks.variants import changed
from tfcourse import recurrent


def _writer(draw: Draw, *, steps: int = 4, generator: bool = True, **options: float) -> Case:
    """A prompt and a table of six places, so that it matters how much of the text a model is shown."""
    prompt = draw.integers(0, 6, 3, 2)
    prompt[:, -1] = draw.permutation(6)[:3]
    table = draw.normal(6, 6, 6, scale=1.5)
    props: dict[str, dict[str, Any]] = {
        "model": {"kind": "TokenTable", "init": {"vocab_size": 6, "places": 6}, "state": {"logits": table}}
    }
    if generator:
        props["generator"] = {"kind": "Generator", "init": {"seed": int(draw.integers(1, 10**6))}}
    return Case({"prompt": prompt, "steps": steps, **options}, props=props)


def drawn(draw: Draw) -> Case:
    """Drawn at temperature one, from a generator."""
    return _writer(draw)


def drawn_at(temperature: float) -> Maker:
    """Drawn at another temperature, from a generator."""
    return lambda draw: _writer(draw, temperature=temperature)


def drawn_freely(draw: Draw) -> Case:
    """Drawn from PyTorch's own generator."""
    return _writer(draw, generator=False)


def taken(draw: Draw) -> Case:
    """Temperature zero: the most probable token, which is another one for each sequence to begin with."""
    case = _writer(draw, temperature=0.0)
    assert case.props is not None
    model = case.props["model"]
    logits = model["state"]["logits"].clone()
    logits[case.arguments["prompt"].shape[1] - 1, torch.arange(6), draw.permutation(6)] += 20.0
    return replace(case, props={**case.props, "model": {**model, "state": {"logits": logits}}})


def nothing_to_write(draw: Draw) -> Case:
    """No step."""
    return _writer(draw, steps=0)


def more_sequences(draw: Draw, size: int) -> Case:
    """More sequences, of which all draw at once."""
    case = _writer(draw, steps=2)
    return case.with_arguments(prompt=draw.integers(0, 6, 2 * size, 2))


def of_one_token(draw: Draw) -> Case:
    """Prompts of one token."""
    case = drawn(draw)
    return case.with_arguments(prompt=case.arguments["prompt"][:, 1:])


def of_no_token(draw: Draw) -> Case:
    """Prompts without a token, and nothing to write."""
    case = nothing_to_write(draw)
    return case.with_arguments(prompt=case.arguments["prompt"][:, :0])


def a_single_prompt(draw: Draw) -> Case:
    """A prompt without an axis for the batch, and nothing to write."""
    case = nothing_to_write(draw)
    return case.with_arguments(prompt=case.arguments["prompt"][0])


def three_dimensions(draw: Draw) -> Case:
    """Prompts with an axis too many, and nothing to write."""
    case = nothing_to_write(draw)
    return case.with_arguments(prompt=case.arguments["prompt"][..., None])


def below_zero(draw: Draw) -> Case:
    """A negative temperature would make the least likely token the likeliest."""
    return _writer(draw, temperature=-1.0)


SAMPLE_AUTOREGRESSIVE = Exercise(
    reference=recurrent.sample_autoregressive,
    rows=(
        rows.numbers(3, drawn, title="At temperature 1 the tokens are those that the generator draws."),
        rows.numbers(
            1.25, drawn_at(0.4), drawn_at(3.0), name="temperature", title="Other temperatures sharpen and flatten."
        ),
        rows.numbers(1, taken, name="zero", title="At temperature 0 the most probable token is taken."),
        rows.edge(
            0.5,
            drawn_freely,
            nothing_to_write,
            name="limits",
            dtypes=(),
            title="Without a generator PyTorch's own is used; with no steps the prompt comes back.",
        ),
        replace(
            joined(rows.no_loop(0.75, more_sequences, over="sequences"), rows.inputs_kept(0.75, drawn)),
            name="manners",
            title="The inputs are left as they were, and there is no Python loop over sequences.",
        ),
        rows.errors(
            0.5,
            drawn,
            of_one_token,
            below_zero,
            changed(drawn, steps=-1),
            of_no_token,
            a_single_prompt,
            three_dimensions,
            title="A negative temperature or number of steps is a ValueError, and so are prompts without tokens (B, T).",
        ),
    ),
)
