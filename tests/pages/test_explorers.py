"""What every figure to play with does in a reader's hands: mouse, keyboard, screen reader, light and dark, and without JavaScript.

What a figure does of its own is tested in a file of its own, such as `test_head_explorer.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ..tfcourse.lessons.explorers.examples import EXAMPLES, hostile, plainly

pytestmark = pytest.mark.browser

THEMES = ("light", "dark")
Open = Callable[..., Any]
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


def tab_stops(page: Any) -> Iterator[Any]:
    """Press Tab until the fold with the tables has the focus; what has it on the way, as a handle."""
    for _ in range(40):
        page.keyboard.press("Tab")
        focused = page.evaluate_handle("document.activeElement").as_element()
        if focused.evaluate("element => element.tagName") == "SUMMARY":
            return
        yield focused
    raise AssertionError("after forty tab stops the keyboard is still in the figure")


def play(page: Any) -> list[tuple[str, ...]]:
    """Go through a figure and use each of its controls with the keyboard; what is said after each, and before the first."""
    seen = [tuple(said(page))]
    for stop in tab_stops(page):
        kind = stop.evaluate("element => element.getAttribute('role') ?? element.type")
        page.keyboard.press({"number": "ArrowUp", "button": "Enter"}.get(kind, "ArrowRight"))
        seen.append(tuple(said(page)))
    return seen


def complaints_of(axe: Any, page: Any) -> list[Any]:
    # Preloading would read style sheets with XMLHttpRequest, which a page from a disk may not do.
    violations = axe.run(page, options={"preload": False}).response["violations"]
    return [(violation["id"], [node["html"] for node in violation["nodes"]]) for violation in violations]


@every_explorer
def test_figure_comes_before_the_tables_which_are_folded_away(show: Open, name: str) -> None:
    page = show(name)
    caption = EXAMPLES[name](plainly).caption
    assert page.get_by_role("group", name=caption, exact=True).first.is_visible()
    assert page.get_by_text(caption, exact=True).count() == 1
    tables = page.locator(".explorer-plain table")
    assert not any(table.is_visible() for table in tables.all())
    page.locator("details.explorer-all:visible > summary").first.click()
    assert any(table.is_visible() for table in tables.all())


@every_explorer
def test_what_is_shown_is_said_in_a_live_region_which_follows_the_keyboard(show: Open, name: str) -> None:
    page = show(name)
    for live in page.locator(".explorer-live").all():
        attributes = [live.get_attribute(attribute) for attribute in ("role", "aria-live", "aria-atomic")]
        assert attributes == ["status", "polite", "true"]
    seen = play(page)
    assert all(seen[0])
    assert len(set(seen)) > 1, "no control changed what is said"


@every_explorer
def test_every_tab_stop_can_be_seen_and_has_a_name(show: Open, name: str) -> None:
    page = show(name)
    for stop in tab_stops(page):
        widths = stop.evaluate(
            "stop => [stop, ...stop.querySelectorAll('*')].map((e) => { const style = getComputedStyle(e);"
            " return style.outlineStyle === 'none' ? 0 : parseFloat(style.outlineWidth); })"
        )
        assert max(widths) >= 2, stop.evaluate("stop => stop.outerHTML.slice(0, 200)")


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
def test_figures_on_one_page_do_not_disturb_each_other(show: Open, name: str) -> None:
    page = show(name, name)
    lives = said(page)
    half = len(lives) // 2
    play(page)
    assert said(page)[half:] == lives[half:]
    assert said(page)[:half] != lives[:half]


@every_explorer
def test_element_that_arrives_after_the_page_or_moves_has_one_figure(open_page: Open, name: str) -> None:
    text = EXAMPLES[name](plainly)._repr_html_()
    page = open_page(elements=text)
    page.evaluate("html => document.querySelector('main').insertAdjacentHTML('beforeend', html)", text)
    figures = page.locator(".explorer > .explorer-figure").count()
    assert figures == page.locator(".explorer").count()
    page.evaluate("const e = document.querySelector('.explorer'); e.remove(); document.querySelector('main').append(e)")
    assert page.locator(".explorer > .explorer-figure").count() == figures


@every_explorer
def test_tables_stay_if_the_data_cannot_be_read(open_page: Open, name: str) -> None:
    text = EXAMPLES[name](plainly)._repr_html_()
    page = open_page(elements=text)
    broken = re.sub(r"(<script[^>]*>).*?(</script>)", r"\1{broken\2", text)
    page.evaluate("html => document.querySelector('main').insertAdjacentHTML('beforeend', html)", broken)
    assert any(table.is_visible() for table in page.locator("table").all())
    assert page.locator(".explorer-figure").count() == 0


@every_explorer
def test_without_javascript_the_tables_are_there_to_read(show: Open, name: str, chromium: Any) -> None:
    context = chromium.new_context(java_script_enabled=False, offline=True)
    page = show(name, on=context.new_page())
    explorer = EXAMPLES[name](plainly)
    assert page.locator("table").count() == explorer.plain().count("<table")
    shown = [table.is_visible() for table in page.locator("table").all()]
    assert sum(shown) == explorer.plain().count("<details open>")
    assert page.get_by_text(explorer.caption, exact=True).is_visible()
    for details in page.locator("details").all():
        if details.get_attribute("open") is None:
            details.locator("> summary").click()
    assert all(table.is_visible() for table in page.locator("table").all())
    context.close()


@every_explorer
def test_axe_finds_nothing_without_the_scripts_either(show: Open, axe: Any, name: str, chromium: Any) -> None:
    context = chromium.new_context(offline=True)
    page = context.new_page()
    page.route("**/*.js", lambda route: route.abort())  # the scripts are missing; axe itself needs one
    show(name, on=page)
    assert page.locator(".explorer-figure").count() == 0
    complaints = complaints_of(axe, page)
    context.close()
    assert not complaints


@every_explorer
@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_to_complain_about(show: Open, axe: Any, name: str, theme: str) -> None:
    page = show(name, theme=theme)
    for unfolded in (False, True):
        if unfolded:
            page.locator("details.explorer-all:visible > summary").first.click()
        page.wait_for_timeout(250)  # some colours change slowly
        assert not complaints_of(axe, page), "with its tables" if unfolded else "the figure"


@every_explorer
@pytest.mark.parametrize("theme", THEMES)
def test_sentence_caption_and_choice_stand_out_in_both_themes(
    show: Open, contrast: Callable[[str, str], float], name: str, theme: str
) -> None:
    page = show(name, theme=theme)
    for selector in (".explorer-live", ".explorer-caption"):
        assert contrast(selector, "color") >= 4.5
    if page.locator(".explorer-option[aria-checked=true]").count():
        assert contrast(".explorer-option[aria-checked=true]", "border-top-color") >= 3


@every_explorer
def test_dark_page_has_no_light_box_around_the_figure(show: Open, name: str) -> None:
    box = (
        show(name, theme="dark").locator(".text_html").evaluate("element => getComputedStyle(element).backgroundColor")
    )
    assert box == "rgba(0, 0, 0, 0)"


@every_explorer
def test_nothing_moves_for_readers_who_asked_for_that(show: Open, name: str, chromium: Any) -> None:
    moving = {}
    for preference in ("reduce", "no-preference"):
        context = chromium.new_context(reduced_motion=preference, offline=True)
        page = show(name, on=context.new_page())
        moving[preference] = page.locator(".explorer *").evaluate_all(
            "all => all.filter((e) => { const style = getComputedStyle(e);"
            " return parseFloat(style.transitionDuration) > 0 || style.animationName !== 'none'; }).length"
        )
        context.close()
    assert moving["reduce"] == 0


@every_explorer
def test_texts_are_text_whatever_they_contain(show: Open, name: str) -> None:
    count = "all => all.map((element) => element.localName)"
    tame = show(name).locator(".explorer *").evaluate_all(count)
    page = show(name, text=hostile)
    assert page.evaluate("window.hacked") is None
    assert page.locator(".explorer *").evaluate_all(count) == tame
    assert page.locator(".explorer-caption").last.text_content() == EXAMPLES[name](hostile).caption


@every_explorer
@pytest.mark.parametrize("width", [320, 390, 800])
@pytest.mark.parametrize("text", [plainly, hostile])
def test_figure_fits_its_page_without_scrolling_sideways(show: Open, name: str, width: int, text: Any) -> None:
    page = show(name, width=width, text=text)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    outside = page.locator(".explorer-figure *:not(svg *, .explorer-scroll *)").evaluate_all(
        "all => all.filter((e) => e.getBoundingClientRect().right > e.closest('.explorer-figure').getBoundingClientRect().right + 0.5)"
        ".map((e) => e.className)"
    )
    assert outside == []
