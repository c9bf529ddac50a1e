"""What a reader of a page may not meet: formulas that were not drawn, a page that scrolls sideways, what axe objects to."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

THEMES = ("light", "dark")
# Preloading would read style sheets with XMLHttpRequest, which a page from a disk may not do.
# The themes differ in colours only: in the dark those rules are enough.
WCAG = {
    "light": {"preload": False, "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}},
    "dark": {"preload": False, "runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}},
}
# What repeats itself is looked at once a page, or a lesson would take half a minute: colours of code by the kind of word and of block, a
# table's rows and columns beyond the fourth, formulas beyond the fourth (all were looked at when they were drawn), and the insides of a
# picture, which is one image to its reader and has its words beside it. A word of one letter is passed over by the rule itself.
THIN = """() => {
    const seen = new Set();
    for (const word of document.querySelectorAll('.highlight pre span[class]')) {
        const around = word.closest('.cell_output, .cell_input, .admonition, article');
        const kind = [word.className, word.parentElement.className, around?.className].join();
        if (seen.has(kind) || word.textContent.trim().length < 2) word.replaceWith(word.textContent);
        else seen.add(kind);
    }
    const more = [...document.querySelectorAll('mjx-container')].slice(4).flatMap(formula => [...formula.children]);
    const many = document.querySelectorAll('tr:nth-child(n + 5), tr > :nth-child(n + 5), svg[role=img] > :not(title, desc)');
    for (const part of [...more, ...many]) part.remove();
}"""


def open_page(page: Any, site: Path, name: str, theme: str = "light", *, formulas: bool = False) -> None:
    """Open a page of a built site from the disk; with `formulas`, wait until they are drawn."""
    page.emulate_media(color_scheme=theme)
    page.goto((site / f"{name}.html").as_uri(), wait_until="load" if formulas else "domcontentloaded")
    if formulas and page.locator(".math").count():
        page.wait_for_function("window.MathJax && MathJax.startup && MathJax.startup.promise")
        page.evaluate("MathJax.startup.promise")


def page_faults(page: Any, axe: Any) -> list[str]:
    """Return what is wrong with the page that is open, with its formulas drawn, in both themes and on a narrow screen.

    One visit for all of it, because formulas take seconds to be drawn. The page is thinned out on the way.
    """
    found = []
    if not page.locator("#main-content h1:visible").first.inner_text().strip():
        found.append("the page has no heading")
    if page.locator(".bd-article .math").count() != page.locator(".bd-article .math mjx-container").count():
        found.append("a formula was not rendered")
    if page.locator("mjx-merror").count():
        found.append("a formula has an error in its TeX")
    if re.search(r"\\\(|\\\[|\\frac|\$\$", page.locator("#main-content").inner_text()):
        found.append("TeX was left in the text")
    page.set_viewport_size({"width": 360, "height": 740})
    if page.evaluate("document.documentElement.scrollWidth") > 360:
        found.append("the page scrolls sideways")
    page.set_viewport_size({"width": 1200, "height": 900})
    page.evaluate(THIN)
    return found + [fault for theme in THEMES for fault in _objections(page, axe, theme)]


def _objections(page: Any, axe: Any, theme: str) -> list[str]:
    page.emulate_media(color_scheme=theme)  # a page whose theme nobody has chosen follows its reader's
    page.wait_for_function(f"document.documentElement.dataset.theme === '{theme}' && !document.getAnimations().length")
    return [
        f"{theme}: {item['id']}: {node['html'][:120]}: {node['failureSummary']}"
        for item in axe.run(page, options=WCAG[theme]).response["violations"]
        for node in item["nodes"]
    ]
