"""Figures have a description, follow the page's colours, share no identifiers and come out the same each time."""

from __future__ import annotations

import importlib
import itertools

import pytest

from tfcourse.lessons import figures
from tfcourse.lessons.figures.colours import weight_colormap

matplotlib = importlib.import_module("matplotlib")
matplotlib.use("Agg")

LIGHT, DARK = "#ffffff", "#12151d"


def _channels(colour: str) -> list[float]:
    values = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]


def _contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2."""
    weights = (0.2126, 0.7152, 0.0722)
    low, high = sorted(sum(w * c for w, c in zip(weights, _channels(colour), strict=True)) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colour", figures.PALETTE)
@pytest.mark.parametrize("page", [LIGHT, DARK])
def test_every_colour_of_the_palette_stands_out_from_a_light_and_from_a_dark_page(colour: str, page: str) -> None:
    assert _contrast(colour, page) >= 3.0


# Machado, Oliveira and Fernandes 2009, severity 1: what a colour looks like without one kind of cone (linear RGB).
SIMULATIONS = {
    "full colour vision": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039)),
}


@pytest.mark.parametrize("vision", SIMULATIONS)
def test_no_two_colours_of_the_palette_look_alike_to_any_kind_of_colour_vision(vision: str) -> None:
    def seen(colour: str) -> list[float]:
        linear = [sum(m * c for m, c in zip(row, _channels(colour), strict=True)) for row in SIMULATIONS[vision]]
        return [min(max(v, 0.0), 1.0) ** (1 / 2.4) for v in linear]

    for one, other in itertools.combinations(figures.PALETTE, 2):
        distance = sum((a - b) ** 2 for a, b in zip(seen(one), seen(other), strict=True)) ** 0.5
        assert distance > 0.1, f"{one} and {other} look alike ({distance:.3f})"


def test_lines_differ_in_more_than_their_colour() -> None:
    with figures.style():
        cycle = list(matplotlib.rcParams["axes.prop_cycle"])
    assert len({(entry["marker"], entry["linestyle"]) for entry in cycle}) == len(cycle) == len(figures.PALETTE)


def test_the_style_gives_the_palette_and_is_gone_after_the_block() -> None:
    before = matplotlib.rcParams["text.color"]
    with figures.style() as palette:
        assert palette == figures.PALETTE
        assert matplotlib.rcParams["text.color"] == figures.INK
    assert matplotlib.rcParams["text.color"] == before


def test_heat_maps_have_the_colours_of_weights() -> None:
    with figures.style():
        assert matplotlib.colormaps[matplotlib.rcParams["image.cmap"]] == weight_colormap()
