"""The check of ``finetune``: a step for each batch, at its rate, of the head and of the model, or of the head alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checking.props import Perceptron, TextReader
from autograder.checking.rows import Probe
from tfcourse import bert

V, D, CLASSES = 9, 5, 3


def training(draw: Draw, steps: int = 3, **optimizer: Any) -> Case:
    """A small reader and a head, each with its own weights, an optimiser of both, and batches of whole texts."""
    head = {"inputs": D, "hidden": 4, "outputs": CLASSES}
    props = {
        "model": {
            "kind": "TextReader",
            "init": {"vocab_size": V, "width": D},
            "state": draw.weights(TextReader(V, D), scale=1.0),
        },
        "head": {"kind": "Perceptron", "init": head, "state": draw.weights(Perceptron(**head), scale=1.0)},
        "optimizer": {"kind": "SGD", "of": ("model", "head"), "init": {"lr": 1e-3}, **optimizer},
    }
    batches = [(draw.integers(1, V, 2 + n % 2, 4), draw.integers(0, CLASSES, 2 + n % 2)) for n in range(steps)]
    return Case({"batches": batches, "rate": 0.5}, props=props)


def many_steps(draw: Draw) -> Case:
    """So many steps that two of them warm up, and a third one would if a tenth were rounded."""
    return training(draw, steps=29)


def twenty_steps(draw: Draw) -> Case:
    """The least number of steps of which two warm up."""
    return training(draw, steps=20)


def padded(draw: Draw) -> Case:
    """Texts that end early."""
    case = training(draw)
    batches = []
    for tokens, classes in case.arguments["batches"]:
        ends = 1 + draw.permutation(3)[: len(tokens)]
        batches.append((tokens.masked_fill(torch.arange(tokens.shape[1]) >= ends[:, None], 0), classes))
    return case.with_arguments(batches=batches)


def frozen(draw: Draw) -> Case:
    """The head alone is trained."""
    return training(draw).with_arguments(freeze=True)


def _dropping(case: Case, **training: bool) -> Case:
    """The same with models that drop everything, and in which mode they are before."""
    assert case.props is not None
    props = dict(case.props)
    for name, mode in training.items():
        props[name] = {**props[name], "init": {**props[name]["init"], "dropout": 1.0}, "training": mode}
    return replace(case, props=props)


def examined_before(draw: Draw) -> Case:
    """Both have been examined just before."""
    return _dropping(training(draw), model=False, head=False)


def frozen_after_training(draw: Draw) -> Case:
    """A model that has just been trained is frozen. The head's inputs show whether dropout is active in the model."""
    return _dropping(frozen(draw), model=True)


def frozen_with_an_examined_head(draw: Draw) -> Case:
    """The head of a frozen model has been examined just before."""
    return _dropping(frozen(draw), head=False)


def of_groups(draw: Draw) -> Case:
    """An optimiser of several groups."""
    return training(draw, apart=True)


def _in_their_modes(draw: Draw) -> list[Probe]:
    """Ask for losses and weights, and not for the final mode of model and head: restoring the modes is right, too."""
    probes = []
    for maker in (examined_before, frozen_after_training, frozen_with_an_examined_head):
        case = draw.case(maker)
        losses = [f"output[{n}]" for n in range(len(case.arguments["batches"]))]
        weights = [f"{name}.{key}" for name in ("model", "head") for key in (case.props or {})[name]["state"]]
        probes.append(Probe((case.request(),), "matches_part", {"outputs": losses + weights}))
    return probes


FINETUNE = Exercise(
    reference=bert.finetune,
    rows=(
        rows.numbers(
            4,
            training,
            many_steps,
            twenty_steps,
            title="After three steps, after 20 and after 29 every weight is where it should be, and every loss is right.",
        ),
        rows.numbers(2, padded, name="padding", title="The model is told which tokens are real."),
        rows.numbers(2, frozen, name="freeze", title="With freeze only the head changes."),
        rows.Row("modes", "Both are in training mode, and a frozen model is not.", 1.5, _in_their_modes),
        rows.numbers(0.5, of_groups, name="groups", title="All groups of the optimiser get the rate."),
    ),
)
