"""Slides in a browser: nothing overflows, text can be read from the last row, and every state of every slide is accessible."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup

from autograder.site.slides.build import Decks, build_decks
from autograder.site.slides.source import decks

ROOT = Path(__file__).parents[2]
DECKS = decks(ROOT)
SIZES = ((1280, 720), (1024, 768))
SMALLEST = 18
# Preloading would read style sheets with XMLHttpRequest, which a page from a disk may not do.
CONTRAST = {"preload": False, "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}
# What a slide shows, without its notes. Text in a plot is drawn as paths: its size is that of its group's scale. Subscripts may be smaller.
FAULTS = """(smallest) => {
    const slide = Reveal.getCurrentSlide(), faults = [];
    const shown = [...slide.querySelectorAll('*')].filter(e => !e.closest('aside, mjx-assistive-mml, style, defs')
        && e.checkVisibility({ visibilityProperty: true }));
    const scale = e => Math.hypot(e.getScreenCTM().a, e.getScreenCTM().b);
    const cut = e => e.closest('svg svg, .visually-hidden');
    for (const e of shown) {
        const box = e.getBoundingClientRect();
        if (!cut(e) && box.width && (box.right > innerWidth + 1 || box.bottom > innerHeight + 1 || box.left < -1 || box.top < -1))
            faults.push(`overflows: ${e.outerHTML.slice(0, 90)}`);
        if (['PRE', 'TABLE', 'LI', 'P', 'OL'].includes(e.tagName) && e.scrollWidth > e.clientWidth + 2
                && !e.querySelector('mjx-container'))
            faults.push(`is wider than its box: ${e.outerHTML.slice(0, 90)}`);
        const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
        const small = e.closest('sub, sup, tspan') || (e.closest('mjx-container') && e.tagName !== 'MJX-CONTAINER');
        const size = e.matches('svg text') ? parseFloat(getComputedStyle(e).fontSize) * scale(e)
            : e.matches('svg [id*="text_"] > g[transform*=scale]') ? 100 * scale(e)
            : own && !e.closest('svg') ? parseFloat(getComputedStyle(e).fontSize) : smallest;
        if (!small && size < smallest - 0.05) faults.push(`${size.toFixed(1)} px: ${e.textContent.trim().slice(0, 40)} ${e.id}`);
    }
    const parts = [...slide.children].filter(e => e.checkVisibility() && !e.matches('aside'));
    for (let i = 1; i < parts.length; i++)
        if (parts[i].getBoundingClientRect().top < parts[i - 1].getBoundingClientRect().bottom - 2)
            faults.push(`overlaps: ${parts[i].outerHTML.slice(0, 90)}`);
    for (const svg of slide.querySelectorAll('svg[role]'))
        if ((svg.getAttribute('aria-label') || '').length < 40) faults.push('a figure without a description');
    if (slide.querySelector('mjx-merror')) faults.push('a formula has an error');
    return [...new Set(faults)];
}"""
GO = "i => { const s = Reveal.getSlides()[i], at = Reveal.getIndices(s); Reveal.slide(at.h, at.v, -1); }"


@pytest.fixture(scope="module")
def built() -> Decks:
    """All decks, with the outputs of lessons that the tests of lessons have left."""
    return build_decks(ROOT, DECKS, list(DECKS), lambda line: None, ROOT / ".cache" / "site-tests" / "slides")


def _open(page: Any, folder: Path, name: str, theme: str = "light") -> int:
    """Open a deck with its formulas drawn, and return how many slides it has."""
    page.emulate_media(color_scheme=theme)
    page.goto((folder / f"{name}.html").as_uri())
    page.wait_for_function("window.Reveal && Reveal.isReady()")
    if page.locator(".math").count():
        page.wait_for_function("window.MathJax && MathJax.startup && MathJax.startup.promise")
        page.evaluate("MathJax.startup.promise")
    total: int = page.evaluate("Reveal.getTotalSlides()")
    return total


def _faults(page: Any, slides: list[int]) -> list[str]:
    """What is wrong with slides in any state of their fragments, in both sizes."""
    found = []
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        for slide in slides:
            page.evaluate(GO, slide)
            title = page.evaluate("Reveal.getCurrentSlide().querySelector('h1, h2').textContent")
            while True:
                found += [f"{title} ({width}): {fault}" for fault in page.evaluate(FAULTS, SMALLEST)]
                if not page.evaluate("Reveal.availableFragments().next"):
                    break
                page.keyboard.press("ArrowRight")
    return list(dict.fromkeys(found))


def _objections(page: Any, axe: Any, slides: list[int]) -> list[str]:
    found = []
    for slide in slides:
        page.evaluate(GO, slide)
        page.evaluate("while (Reveal.availableFragments().next) Reveal.nextFragment()")
        violations = axe.run(page, options=CONTRAST).response["violations"]
        found += [f"{item['id']}: {node['html'][:120]}" for item in violations for node in item["nodes"]]
    return list(dict.fromkeys(found))


def _kinds(page: Any) -> list[int]:
    """The first slide of each kind: what its parts are."""
    kinds = page.evaluate(
        "Reveal.getSlides().map(s => [...s.children].map(e => `${e.tagName}.${e.classList[0] || ''}`).join())"
    )
    return [kinds.index(kind) for kind in dict.fromkeys(kinds)]


@pytest.mark.browser
def test_a_slide_of_each_kind_can_be_read(reused_page: Any, axe: Any, built: Decks) -> None:
    _open(reused_page, built.folder, "03")
    slides = _kinds(reused_page)
    assert _faults(reused_page, slides) == []
    assert _objections(reused_page, axe, slides) == []


@pytest.mark.audit
@pytest.mark.browser
@pytest.mark.parametrize("name", DECKS)
def test_every_slide_can_be_read(reused_page: Any, axe: Any, built: Decks, name: str) -> None:
    for theme in ("dark", "light"):
        slides = list(range(_open(reused_page, built.folder, name, theme)))
        assert _objections(reused_page, axe, slides) == []
    assert _faults(reused_page, slides) == []


@pytest.mark.parametrize("name", DECKS)
def test_a_deck_fills_a_lecture(built: Decks, name: str) -> None:
    deck = next(report for report in built.reports if report.name == name)
    assert 85 <= sum(deck.halves) <= 95
    assert len(deck.halves) == 2
    assert abs(deck.halves[0] - deck.halves[1]) <= 15
    assert 35 <= deck.short <= 50


# Whoever has not read the question: what is chosen by the texts of the four options alone.
BLIND: dict[str, Any] = {
    **{f"always {letter}": lambda texts, at=at: at for at, letter in enumerate("ABCD")},
    "the longest": lambda texts: max(range(4), key=lambda at: len(texts[at])),
    "the shortest": lambda texts: min(range(4), key=lambda at: len(texts[at])),
    "most words of the others": lambda texts: max(range(4), key=lambda at: _shared(texts, at)),
    "fewest words of the others": lambda texts: min(range(4), key=lambda at: _shared(texts, at)),
}


def _shared(texts: list[str], at: int) -> int:
    words = [Counter(re.findall(r"\w+", text.lower())) for text in texts]
    return sum((words[at] & other).total() for place, other in enumerate(words) if place != at)


@pytest.mark.parametrize("strategy", BLIND)
def test_the_options_alone_do_not_give_the_key_away(built: Decks, strategy: str) -> None:
    pages = [
        BeautifulSoup((built.folder / f"{name}.html").read_text(encoding="utf-8"), "html.parser") for name in DECKS
    ]
    questions = [options.find_all("li", recursive=False) for page in pages for options in page.select(".question > ol")]
    chosen = [options[BLIND[strategy]([option.get_text() for option in options])] for options in questions]
    right = ["right" in option.get("class", ()) for option in chosen]
    assert len(right) >= 6 * len(DECKS)
    assert sum(right) <= 0.35 * len(right)
