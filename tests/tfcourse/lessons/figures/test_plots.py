"""Figures have a description, follow the page's colours, share no identifiers and come out the same each time."""

from __future__ import annotations

import importlib
import itertools
import re
import subprocess
import sys
from typing import Any
from xml.etree import ElementTree

import pytest

from tfcourse.lessons import figures
from tfcourse.lessons.figures.colours import weight_colormap

matplotlib = importlib.import_module("matplotlib")
matplotlib.use("Agg")

LIGHT, DARK = "#ffffff", "#12151d"


@pytest.fixture
def figure() -> Any:
    """A figure with everything in it that the lessons use."""
    import matplotlib.pyplot as plt

    with figures.style():
        fig, (left, right) = plt.subplots(1, 2, figsize=(5, 2))
        left.plot([1, 2, 3], [1.0, 4.0, 9.0], label="squares")
        left.set(xlabel="$x$", ylabel="$x^2$", title="a title")
        left.legend()
        fig.colorbar(right.pcolormesh([[0.1, 0.9], [0.4, 0.2]], edgecolors=figures.INK))
    yield fig
    plt.close(fig)


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


def test_a_figure_becomes_one_image_with_a_description(figure: Any) -> None:
    svg = figures.to_svg(figure, alt='Squares of "1 < 2 & 3"')
    root = ElementTree.fromstring(svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"] == 'Squares of "1 < 2 & 3"'
    assert svg.count("<svg") == 1


def test_ink_takes_the_colour_of_the_page_and_the_background_stays_free(figure: Any) -> None:
    svg = figures.to_svg(figure, alt="squares")
    assert "currentColor" in svg
    assert figures.INK not in svg
    assert "#ffffff" not in svg
    assert "#000000" not in svg


def test_no_rule_of_the_figure_reaches_the_rest_of_the_page(figure: Any) -> None:
    sheets = re.findall(r"<style[^>]*>(.*?)</style>", figures.to_svg(figure, alt="squares"), flags=re.DOTALL)
    selectors = [rule.split("{")[0] for sheet in sheets for rule in re.findall(r"[^{}]+\{[^{}]*\}", sheet)]
    assert selectors
    assert all("svg.tfcourse-figure" in selector for selector in selectors)


def test_a_figure_names_no_tool_no_date_and_no_other_host(figure: Any) -> None:
    svg = figures.to_svg(figure, alt="squares")
    assert "<metadata" not in svg
    assert "<!--" not in svg
    assert set(re.findall(r"https?://[^\"\s]*", svg)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }


def test_references_inside_a_figure_still_point_at_something(figure: Any) -> None:
    svg = figures.to_svg(figure, alt="squares")
    wanted = set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
    assert wanted
    assert wanted <= set(re.findall(r'\sid="([^"]+)"', svg))


def test_two_figures_on_a_page_share_no_identifier(figure: Any) -> None:
    one = set(re.findall(r'\sid="([^"]+)"', figures.to_svg(figure, alt="squares")))
    figure.axes[0].set_title("another title")
    other = set(re.findall(r'\sid="([^"]+)"', figures.to_svg(figure, alt="squares")))
    assert one
    assert not one & other


def test_the_same_figure_gives_the_same_bytes_again(figure: Any) -> None:
    assert figures.to_svg(figure, alt="squares") == figures.to_svg(figure, alt="squares")


@pytest.mark.parametrize("alt", ["", "  \n"])
def test_a_figure_without_a_description_is_refused(figure: Any, alt: str) -> None:
    with pytest.raises(ValueError, match="alt="):
        figures.to_svg(figure, alt=alt)


def test_a_figure_drawn_outside_the_style_is_refused() -> None:
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots()
    ax.plot([1, 2], [3, 5])
    try:
        with pytest.raises(ValueError, match=r"figures\.style"):
            figures.to_svg(fig, alt="a line in black, unreadable on a dark page")
    finally:
        plt.close(fig)


def test_showing_a_figure_displays_it_once_and_closes_it(figure: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    display = importlib.import_module("IPython.display")
    import matplotlib.pyplot as plt

    shown: list[dict[str, str]] = []
    monkeypatch.setattr(display, "display", lambda data, raw: shown.append(data))
    expected = figures.to_svg(figure, alt="squares")
    figures.show(figure, alt="squares")
    assert shown == [{"text/html": expected, "text/plain": "squares"}]
    assert not plt.fignum_exists(figure.number)


def test_importing_the_module_does_not_import_matplotlib() -> None:
    program = "import sys, tfcourse.lessons.figures; sys.exit('matplotlib' in sys.modules or 'IPython' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
