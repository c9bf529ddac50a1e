"""The check of ``VisionTransformer``: the whole model, with each of its options."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checking.rows import Probe
from autograder.checks.ch05_transformer.layer_cases import drop_everything, drop_nothing, hardly_drop, with_options
from tfcourse import vit

SIZES: dict[str, Any] = {"image_size": 6, "patch": 2, "n_channels": 2, "n_classes": 5}
WIDTHS: dict[str, Any] = {"d_model": 6, "n_heads": 2, "d_ff": 7, "n_layers": 2}


def model(draw: Draw, **options: Any) -> Case:
    """A small model with random weights, and pictures of the size that its positions are for."""
    init = {**SIZES, **WIDTHS, **options}
    weights = draw.weights(vit.VisionTransformer(**init))
    return Case({"images": draw.normal(3, 2, 6, 6)}, init=init, state=weights)


def mean(draw: Draw) -> Case:
    """The mean of the patches."""
    return model(draw, pooling="mean", n_layers=1)


def another_size(draw: Draw) -> Case:
    """Pictures of another size, which are not square."""
    high, wide = ((4, 10), (10, 8), (8, 4))[int(draw.integers(0, 3))]
    return model(draw, n_layers=1).with_arguments(images=draw.normal(1, 2, high, wide))


def as_many_patches(draw: Draw) -> Case:
    """Images of another size with as many patches as there are learned positions."""
    return model(draw, n_layers=1).with_arguments(images=draw.normal(1, 2, 2, 18))


def one_image(draw: Draw) -> Case:
    """One image of a single patch and a single channel, one head, and as many classes as columns."""
    init: dict[str, Any] = {"image_size": 2, "patch": 2, "n_channels": 1, "n_classes": 4}
    init |= {"d_model": 4, "n_heads": 1, "d_ff": 4, "n_layers": 1}
    weights = draw.weights(vit.VisionTransformer(**init))
    return Case({"images": draw.normal(1, 1, 2, 2)}, init=init, state=weights)


def no_dropout_asked_for(draw: Draw) -> Case:
    """In training mode, where dropout is 0 by default."""
    return replace(model(draw, n_layers=1), training=True)


def all_dropped(draw: Draw) -> Case:
    """Nothing is left of the embeddings, and of what the sublayers say."""
    return drop_everything(model(draw, n_layers=1))


def not_training(draw: Draw) -> Case:
    """A dropout that must not be used."""
    return drop_nothing(model(draw, n_layers=1))


def hardly_dropped(draw: Draw) -> Case:
    """A dropout that shows by its divisor alone."""
    return hardly_drop(model(draw, n_layers=1))


def drawn(draw: Draw, name: str) -> Case:
    """A parameter of a wide model as it is drawn."""
    sizes = {"image_size": 32, "patch": 4, "n_channels": 1, "n_classes": 2 + int(draw.integers(0, 5))}
    widths = {"d_model": 256, "n_heads": 1, "d_ff": 2, "n_layers": 1}
    return Case({"target": name}, init={**sizes, **widths}, method="get_parameter")


def _as_drawn(draw: Draw) -> list[Probe]:
    """Ask for the parameters by name, because the order of their initialisation is free."""
    names = ("class_token", "position_table")
    return [Probe((drawn(draw, name).request(),), "spread", {"dim": 0}) for name in names]


def left_over(draw: Draw) -> Case:
    """Patches that do not fill a picture of the size that the model is for, but fill this one."""
    init = {**SIZES, **WIDTHS, "patch": 4}
    return Case({"images": draw.normal(1, 2, 8, 8)}, init=init)


def unknown(draw: Draw) -> Case:
    """A way of pooling that there is not."""
    return with_options(model(draw), pooling="max")


VISION_TRANSFORMER = Exercise(
    reference=vit.VisionTransformer,
    rows=(
        rows.numbers(5.5, model, gradients=False, title="The class token's state gives the right logits."),
        rows.numbers(
            2,
            another_size,
            as_many_patches,
            name="size",
            gradients=False,
            title="Images of other sizes get interpolated positions.",
        ),
        rows.numbers(
            2,
            mean,
            all_dropped,
            not_training,
            hardly_dropped,
            no_dropout_asked_for,
            name="options",
            gradients=False,
            title="The mean of the patches may be read instead; dropout falls on embeddings and layers, in training alone.",
        ),
        rows.numbers(
            1.25,
            model,
            one_image,
            name="gradients",
            title="Gradients reach all weights; a single image, patch, channel and head work too.",
        ),
        rows.Row(
            "initialisation",
            "Class token and positions are drawn with a standard deviation of 0.02.",
            0.75,
            _as_drawn,
            side=True,
        ),
        rows.device(0.75, model),
        rows.errors(
            0.75, model, left_over, unknown, title="Patches that do not fit and unknown poolings are a ValueError."
        ),
    ),
)
