"""Drawings and plots have a description, follow the page's colours, share no identifier and come out the same each time."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from autograder.site.page_body import image_faults
from tfcourse.lessons import figures
from tfcourse.lessons.figures import Drawing
from tfcourse.lessons.figures.boxes import box, chip_width, chips, operation
from tfcourse.lessons.figures.drawing import SMALL
from tfcourse.lessons.figures.geometry import Grid, Rect
from tfcourse.lessons.figures.lines import arc, arrow, bracket
from tfcourse.lessons.figures.matrices import mask, matrix, vector

ALT = 'Two boxes with "1 < 2 & 3"'


def everything(*, link: str = "", narrow: Drawing | None = None) -> Drawing:
    """A drawing with every part in it."""
    drawing = Drawing(640, 320, narrow=narrow)
    first = box(drawing, "1 < 2 & 3\n*x*_t", Rect(10, 10, 140, 60), tone="key", note="a note", link=link)
    grid = matrix(
        drawing, [[0.25, 0.75], [1, 0]], (200, 60), name="A", rows="ab", columns="cd", shape="2 × 2", shaded=True
    )
    mask(drawing, [[True, False], [True, True]], (320, 60), rows="ab", columns="cd", query=1)
    vector(drawing, [1, -2.5, "…"], (420, 60), column=True, name="v", tone="query")
    words = chips(drawing, ["the", "fern", "is"], (120, 280), tones=["key", "query", "muted"])
    arc(drawing, words[1].top, words[0].top, weight=0.6)
    plus = operation(drawing, "+", (560, 60))
    arrow(drawing, first.right, grid.left, via=[(175, 40), (175, 90)])
    bracket(drawing, plus, "sum")
    return drawing


def svgs(drawing: Drawing) -> list[ET.Element]:
    markup = drawing.to_html(alt=ALT)
    return [ET.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", markup, flags=re.DOTALL)]


def squares(title: str = "a title") -> Any:
    """A plot with everything in it that the lessons use."""
    import matplotlib.pyplot as plt

    plt.close("all")
    with figures.style():
        fig, (left, right) = plt.subplots(1, 2, figsize=(6, 2))
        left.plot([1, 2, 3], [1.0, 4.0, 9.0], label="squares")
        left.set(xlabel="$x$", ylabel="$x^2$", title=title)
        left.legend()
        fig.colorbar(right.pcolormesh([[0.1, 0.9], [0.4, 0.2]], edgecolors=figures.INK))
    return fig


# What the HTML of each kind of picture begins with the class of, and two pictures of the kind as functions of their description.
PICTURES: dict[str, tuple[Callable[[str], str], Callable[[str], str]]] = {
    "drawing": (
        lambda alt: everything(narrow=Drawing(300, 300)).to_html(alt=alt),
        lambda alt: everything(link="#a").to_html(alt=alt),
    ),
    "plot": (
        lambda alt: figures.to_html(squares(), alt=alt),
        lambda alt: figures.to_html(squares("another title"), alt=alt),
    ),
}
every_picture = pytest.mark.parametrize("kind", PICTURES)


@every_picture
def test_a_picture_is_an_image_with_a_description_and_follows_the_pages_colours(kind: str) -> None:
    markup = PICTURES[kind][0](ALT)
    images = [ET.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", markup, flags=re.DOTALL)]
    assert len(images) == 2, "one of them for a phone"
    assert {(svg.attrib["role"], svg.attrib["aria-label"]) for svg in images} == {("img", ALT)}
    assert image_faults(markup) == []
    colours = set(re.findall(r"#[0-9a-fA-F]{6}", re.sub("|".join(figures.PALETTE), "", markup)))
    assert "currentColor" in markup
    assert not colours & {"#ffffff", "#000000", figures.INK}


@every_picture
@pytest.mark.parametrize("alt", ["", " \n"])
def test_a_picture_without_a_description_is_refused(kind: str, alt: str) -> None:
    with pytest.raises(ValueError, match="alt="):
        PICTURES[kind][0](alt)


@every_picture
def test_a_picture_is_the_same_each_time_and_two_on_a_page_share_no_identifier(kind: str) -> None:
    first, second = (picture(ALT) for picture in PICTURES[kind])
    assert first == PICTURES[kind][0](ALT)
    identifiers = re.findall(r'\sid="([^"]+)"', first + second)
    assert len(identifiers) == len(set(identifiers))
    references = set(re.findall(r'(?:xlink:href="#|url\(#)([^")]+)', first + second))
    assert references <= set(identifiers)
    assert references or kind == "drawing"


@every_picture
def test_no_rule_of_a_picture_reaches_the_rest_of_the_page_and_no_other_host_is_named(kind: str) -> None:
    markup = PICTURES[kind][0](ALT)
    (sheet, *_) = re.findall(r"<style[^>]*>(.*?)</style>", markup, flags=re.DOTALL)
    selectors = re.findall(r"([^{}]+)\{[^{}]*\}", re.sub(r"@container[^{]*\{", "", sheet))
    assert selectors
    assert all(re.search(r"tfcourse-|\.tfd-", selector) for selector in selectors)
    assert not re.search("<metadata|<!--", markup)
    assert set(re.findall(r"https?://[^\"\s]*", markup)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }


def test_the_same_drawing_gives_the_same_bytes_in_every_process_without_matplotlib() -> None:
    program = (
        "from tfcourse.lessons.figures import Drawing; from tfcourse.lessons.figures.matrices import mask; import sys;"
        "d = Drawing(99, 99); mask(d, [[True, False]], (1 / 3, 2), query=0); print(d.to_html(alt='a mask'));"
        "sys.exit('matplotlib' in sys.modules or 'IPython' in sys.modules)"
    )
    runs = [subprocess.run([sys.executable, "-c", program], capture_output=True, check=True) for _ in range(2)]
    assert runs[0].stdout == runs[1].stdout


def test_pictures_are_displayed_once_with_their_description(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[dict[str, str]] = []
    monkeypatch.setattr(importlib.import_module("IPython.display"), "display", lambda data, raw: shown.append(data))
    plot = squares()
    figures.show(everything(), alt=ALT)
    figures.show(plot, alt=ALT)
    assert not importlib.import_module("matplotlib.pyplot").fignum_exists(plot.number)
    assert [data["text/plain"] for data in shown] == [ALT] * 2
    assert [data["text/html"] for data in shown] == [everything().to_html(alt=ALT), figures.to_html(squares(), alt=ALT)]


def test_text_is_text_and_none_is_smaller_than_a_note() -> None:
    (svg,) = svgs(everything())
    texts = list(svg.iter("{http://www.w3.org/2000/svg}text"))
    assert {"1 < 2 & 3", "xt", "0.75", "−2.50", "sum"} <= {"".join(text.itertext()) for text in texts}
    assert min(float(text.attrib["font-size"]) for text in texts) >= SMALL


def test_a_drawing_with_links_can_be_walked_and_keeps_them_on_another_drawing() -> None:
    drawing, sheet = everything(link="#residual"), Drawing(800, 400)
    (svg,) = svgs(drawing)
    assert svg.attrib["role"] == "group"
    (link,) = svg.iter("{http://www.w3.org/2000/svg}a")
    assert link.attrib == {"href": "#residual", "aria-label": "1 < 2 & 3 xt a note"}
    assert sheet.place(drawing, 100, 50) == Rect(100, 50, 640, 320)
    assert sheet.links == drawing.links == ["#residual"]
    assert 'transform="translate(100 50)"' in sheet.to_html(alt=ALT)


def test_a_wide_drawing_is_scrolled_by_keyboard_unless_it_has_a_narrow_layout() -> None:
    assert 'tabindex="0"' in everything().to_html(alt=ALT)
    assert "tabindex" not in Drawing(350, 100).to_html(alt="nothing")
    assert "tabindex" not in everything(narrow=Drawing(300, 200)).to_html(alt=ALT)


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ValueError, match="60 wide"):
        box(Drawing(100, 100), "Multi-head attention", Rect(0, 0, 60, 30))
    with pytest.raises(ValueError, match="equally"):
        matrix(Drawing(99, 99), [[1, 2], [3]], (0, 0))
    import matplotlib.pyplot as plt

    unstyled, ax = plt.subplots()
    ax.plot([1, 2], [3, 5])
    plt.close(unstyled)
    with pytest.raises(ValueError, match=r"figures\.style"):
        figures.to_svg(unstyled, alt="a line in black, unreadable on a dark page")


def test_a_chip_is_as_wide_as_its_word() -> None:
    drawing = Drawing(300, 60)
    short, long = chips(drawing, ["a", "forget-me-not"], (150, 30), tones=["ink", "ink"])
    assert short.width == chip_width("a") < chip_width("forget-me-not") == long.width
    assert short.left[0] - 0 == pytest.approx(300 - long.right[0])


def test_cells_of_a_grid_lie_where_they_are_drawn() -> None:
    grid = matrix(Drawing(200, 200), [[1, 2, 3], [4, 5, 6]], (10, 20), cell=(40, 30))
    assert grid == Grid(10, 20, 120, 60, 2, 3)
    assert grid.cell(1, 2) == Rect(90, 50, 40, 30)
    assert grid.row(1) == Rect(10, 50, 120, 30)
    assert grid.column(2) == Rect(90, 20, 40, 60)
