"""What every figure to play with does in a reader's hands: mouse, keyboard, screen reader, light and dark, and without JavaScript.

What a figure does of its own is in `test_explorer_plays.py` and `test_explorer_numbers.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ..tfcourse.lessons.explorers.examples import EXAMPLES, hostile, plainly
from .conftest import CONTRAST

pytestmark = pytest.mark.browser

THEMES = ("light", "dark")
Open = Callable[..., Any]
# The longest pieces have the strongest shade; a width that heads do not divide is complained about.
STATES = {"merge": ("role=slider", "3"), "block": ("role=spinbutton[name='H, heads']", "7")}
# Some charts are drawn anew in the frame after a change of size.
SCROLL_WIDTH = """new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))
    .then(() => document.documentElement.scrollWidth)"""
# What carries meaning, beside what all figures have: a selector, the property of its colour, and the least contrast.
STAND_OUT: dict[str, list[tuple[str, str, float]]] = {
    "head": [
        *((".he-fill", "background-color", 3), (".he-link", "stroke", 3), (".he-thumb .he-row", "stroke", 3)),
        (".he-word[aria-checked=true] .he-token", "border-top-color", 3),
        *((".he-number", "color", 4.5), (".he-place", "color", 4.5)),
    ],
    "gradient": [
        *((f".ge-chart .ge-line-{cell}", "stroke", 3) for cell in range(4)),
        *((".ge-ring", "stroke", 3), (".ge-cursor", "stroke", 3)),
        *((".ge-tick", "fill", 4.5), (".explorer-value", "color", 4.5)),
    ],
    "lookup": [(".le-fill", "background-color", 3), (".le-number", "color", 4.5)],
    "merge": [(".me-piece", "color", 4.5)],
    "gap": [(".ge-word[aria-pressed=true]", "color", 4.5)],
}
every_explorer = pytest.mark.parametrize("name", EXAMPLES)


@pytest.fixture
def page(reused_page: Any) -> Any:
    return reused_page


@pytest.fixture
def show(open_page: Open) -> Open:
    """Open a page with one example, or several."""

    def show_it(*names: str, text: Callable[[str], str] = plainly, **options: Any) -> Any:
        return open_page(*(EXAMPLES[name](text) for name in names), **options)

    return show_it


def outermost(page: Any) -> Any:
    return page.locator(".cell_output .text_html > .explorer")


def said(page: Any) -> list[str]:
    return page.locator(".explorer-live").all_text_contents()


def play(page: Any) -> list[tuple[str, ...]]:
    """Go through a figure and use each of its controls with the keyboard; what is said after each, and before the first.

    What has the focus has to be seen: an outline of two pixels, of the control or of a part of it.
    """
    seen = [tuple(said(page))]
    for _ in range(40):
        page.keyboard.press("Tab")
        stop = page.evaluate_handle("document.activeElement").as_element()
        kind, outline, html = stop.evaluate(
            "stop => [stop.tagName === 'SUMMARY' ? 'fold' : stop.getAttribute('role') ?? stop.type,"
            " Math.max(...[stop, ...stop.querySelectorAll('*')].map((e) => { const style = getComputedStyle(e);"
            " return style.outlineStyle === 'none' ? 0 : parseFloat(style.outlineWidth); })), stop.outerHTML.slice(0, 200)]"
        )
        if kind == "fold":
            return seen
        assert outline >= 2, html
        page.keyboard.press({"number": "ArrowUp", "button": "Enter"}.get(kind, "ArrowRight"))
        seen.append(tuple(said(page)))
    raise AssertionError("after forty tab stops the keyboard is still in the figure")


def complaints_of(axe: Any, page: Any) -> list[Any]:
    # Preloading would read style sheets with XMLHttpRequest, which a page from a disk may not do.
    violations = axe.run(page, options={"preload": False}).response["violations"]
    return [(violation["id"], [node["html"] for node in violation["nodes"]]) for violation in violations]


@every_explorer
def test_keyboard_reaches_what_can_be_seen_and_changes_what_this_figure_alone_says(show: Open, name: str) -> None:
    page = show(name, name)
    for live in page.locator(".explorer-live").all():
        attributes = [live.get_attribute(attribute) for attribute in ("role", "aria-live", "aria-atomic")]
        assert attributes == ["status", "polite", "true"]
    seen = play(page)
    assert all(seen[0])
    half = len(seen[0]) // 2
    assert len({lives[:half] for lives in seen}) > 1, "no control changed what is said"
    assert {lives[half:] for lives in seen} == {seen[0][half:]}


@every_explorer
def test_group_of_buttons_is_one_tab_stop_in_which_arrows_choose_and_do_not_scroll(show: Open, name: str) -> None:
    page = show(*[name] * 3)
    for group in outermost(page).first.get_by_role("radiogroup").all():
        radios = group.get_by_role("radio")
        if radios.count() < 2:
            continue
        stops = [radio for radio in radios.all() if radio.get_attribute("tabindex") == "0"]
        assert len(stops) == 1
        label = stops[0].get_attribute("aria-label")
        group.locator("[tabindex='0']").focus()
        page.wait_for_timeout(50)
        before = page.evaluate("window.scrollY")
        for key in ("Control+ArrowDown", "Alt+ArrowRight", "x", "Meta+ArrowUp"):
            page.keyboard.press(key)
            assert group.locator("[aria-checked=true]").get_attribute("aria-label") == label, key
        page.keyboard.press("Home")
        page.keyboard.press("ArrowDown")
        chosen = group.locator("[aria-checked=true]")
        assert chosen.count() == 1
        assert chosen.evaluate("radio => radio === document.activeElement && radio.tabIndex === 0")
        assert radios.first.get_attribute("aria-checked") == "false"
        page.keyboard.press("End")
        assert radios.last.evaluate("radio => radio === document.activeElement")
        assert page.evaluate("window.scrollY") == before


@every_explorer
def test_element_that_arrives_after_the_page_or_moves_has_one_figure_and_keeps_its_tables_without_data(
    open_page: Open, name: str
) -> None:
    text = EXAMPLES[name](plainly)._repr_html_()
    page = open_page(elements=text)
    insert = "html => document.querySelector('main').insertAdjacentHTML('beforeend', html)"
    page.evaluate(insert, re.sub(r"(<script[^>]*>).*?(</script>)", r"\1{broken\2", text))
    assert any(table.is_visible() for table in page.locator("table").all())
    assert page.locator(".explorer-figure").count() == 0
    page.evaluate("document.querySelector('main').replaceChildren()")
    page.evaluate(insert, text)
    figures = page.locator(".explorer > .explorer-figure").count()
    assert figures == page.locator(".explorer").count()
    page.evaluate("const e = document.querySelector('.explorer'); e.remove(); document.querySelector('main').append(e)")
    assert page.locator(".explorer > .explorer-figure").count() == figures


@pytest.fixture(scope="module")
def scriptless(chromium: Any) -> Iterator[Any]:
    """A page that gets no scripts but those of axe."""
    context = chromium.new_context(offline=True)
    page = context.new_page()
    page.route("**/*.js", lambda route: route.abort())
    yield page
    context.close()


@every_explorer
def test_without_the_scripts_the_tables_are_there_to_read(show: Open, axe: Any, name: str, scriptless: Any) -> None:
    page, explorer = show(name, on=scriptless), EXAMPLES[name](plainly)
    assert page.locator(".explorer-figure").count() == 0
    assert not complaints_of(axe, page)
    tables = page.locator("table").all()
    assert len(tables) == explorer.plain().count("<table")
    assert sum(table.is_visible() for table in tables) == explorer.plain().count("<details open>")
    assert page.get_by_text(explorer.caption, exact=True).is_visible()
    for details in page.locator("details").all():
        if details.get_attribute("open") is None:
            details.locator("> summary").click()
    assert all(table.is_visible() for table in tables)


@every_explorer
@pytest.mark.parametrize("theme", THEMES)
def test_figure_before_its_folded_tables_stands_out_and_axe_finds_nothing(
    show: Open, axe: Any, contrast: Callable[[str, str], float], name: str, theme: str
) -> None:
    page, caption = show(name, theme=theme), EXAMPLES[name](plainly).caption
    assert page.get_by_role("group", name=caption, exact=True).first.is_visible()
    assert page.get_by_text(caption, exact=True).count() == 1
    if name in STATES:
        page.locator(STATES[name][0]).fill(STATES[name][1])
    page.wait_for_timeout(250)  # some colours change slowly
    chosen = [(".explorer-option[aria-checked=true]", "border-top-color", 3.0)]
    chosen *= page.locator(chosen[0][0]).count() > 0
    ink = [(".explorer-live", "color", 4.5), (".explorer-caption", "color", 4.5)]
    for selector, colour, least in [*ink, *chosen, *STAND_OUT.get(name, [])]:
        assert contrast(selector, colour) >= least, selector
    ground = page.locator(".text_html").evaluate("element => getComputedStyle(element).backgroundColor")
    assert ground == "rgba(0, 0, 0, 0)", "a light box around the figure"
    assert not complaints_of(axe, page), "the figure"
    tables = page.locator(".explorer-plain table")
    assert not any(table.is_visible() for table in tables.all())
    page.locator("details.explorer-all:visible > summary").first.click()
    assert any(table.is_visible() for table in tables.all())
    assert not complaints_of(axe, page), "with its tables"


@every_explorer
def test_nothing_moves_for_readers_who_asked_for_that(show: Open, name: str) -> None:
    page = show(name)
    moving = []
    for preference in ("no-preference", "reduce"):
        page.emulate_media(reduced_motion=preference)
        moving.append(
            page.locator(".explorer *").evaluate_all(
                "all => all.filter((e) => { const style = getComputedStyle(e);"
                " return parseFloat(style.transitionDuration) > 0 || style.animationName !== 'none'; }).length"
            )
        )
    page.emulate_media(reduced_motion="no-preference")
    assert moving[1] == 0
    assert moving[0] > 0 or name not in ("head", "block"), "there is nothing that could move"


@every_explorer
def test_texts_are_text_whatever_they_contain_and_fit_the_page(show: Open, name: str) -> None:
    elements = []
    for text in (plainly, hostile):
        page = show(name, text=text, width=320)
        assert page.evaluate("window.hacked") is None
        assert page.locator(".explorer-caption").last.text_content() == EXAMPLES[name](text).caption
        elements.append(page.locator(".explorer *").evaluate_all("all => all.map((element) => element.localName)"))
        for width in (320, 390, 800):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate(SCROLL_WIDTH) <= width
            outside = page.locator(".explorer-figure *:not(svg *, .explorer-scroll *)").evaluate_all(
                "all => all.filter((e) => e.getBoundingClientRect().right >"
                " e.closest('.explorer-figure').getBoundingClientRect().right + 0.5).map((e) => e.className)"
            )
            assert outside == [], width
    assert elements[0] == elements[1]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_more_weight_stands_out_more_and_behind_text_leaves_the_text_readable(open_page: Open, theme: str) -> None:
    page = open_page(EXAMPLES["documented"](plainly), theme=theme)
    colours = """behindText => {
      const figure = document.querySelector(".explorer-figure");
      const probe = figure.appendChild(document.createElement("i"));
      return [-1, 0, 0.25, 0.5, 1, 2].map((weight) => {
        probe.style.color = tfcourse.weightColour(weight, { behindText });
        return getComputedStyle(probe).color;
      });
    }"""
    ink, ground = page.locator(".explorer-figure").evaluate(
        "figure => [getComputedStyle(figure).color, getComputedStyle(figure).backgroundColor]"
    )
    strength = [page.evaluate(CONTRAST, [[ground, colour], ground]) for colour in page.evaluate(colours, False)]
    assert strength[0] == strength[1] == pytest.approx(1, abs=1e-6)
    assert strength[1] < strength[2] < strength[3] < strength[4] == strength[5]
    assert strength[4] >= 4.5
    behind = page.evaluate(colours, True)
    assert len(set(behind)) == 4, "more weight is darker behind a text, too"
    assert all(page.evaluate(CONTRAST, [ink, [ground, colour]]) >= 4.5 for colour in behind)
