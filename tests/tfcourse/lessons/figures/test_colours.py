"""More weight is a stronger indigo, text stays readable on it, and plots and drawings have the same colours."""

from __future__ import annotations

import re

import pytest

from tfcourse.lessons.figures.colours import weight_colormap, weight_colour

# Ground and text of the site's light and dark pages, and of the boxes on them (book/_static/custom.css).
PAGES = (("#ffffff", "#1c2333"), ("#f5f6fc", "#1c2333"), ("#12151d", "#e8ecf4"), ("#1a1f2e", "#e8ecf4"))
WEIGHTS = [n / 50 for n in range(51)]


def parsed(colour: str) -> tuple[float, ...]:
    """Red, green and blue from 0 to 255, and the opacity."""
    match = re.fullmatch(r"rgb\((\d+) (\d+) (\d+) / ([\d.]+)\)", colour)
    assert match is not None, colour
    return tuple(float(part) for part in match.groups())


def channels(colour: str) -> tuple[float, ...]:
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))


def luminance(rgb: tuple[float, ...]) -> float:
    values = [channel / 255 for channel in rgb]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]
    return sum(w * v for w, v in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def on(ground: str, weight: float) -> tuple[float, ...]:
    """What a weight looks like on a page."""
    *colour, opacity = parsed(weight_colour(weight))
    return tuple(opacity * c + (1 - opacity) * g for c, g in zip(colour, channels(ground), strict=True))


@pytest.mark.parametrize(("ground", "text"), PAGES)
def test_more_weight_stands_out_more_from_the_page(ground: str, text: str) -> None:
    steps = [contrast(on(ground, weight), channels(ground)) for weight in WEIGHTS]
    assert steps[0] == 1
    assert steps == sorted(set(steps))
    assert steps[-1] > 2.7


@pytest.mark.parametrize(("ground", "text"), PAGES)
def test_text_is_readable_on_every_weight(ground: str, text: str) -> None:
    assert min(contrast(on(ground, weight), channels(text)) for weight in WEIGHTS) >= 4.5


def test_plots_and_drawings_have_the_same_colours() -> None:
    colormap = weight_colormap()
    for weight in WEIGHTS:
        *rgb, opacity = parsed(weight_colour(weight))
        assert colormap(weight) == pytest.approx((*(c / 255 for c in rgb), opacity), abs=1e-3)


def test_what_is_not_a_number_is_transparent_in_plots() -> None:
    assert weight_colormap()(float("nan")) == (0, 0, 0, 0)


@pytest.mark.parametrize("weight", [-0.1, 1.1, float("nan"), float("inf")])
def test_what_is_no_weight_is_refused(weight: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        weight_colour(weight)


def test_rounding_errors_of_a_softmax_are_no_error() -> None:
    assert weight_colour(1 + 1e-7) == weight_colour(1)
    assert weight_colour(-1e-9) == weight_colour(0)
