"""The drawings of the lessons in a browser: text fits and touches nothing, phones show all of it, links lead somewhere, axe is content."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tfcourse.lessons.figures import Drawing, scenes
from tfcourse.lessons.figures.boxes import box
from tfcourse.lessons.figures.geometry import Rect
from tfcourse.lessons.figures.lines import arrow

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "book" / "_static"
THEMES = ("light", "dark")
# Width of the window, and of a lesson's article in it.
PAGE, PHONE = (1280, 712), (390, 358)

# What lessons give to the scenes that draw their numbers.
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "attention_in_matrices": (
        [[1.0, 1.0, 1.0, 0.0], [0.0, 2.0, -2.0, -4.0]],
        [[2.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, -1.0]],
        [[4.2, 2.1], [2.1, 6.3], [0.0, 21.0]],
    ),
    "jobs_of_heads": (
        ("the", "boys", "see"),
        [[[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.0, 0.6, 0.4]]] * 4,
        ("boys", "see"),
    ),
    "who_notices": (
        [(name, [[j <= i for j in range(9)] for i in range(9)]) for name in ("right", "reshape once", "reshape twice")],
    ),
    "smoothed_target": (113, 0.1),
    "segmentation_lattice": (
        "nowhere",
        {"n": 6, "o": 5, "w": 6, "h": 6, "e": 4, "r": 5, "no": 4, "now": 5, "where": 6, "here": 6},
        ("no", "where"),
    ),
    "real_cuts": (
        [
            (("st", "raw", "berry"), (301, 1831, 8396)),
            (("677", "Ġ+", "Ġ8", "04", "Ġ=", "Ġ14", "81"), (40179, 1343, 807, 3023, 796, 1478, 6659)),
            (("ĠSolidGoldMagikarp",), (43453,)),
        ],
    ),
}

# What is wrong with the layouts that a reader sees, in sentences. Boxes around text are as high as the font's tallest letters: they may
# come nearer to each other than a pixel without anything touching.
FAULTS = """() => {
  const faults = [], inset = (box, by) => ({left: box.left + by, right: box.right - by, top: box.top + by, bottom: box.bottom - by});
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  const inside = (a, b) => a.left >= b.left && a.right <= b.right && a.top >= b.top && a.bottom <= b.bottom;
  for (const svg of document.querySelectorAll(".tfcourse-drawing svg")) {
    const canvas = svg.getBoundingClientRect();
    if (!canvas.width) continue;
    const texts = [...svg.querySelectorAll("text")].map((text) => ({says: text.textContent, box: text.getBoundingClientRect()}));
    const rects = [...svg.querySelectorAll("rect")].map((rect) => rect.getBoundingClientRect());
    for (const {says, box} of texts) {
      if (!inside(inset(box, 0.5), canvas)) faults.push(`'${says}' leaves the canvas`);
      const x = (box.left + box.right) / 2, y = (box.top + box.bottom) / 2;
      const around = rects.filter((r) => r.left < x && x < r.right && r.top < y && y < r.bottom)
        .sort((a, b) => a.width * a.height - b.width * b.height)[0];
      if (around && !inside(inset(box, 1), around)) faults.push(`'${says}' overflows its box`);
    }
    texts.forEach((one, i) => texts.slice(i + 1).forEach((other) => {
      if (meet(inset(one.box, 1.5), inset(other.box, 1.5))) faults.push(`'${one.says}' touches '${other.says}'`);
    }));
    for (const path of svg.querySelectorAll("path")) {
      const matrix = path.getScreenCTM(), length = path.getTotalLength();
      const crossed = new Set();
      for (let at = 0; at <= length; at += 2) {
        const {x, y} = path.getPointAtLength(at).matrixTransform(matrix);
        texts.filter(({box}) => meet(inset(box, 2), {left: x, right: x, top: y, bottom: y})).forEach(({says}) => crossed.add(says));
      }
      crossed.forEach((says) => faults.push(`a line crosses '${says}'`));
    }
  }
  return faults;
}"""

SMALLEST_TEXT = """() => Math.min(...[...document.querySelectorAll(".tfcourse-drawing svg")].filter((svg) => svg.clientWidth).flatMap(
  (svg) => [...svg.querySelectorAll("text")].map((text) => parseFloat(text.getAttribute("font-size")) * text.getScreenCTM().a)))"""


def scene_functions() -> Iterator[tuple[str, Callable[..., Drawing]]]:
    """Every public function of the scenes, with the chapter to which its module belongs."""
    for info in pkgutil.iter_modules(scenes.__path__):
        module = importlib.import_module(f"{scenes.__name__}.{info.name}")
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ == module.__name__ and not name.startswith("_"):
                yield info.name.removeprefix("ch"), function


SCENES = {function.__name__: (chapter, function) for chapter, function in scene_functions()}


def draw(name: str) -> Drawing:
    return SCENES[name][1](*ARGUMENTS.get(name, ()))


Open = Callable[..., Any]


@pytest.fixture
def open_page(page: Any, tmp_path: Path) -> Open:
    """Open a page from the disk that shows a drawing, as a lesson's page would."""

    def open_it(drawing: Drawing, *, theme: str = "light", size: tuple[int, int] = PAGE) -> Any:
        spec = importlib.util.find_spec("pydata_sphinx_theme")
        assert spec is not None
        assert spec.origin is not None
        theme_style = Path(spec.origin).parent / "theme/pydata_sphinx_theme/static/styles/pydata-sphinx-theme.css"
        links = "".join(f'<link rel="stylesheet" href="{f.as_uri()}">' for f in (theme_style, STATIC / "custom.css"))
        targets = "".join(f'<h2 id="{target[1:]}">{target}</h2>' for target in dict.fromkeys(drawing.links))
        (tmp_path / "page.html").write_text(
            f'<!doctype html><html lang="en" data-theme="{theme}"><head><meta charset="utf-8"><title>Drawing</title>{links}'
            '</head><body style="display: block"><main class="bd-content" style="display: block">'
            f'<article class="bd-article" style="width: {size[1]}px; margin: auto; padding: 0"><h1>Drawing</h1>'
            '<div class="cell"><div class="cell_output"><div class="output text_html">'
            f"{drawing.to_html(alt='A drawing of a machine.')}</div></div></div>{targets}</article></main></body></html>",
            encoding="utf-8",
        )
        page.set_viewport_size({"width": size[0], "height": 900})
        page.goto((tmp_path / "page.html").as_uri())
        return page

    return open_it


