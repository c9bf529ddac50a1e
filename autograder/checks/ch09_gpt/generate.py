"""The check of ``generate``: a token in each step, by the chain, with the cache."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checking.props import build_fixtures
from autograder.checking.rows import Probe
from autograder.mistakes.mistake_file import MistakeFile
from tfcourse import gpt

V, B, T, STEPS = 7, 3, 4, 8
MISTAKES = MistakeFile(Path(__file__).with_suffix(".toml"), gpt.generate)
ABOUT_THE_CACHE = ("whole text beside the cache", "cache lost")
ABOUT_THE_CHAIN = ("chain not used", "chain sees the prompt only", "chain sees the new tokens only", "chain in reverse")
GREEDY_WITHOUT_CHAIN = "greedy without the chain"
# Samplers that do not commute: a cut before the temperature keeps other tokens than one after it.
CHAIN = [("top_p", {"p": 0.75}), ("temperature", {"t": 1.8}), ("repetition_penalty", {"penalty": 1.6})]


def _case(draw: Draw, **options: Any) -> Case:
    """Prompts, and a model to which the whole text matters."""
    state = {"memory": draw.normal(V, V, scale=2.0), "asked": torch.tensor(0)}
    props = {
        "model": {"kind": "RecallingModel", "init": {"vocab_size": V}, "state": state},
        "generator": {"kind": "Generator", "init": {"seed": int(draw.integers(1, 10**6))}},
    }
    return Case({"prompt": draw.integers(3, V, B, T), "max_new_tokens": STEPS, **options}, props=props)


def _result(case: Case, written_by: Callable[..., Any] = gpt.generate, **changes: Any) -> torch.Tensor:
    text: torch.Tensor = written_by(**{**case.arguments, **changes}, **build_fixtures(case.props or {}))
    return text


def greedy(draw: Draw) -> Case:
    """The likeliest token in each step. The texts differ, vary within themselves, and change if the cache is used wrongly."""
    forgetful = [mistake.implementation for mistake in MISTAKES if mistake.name in ABOUT_THE_CACHE]
    while True:
        case = _case(draw, greedy=True)
        written = _result(case)[:, T:]
        varied = all(len(set(row)) > 2 for row in written.tolist()) and len(set(map(tuple, written.tolist()))) == B
        if varied and not any(torch.equal(_result(case), _result(case, wrong)) for wrong in forgetful):
            return case


def drawn(draw: Draw) -> Case:
    """Drawn by a chain. Its known mistakes find other texts, each its own."""
    wrong = [gpt.generate, *(mistake.implementation for mistake in MISTAKES if mistake.name in ABOUT_THE_CHAIN)]
    while True:
        case = _case(draw, chain=CHAIN)
        texts = [_result(case, way).tolist() for way in wrong]
        if all(one != other for one, other in combinations(texts, 2)):
            return case


def greedy_with_a_chain(draw: Draw) -> Case:
    """The likeliest token after a penalty, which makes another text."""
    (without,) = [mistake.implementation for mistake in MISTAKES if mistake.name == GREEDY_WITHOUT_CHAIN]
    while True:
        case = _case(draw, greedy=True, chain=[("repetition_penalty", {"penalty": 1.8})])
        if not torch.equal(_result(case), _result(case, without)):
            return case


def drawn_without_a_chain(draw: Draw) -> Case:
    """Drawn from the model's own probabilities, by PyTorch's own generator."""
    case = _case(draw)
    return replace(case, props={"model": (case.props or {})["model"]})


def ends(draw: Draw, **options: Any) -> Case:
    """Texts that end, at different steps, before the limit."""
    while True:
        case = greedy(draw).with_arguments(**options)
        written = _result(case)[:, T:]
        for eos in range(2, V):
            steps = [row.index(eos) if eos in row else STEPS for row in written.tolist()]
            if len(set(steps)) > 1 and 0 < max(steps) < STEPS - 1:
                return case.with_arguments(eos=eos)


def ends_with_another_padding(draw: Draw) -> Case:
    """The same, filled up with another token."""
    return ends(draw, pad=1)


def without_a_cache(draw: Draw) -> Case:
    """The whole text in each step."""
    return greedy(draw).with_arguments(use_cache=False)


def nothing(draw: Draw) -> Case:
    """No new tokens."""
    return greedy(draw).with_arguments(max_new_tokens=0)


def one_step(draw: Draw) -> Case:
    """One new token, so that the length does not depend on what is written."""
    return greedy(draw).with_arguments(max_new_tokens=1)


def less_than_nothing(draw: Draw) -> Case:
    """A negative number of tokens."""
    return greedy(draw).with_arguments(max_new_tokens=-1)


def in_training(draw: Draw) -> Case:
    """A model in training mode."""
    case = drawn_without_a_chain(draw)
    return replace(case, props={"model": {**(case.props or {})["model"], "training": True}})


def in_short_integers(draw: Draw) -> Case:
    """A prompt of integers of 32 bits."""
    case = greedy(draw)
    return case.with_arguments(prompt=case.arguments["prompt"].int())


def _kept(draw: Draw) -> list[Probe]:
    """Ask whether prompt and chain are as they were, and the model in its mode."""
    probes = [Probe((draw.case(maker).request(),), "unmutated") for maker in (greedy, drawn)]
    return [*probes, Probe((draw.case(in_training).request(),), "matches_part", {"outputs": ["model.training"]})]


def _kinds(draw: Draw) -> list[Probe]:
    """Ask for device and dtype of the text."""
    on_meta = Probe((draw.case(one_step).request("meta"),), "matches")
    return [on_meta, Probe((draw.case(in_short_integers).request(),), "shapes")]


GENERATE = Exercise(
    reference=gpt.generate,
    rows=(
        rows.part(
            4,
            greedy,
            nothing,
            one_step,
            output="output",
            name="greedy",
            title="The prompts go on with the most probable token of each step.",
        ),
        rows.part(
            2.25,
            drawn,
            drawn_without_a_chain,
            greedy_with_a_chain,
            output="output",
            name="drawn",
            title="The chain of samplers is applied in its order, and tokens are drawn from what it leaves.",
        ),
        rows.part(
            1.5,
            ends,
            ends_with_another_padding,
            output="output",
            name="end",
            title="Texts end, and are filled up until the last one has ended.",
        ),
        rows.numbers(
            0.75,
            greedy,
            without_a_cache,
            name="cost",
            gradients=False,
            title="With a cache the model is asked for each position once, and without one for the whole text.",
        ),
        rows.Row("kept", "Prompt and chain are left as they were, and the model in its mode.", 0.5, _kept, side=True),
        rows.Row("kinds", "Device and dtype of the text are those of the prompt.", 0.5, _kinds, side=True),
        rows.errors(0.5, greedy, less_than_nothing, title="A negative number of tokens is a ValueError."),
    ),
)
