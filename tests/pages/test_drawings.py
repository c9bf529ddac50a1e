"""The drawings of the lessons in a browser: text fits and touches nothing, phones show all of it, links lead somewhere, axe is content."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tfcourse.lessons.figures import Drawing

from ..tfcourse.lessons.figures.every_scene import SCENES, draw
from .conftest import theme_styles

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "book" / "_static"
# Width of the window, and of a lesson's article in it.
PAGE, PHONE = (1280, 712), (390, 358)
CHAPTERS = sorted({chapter for chapter, _ in SCENES.values()})

# What is wrong with the layouts that a reader sees, in sentences. Boxes around text are as high as the font's tallest letters: they may
# come nearer to each other than a pixel without anything touching.
FAULTS = """() => {
  const faults = [], inset = (box, by) => ({left: box.left + by, right: box.right - by, top: box.top + by, bottom: box.bottom - by});
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  const inside = (a, b) => a.left >= b.left && a.right <= b.right && a.top >= b.top && a.bottom <= b.bottom;
  for (const svg of document.querySelectorAll(".tfcourse-drawing svg")) {
    const canvas = svg.getBoundingClientRect(), scene = svg.closest("[data-scene]").dataset.scene;
    if (!canvas.width) continue;
    const texts = [...svg.querySelectorAll("text")].map((text) => ({says: text.textContent, box: text.getBoundingClientRect()}));
    const rects = [...svg.querySelectorAll("rect")].map((rect) => rect.getBoundingClientRect());
    for (const {says, box} of texts) {
      if (!inside(inset(box, 0.5), canvas)) faults.push(`${scene}: '${says}' leaves the canvas`);
      const x = (box.left + box.right) / 2, y = (box.top + box.bottom) / 2;
      const around = rects.filter((r) => r.left < x && x < r.right && r.top < y && y < r.bottom)
        .sort((a, b) => a.width * a.height - b.width * b.height)[0];
      if (around && !inside(inset(box, 1), around)) faults.push(`${scene}: '${says}' overflows its box`);
    }
    texts.forEach((one, i) => texts.slice(i + 1).forEach((other) => {
      if (meet(inset(one.box, 1.5), inset(other.box, 1.5))) faults.push(`${scene}: '${one.says}' touches '${other.says}'`);
    }));
    for (const path of svg.querySelectorAll("path")) {
      const matrix = path.getScreenCTM(), length = path.getTotalLength();
      const crossed = new Set();
      for (let at = 0; at <= length; at += 2) {
        const {x, y} = path.getPointAtLength(at).matrixTransform(matrix);
        texts.filter(({box}) => meet(inset(box, 2), {left: x, right: x, top: y, bottom: y})).forEach(({says}) => crossed.add(says));
      }
      crossed.forEach((says) => faults.push(`${scene}: a line crosses '${says}'`));
    }
  }
  return faults;
}"""

# The size of the smallest text of every scene.
SMALLEST_TEXT = """() => {
  const sizes = {};
  for (const svg of document.querySelectorAll(".tfcourse-drawing svg")) {
    if (!svg.clientWidth) continue;
    const texts = [...svg.querySelectorAll("text")];
    sizes[svg.closest("[data-scene]").dataset.scene] =
      Math.min(...texts.map((text) => parseFloat(text.getAttribute("font-size")) * text.getScreenCTM().a));
  }
  return sizes;
}"""

# Of every scene: the widths of the layouts that are shown, and its box.
BOXES = """() => Object.fromEntries([...document.querySelectorAll(".tfcourse-drawing")].map((box) => [
  box.closest("[data-scene]").dataset.scene,
  {
    layouts: [...box.querySelectorAll("svg")].map((svg) => svg.getBoundingClientRect().width).filter((width) => width),
    client: box.clientWidth, scroll: box.scrollWidth, tabIndex: box.tabIndex,
  },
]))"""


def scenes_of(chapter: str) -> dict[str, Drawing]:
    """Return the drawings of a chapter, which a lesson's page shows together."""
    return {name: draw(name) for name, (place, _) in SCENES.items() if place == chapter}