@pytest.mark.parametrize("size", [PAGE, PHONE], ids=["page", "phone"])
@pytest.mark.parametrize("name", SCENES)
def test_text_fits_its_box_and_touches_nothing(open_page: Open, name: str, size: tuple[int, int]) -> None:
    assert open_page(draw(name), size=size).evaluate(FAULTS) == []


@pytest.mark.parametrize("name", SCENES)
def test_text_is_large_enough_to_read(open_page: Open, name: str) -> None:
    assert open_page(draw(name)).evaluate(SMALLEST_TEXT) >= 12
    assert open_page(draw(name), size=PHONE).evaluate(SMALLEST_TEXT) >= 11


@pytest.mark.parametrize("name", SCENES)
def test_a_phone_shows_one_layout_with_nothing_cut_off(open_page: Open, name: str) -> None:
    page = open_page(draw(name), size=PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    layouts = page.locator(".tfcourse-drawing svg").evaluate_all(
        "all => all.map((svg) => svg.getBoundingClientRect().width)"
    )
    (width,) = [width for width in layouts if width]
    box = page.locator(".tfcourse-drawing").evaluate("box => [box.clientWidth, box.scrollWidth, box.tabIndex]")
    assert width <= box[0] or box[2] == 0, (
        "a drawing that is wider than the phone can be reached and scrolled by keyboard"
    )
    assert box[1] == pytest.approx(max(width, box[0]), abs=1)


@pytest.mark.parametrize("name", SCENES)
def test_links_lead_to_sections_of_the_lesson(name: str) -> None:
    chapter, drawing = SCENES[name][0], draw(name)
    lesson = (ROOT / "chapters" / chapter / "lesson.md").read_text(encoding="utf-8")
    sections = {f"#{label}" for label in re.findall(r"^\(([\w-]+)\)=\n#+ ", lesson, flags=re.MULTILINE)}
    narrow = drawing.narrow.links if drawing.narrow else []
    assert set(drawing.links) - sections == set()
    assert not narrow or set(narrow) == set(drawing.links)


def test_every_part_of_the_map_is_reached_by_keyboard(open_page: Open) -> None:
    page = open_page(draw("transformer_map"))
    links = page.locator("[class^=tfd-wide] a")
    reached = []
    for _ in range(links.count()):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.getAttribute('href')"))
    assert reached == draw("transformer_map").links
    page.keyboard.press("Enter")
    assert page.url.endswith(reached[-1])


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", SCENES)
def test_axe_finds_nothing_to_complain_about(open_page: Open, axe: Any, name: str, theme: str) -> None:
    for size in (PAGE, PHONE):
        page = open_page(draw(name), theme=theme, size=size)
        # Preloading would read style sheets with XMLHttpRequest, which a page from a disk may not do.
        violations = axe.run(page, options={"preload": False}).response["violations"]
        assert not [(violation["id"], [node["html"] for node in violation["nodes"]]) for violation in violations]


def test_dark_page_has_no_light_box_around_the_drawing(open_page: Open) -> None:
    page = open_page(draw("lstm_cell"), theme="dark")
    box = page.locator(".text_html").evaluate("element => getComputedStyle(element).backgroundColor")
    assert box == "rgba(0, 0, 0, 0)"


def test_a_drawing_that_is_wide_scrolls_in_its_own_box(open_page: Open, axe: Any) -> None:
    drawing = Drawing(600, 80)
    box(drawing, "far to the right", Rect(440, 20, 150, 40))
    page = open_page(drawing, size=PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    assert page.evaluate(SMALLEST_TEXT) >= 12
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.querySelector('.tfcourse-drawing').scrollLeft > 0")
    assert axe.run(page, options={"preload": False}).response["violations"] == []


def test_the_faults_are_found_where_they_are(open_page: Open) -> None:
    drawing = Drawing(300, 120)
    drawing.text((280, 20), "leaves")
    drawing.rect(Rect(60, 40, 30, 30))
    drawing.text((75, 55), "overflows")
    drawing.text((150, 100), "one")
    drawing.text((160, 100), "other")
    drawing.text((250, 60), "crossed")
    arrow(drawing, (200, 60), (299, 60))
    assert sorted(open_page(drawing).evaluate(FAULTS)) == [
        "'leaves' leaves the canvas",
        "'one' touches 'other'",
        "'overflows' overflows its box",
        "a line crosses 'crossed'",
    ]
