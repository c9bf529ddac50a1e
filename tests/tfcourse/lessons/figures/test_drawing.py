"""Drawings escape what they write, have a description, share no identifier and come out the same each time."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from autograder.site.alt_text import picture_faults
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


def test_text_is_text_and_is_escaped() -> None:
    (svg,) = svgs(everything())
    written = ["".join(text.itertext()) for text in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert {"1 < 2 & 3", "xt", "0.75", "−2.50", "sum"} <= set(written)
    assert "1 &lt; 2 &amp; 3" in everything().to_html(alt=ALT)


def test_a_drawing_is_one_image_with_a_description() -> None:
    (svg,) = svgs(everything())
    assert svg.attrib["role"] == "img"
    assert svg.attrib["aria-label"] == ALT
    assert picture_faults(everything().to_html(alt=ALT)) == []


@pytest.mark.parametrize("alt", ["", " \n"])
def test_a_drawing_without_a_description_is_refused(alt: str) -> None:
    with pytest.raises(ValueError, match="alt="):
        everything().to_html(alt=alt)


def test_the_same_drawing_gives_the_same_bytes_in_every_process() -> None:
    program = (
        "from tfcourse.lessons.figures import Drawing; from tfcourse.lessons.figures.matrices import mask;"
        "d = Drawing(99, 99); mask(d, [[True, False]], (1 / 3, 2), query=0); print(d.to_html(alt='a mask'))"
    )
    runs = [subprocess.run([sys.executable, "-c", program], capture_output=True, check=True) for _ in range(2)]
    assert runs[0].stdout == runs[1].stdout
    assert everything().to_html(alt=ALT) == everything().to_html(alt=ALT)


def test_drawings_on_one_page_share_no_identifier() -> None:
    page = everything().to_html(alt=ALT) + everything(link="#a", narrow=Drawing(300, 300)).to_html(alt=ALT)
    identifiers = re.findall(r'\sid="([^"]+)"', page)
    assert len(identifiers) == len(set(identifiers))
    assert "url(#" not in page


def test_every_rule_of_the_sheet_stays_inside_drawings() -> None:
    sheets = re.findall(r"<style>(.*?)</style>", everything(narrow=Drawing(300, 300)).to_html(alt=ALT), flags=re.DOTALL)
    selectors = re.findall(r"([^{}]+)\{[^{}]*\}", re.sub(r"@container[^{]*\{", "", sheets[0]))
    assert selectors
    assert all("tfcourse-drawing" in selector or ".tfd-" in selector for selector in selectors)


def test_ink_takes_the_colour_of_the_page() -> None:
    svg = re.search(r"<svg.*</svg>", everything().to_html(alt=ALT), flags=re.DOTALL)
    assert svg is not None
    colours = set(re.findall(r'(?:fill|stroke)="([^"]+)"', svg[0]))
    assert {colour for colour in colours if not colour.startswith("rgb(84 104 234 / ")} == {"currentColor", "none"}


def test_a_drawing_with_links_can_be_walked_and_each_link_has_a_name() -> None:
    drawing = everything(link="#residual")
    (svg,) = svgs(drawing)
    assert svg.attrib["role"] == "group"
    (link,) = svg.iter("{http://www.w3.org/2000/svg}a")
    assert link.attrib == {"href": "#residual", "aria-label": "1 < 2 & 3 xt a note"}
    assert drawing.links == ["#residual"]


def test_the_narrow_layout_takes_the_place_of_the_wide_one() -> None:
    markup = everything(narrow=Drawing(300, 200)).to_html(alt=ALT)
    assert len(re.findall("<svg", markup)) == 2
    assert "@container (max-width: 544px)" in markup
    assert "tabindex" not in markup


def test_a_wide_drawing_without_a_narrow_layout_can_be_scrolled_by_keyboard() -> None:
    assert 'tabindex="0"' in everything().to_html(alt=ALT)
    assert "tabindex" not in Drawing(350, 100).to_html(alt="nothing")


def test_a_drawing_is_placed_on_another_with_its_links() -> None:
    sheet = Drawing(800, 400)
    assert sheet.place(everything(link="#a"), 100, 50) == Rect(100, 50, 640, 320)
    assert sheet.links == ["#a"]
    assert 'transform="translate(100 50)"' in sheet.to_html(alt=ALT)


def test_a_label_that_does_not_fit_its_box_is_refused() -> None:
    with pytest.raises(ValueError, match="its box is 60 wide"):
        box(Drawing(100, 100), "Multi-head attention", Rect(0, 0, 60, 30))


def test_a_chip_is_as_wide_as_its_word() -> None:
    drawing = Drawing(300, 60)
    short, long = chips(drawing, ["a", "forget-me-not"], (150, 30), tones=["ink", "ink"])
    assert short.width == chip_width("a") < chip_width("forget-me-not") == long.width
    assert short.left[0] - 0 == pytest.approx(300 - long.right[0])


def test_matrices_with_ragged_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="equally long"):
        matrix(Drawing(99, 99), [[1, 2], [3]], (0, 0))


def test_cells_of_a_grid_lie_where_they_are_drawn() -> None:
    grid = matrix(Drawing(200, 200), [[1, 2, 3], [4, 5, 6]], (10, 20), cell=(40, 30))
    assert grid == Grid(10, 20, 120, 60, 2, 3)
    assert grid.cell(1, 2) == Rect(90, 50, 40, 30)
    assert grid.row(1) == Rect(10, 50, 120, 30)
    assert grid.column(2) == Rect(90, 20, 40, 60)


def test_no_text_is_smaller_than_a_note_but_for_subscripts() -> None:
    (svg,) = svgs(everything())
    sizes = [float(text.attrib["font-size"]) for text in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert min(sizes) >= SMALL


def test_showing_a_drawing_displays_it_with_its_description(monkeypatch: pytest.MonkeyPatch) -> None:
    display = importlib.import_module("IPython.display")
    shown: list[dict[str, Any]] = []
    monkeypatch.setattr(display, "display", lambda data, raw: shown.append(data))
    figures.show(everything(), alt=ALT)
    assert shown == [{"text/html": everything().to_html(alt=ALT), "text/plain": ALT}]