Open = Callable[..., Any]


@pytest.fixture
def page(reused_page: Any) -> Any:
    return reused_page


@pytest.fixture
def open_page(page: Any, tmp_path: Path) -> Open:
    """Open a page from the disk that shows drawings, as a lesson's page would."""

    def open_it(drawings: Mapping[str, Drawing], *, theme: str = "light", size: tuple[int, int] = PAGE) -> Any:
        links = "".join(
            f'<link rel="stylesheet" href="{f.as_uri()}">' for f in (*theme_styles(), STATIC / "custom.css")
        )
        linked = dict.fromkeys(target for drawing in drawings.values() for target in drawing.links)
        targets = "".join(f'<h2 id="{target[1:]}">{target}</h2>' for target in linked)
        cells = "".join(
            f'<div class="cell" data-scene="{name}"><div class="cell_output"><div class="output text_html">'
            f"{drawing.to_html(alt='A drawing of a machine.')}</div></div></div>"
            for name, drawing in drawings.items()
        )
        (tmp_path / "page.html").write_text(
            f'<!doctype html><html lang="en" data-theme="{theme}"><head><meta charset="utf-8"><title>Drawing</title>{links}'
            '</head><body style="display: block"><main class="bd-content" style="display: block">'
            f'<article class="bd-article" style="width: {size[1]}px; margin: auto; padding: 0"><h1>Drawing</h1>'
            f"{cells}{targets}</article></main></body></html>",
            encoding="utf-8",
        )
        page.set_viewport_size({"width": size[0], "height": 900})
        page.goto((tmp_path / "page.html").as_uri())
        return page

    return open_it


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_drawings_can_be_read_on_a_page_and_on_a_phone_and_axe_finds_nothing(
    open_page: Open, axe: Any, chapter: str
) -> None:
    drawings = scenes_of(chapter)
    for size, theme in ((PAGE, "light"), (PAGE, "dark"), (PHONE, "light"), (PHONE, "dark")):
        page = open_page(drawings, theme=theme, size=size)
        # Preloading would read style sheets with XMLHttpRequest, which a page from a disk may not do.
        violations = axe.run(page, options={"preload": False}).response["violations"]
        assert not [(violation["id"], [node["html"] for node in violation["nodes"]]) for violation in violations]
        if theme == "dark":
            continue
        assert page.evaluate(FAULTS) == []
        sizes = page.evaluate(SMALLEST_TEXT)
        assert sizes.keys() == drawings.keys()
        assert {name: least for name, least in sizes.items() if least < (12 if size == PAGE else 11)} == {}
    page = open_page(drawings, size=PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    boxes = page.evaluate(BOXES)
    assert boxes.keys() == drawings.keys()
    for name, found in boxes.items():
        (width,) = found["layouts"]
        assert width <= found["client"], f"{name} is wider than the phone"
        assert found["scroll"] == pytest.approx(found["client"], abs=1), name


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_links_lead_to_sections_of_the_lesson(chapter: str) -> None:
    lesson = (ROOT / "chapters" / chapter / "lesson.md").read_text(encoding="utf-8")
    sections = {f"#{label}" for label in re.findall(r"^\(([\w-]+)\)=\n#+ ", lesson, flags=re.MULTILINE)}
    for name, drawing in scenes_of(chapter).items():
        narrow = drawing.narrow.links if drawing.narrow else []
        assert set(drawing.links) - sections == set(), name
        assert not narrow or set(narrow) == set(drawing.links), name


def test_every_part_of_the_map_is_reached_by_keyboard(open_page: Open) -> None:
    page = open_page({"transformer_map": draw("transformer_map")})
    links = page.locator("[class^=tfd-wide] a")
    reached = []
    for _ in range(links.count()):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.getAttribute('href')"))
    assert reached == draw("transformer_map").links
    page.keyboard.press("Enter")
    assert page.url.endswith(reached[-1])
