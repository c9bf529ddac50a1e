"""The check of ``vit_parameters``: every number of the model, by part."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import vit


def any_sizes(draw: Draw) -> Case:
    """Seven sizes, pairwise distinct."""
    names = ("patch", "n_channels", "d_model", "d_ff", "n_layers", "n_classes")
    sizes = dict(zip(names, (int(number) for number in (3 + draw.permutation(9))[:6]), strict=True))
    return Case({"image_size": 13 * sizes["patch"], **sizes})


def of_base(draw: Draw) -> Case:
    """The sizes of ViT-Base, with another number of classes."""
    widths = {"d_model": 768, "d_ff": 3072, "n_layers": 12, "n_classes": 100 + int(draw.integers(0, 900))}
    return Case({"image_size": 224, "patch": 16, "n_channels": 3, **widths})


def no_head(draw: Draw) -> Case:
    """A model that returns states instead of classes."""
    return any_sizes(draw).with_arguments(n_classes=None)


def _part(points: float, place: int, name: str, title: str) -> rows.Row:
    return rows.part(points, any_sizes, of_base, output=f"output[{place}]", name=name, title=title)


VIT_PARAMETERS = Exercise(
    reference=vit.vit_parameters,
    rows=(
        rows.numbers(
            1.75,
            any_sizes,
            of_base,
            name="all",
            gradients=False,
            title="All six numbers are right, one beside another, of small sizes and of ViT-Base.",
        ),
        _part(0.25, 0, "patch", "The projection of patches is counted."),
        _part(0.25, 3, "layers", "The layers are counted."),
        _part(0.75, 5, "head", "The head is counted."),
        rows.numbers(1, no_head, name="no head", gradients=False, title="There may be no head."),
    ),
)
