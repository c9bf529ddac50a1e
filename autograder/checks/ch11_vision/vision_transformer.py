"""The check of ``VisionTransformer``: the whole model, with each of its options."""

from __future__ import annotations

from typing import Any

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch05_transformer.layer_cases import drop_everything, drop_nothing, hardly_drop, with_options
from tfcourse import vit

SIZES: dict[str, Any] = {"image_size": 6, "patch": 2, "n_channels": 3, "n_classes": 5}
WIDTHS: dict[str, Any] = {"d_model": 8, "n_heads": 2, "d_ff": 7, "n_layers": 2}


def model(draw: Draw, **options: Any) -> Case:
    """A small model with random weights, and pictures of the size that its positions are for."""
    init = {**SIZES, **WIDTHS, **options}
    weights = draw.weights(vit.VisionTransformer(**init))
    return Case({"images": draw.normal(4, 3, 6, 6)}, init=init, state=weights)


def mean(draw: Draw) -> Case:
    """The mean of the patches."""
    return model(draw, pooling="mean")


def another_size(draw: Draw) -> Case:
    """Pictures of another size, which are not square."""
    high, wide = ((4, 10), (10, 8), (8, 4))[int(draw.integers(0, 3))]
    return model(draw).with_arguments(images=draw.normal(2, 3, high, wide))


def all_dropped(draw: Draw) -> Case:
    """Nothing is left of the embeddings, and of what the sublayers say."""
    return drop_everything(model(draw))


def not_training(draw: Draw) -> Case:
    """A dropout that must not be used."""
    return drop_nothing(model(draw))


def hardly_dropped(draw: Draw) -> Case:
    """A dropout that shows by its divisor alone."""
    return hardly_drop(model(draw))


def _fresh(draw: Draw, **options: Any) -> Case:
    """A model as it is drawn, which sees many pictures: what is drawn too large hides how they differ."""
    widths = {"d_model": 48, "n_heads": 4, "d_ff": 48, "n_layers": 1}
    sizes = {"image_size": 4, "patch": 4, "n_channels": 3, "n_classes": 24}
    return Case({"images": draw.normal(40, 3, 4, 4)}, init={**sizes, **widths, **options})


def fresh_class(draw: Draw) -> Case:
    """Read from the class token."""
    return _fresh(draw)


def fresh_mean(draw: Draw) -> Case:
    """Read from the patches."""
    return _fresh(draw, pooling="mean")


def left_over(draw: Draw) -> Case:
    """Patches that do not fill a picture of the size that the model is for, but fill this one."""
    init = {**SIZES, **WIDTHS, "patch": 4}
    return Case({"images": draw.normal(4, 3, 8, 8)}, init=init)


def unknown(draw: Draw) -> Case:
    """A way of pooling that there is not."""
    return with_options(model(draw), pooling="max")


VISION_TRANSFORMER = Exercise(
    reference=vit.VisionTransformer,
    rows=(
        rows.numbers(3.25, model, title="The class token's state gives the right logits; gradients reach all weights."),
        rows.numbers(3, mean, name="mean", title="The mean of the patches may be read in its place."),
        rows.numbers(2.75, another_size, name="size", title="Pictures of other sizes get interpolated positions."),
        rows.numbers(
            1.75,
            all_dropped,
            not_training,
            hardly_dropped,
            name="dropout",
            title="In training, and only then, dropout falls on the embeddings and in every layer.",
        ),
        rows.initialisation(
            0.75,
            (fresh_class, 0),
            (fresh_mean, 0),
            title="Class token and positions are drawn with the deviation of the docstring.",
        ),
        rows.device(0.75, model),
        rows.errors(
            0.75, model, left_over, unknown, title="Patches that do not fit and unknown poolings are a ValueError."
        ),
    ),
)
