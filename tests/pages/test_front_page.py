"""The front page's figures in a reader's hands: mouse, keyboard, light and dark, and without JavaScript."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from autograder.checking.verdict import Diagnosis, Finding, Verdict
from autograder.site.front_page.attempts import Attempt, attempts_html
from autograder.site.front_page.hero import Heads, hero_svg

pytestmark = pytest.mark.browser

Open = Callable[..., Any]
THEMES = ("light", "dark")
WORDS = ["Ana", "waters", "the", "fern"]


@dataclass
class Markup:
    """HTML as the output of a cell."""

    text: str

    def _repr_html_(self) -> str:
        return self.text


def hero() -> Markup:
    def row(query: int, focus: int) -> list[float]:
        return [0.7 if key == min(focus, query) else 0.3 / max(query, 1) for key in range(query + 1)] + [0.0] * (
            3 - query
        )

    heads = Heads(WORDS, [[row(query, focus) for query in range(4)] for focus in (0, 1)])
    svg = hero_svg(heads, (0, 3))
    return Markup(
        f'<hero-explorer class="explorer"><figure class="tfc-hero-figure">{svg}<p>Who?</p></figure></hero-explorer>'
    )


def attempts() -> Markup:
    def verdict(score: float, explanation: str) -> Verdict:
        findings = (
            Finding("numbers", "The numbers are right.", 3, passed=True, message="as it should be"),
            Finding("mask", "The mask holds.", 2, False, "7 of 9 are wrong", Diagnosis("m", explanation, "masks")),
        )
        return Verdict("f", "03_scaled_dot_product", findings)

    pairs = [(Attempt(f"Mistake {i}", f"def f():\n    return {i}"), verdict(i, f"Explanation {i}.")) for i in (1, 2, 3)]
    return Markup(attempts_html(pairs, "Three mistakes.", lambda document: f"{document}.html"))


def shown(page: Any) -> list[str]:
    return [state.get_attribute("data-state") for state in page.locator("[data-state]").all() if state.is_visible()]


def test_the_hero_follows_mouse_and_keyboard(open_page: Open) -> None:
    page = open_page(hero())
    assert shown(page) == ["0-3"]
    page.locator('[data-word="1"]').hover()
    assert shown(page) == ["0-1"]
    page.get_by_role("radiogroup", name="The head").get_by_role("radio", name="Head 2").click()
    assert shown(page) == ["1-1"]
    page.locator('[data-word="1"]').focus()
    page.keyboard.press("ArrowRight")
    assert shown(page) == ["1-2"]
    assert page.locator(".tfc-hero-live").text_content().startswith("Head 2: “the” attends 70 % to “waters”")


def test_an_attempt_shows_alone_and_is_announced(open_page: Open) -> None:
    page = open_page(attempts())
    visible = [attempt.is_visible() for attempt in page.locator(".tfc-attempt").all()]
    assert visible == [True, False, False]
    page.get_by_role("radio", name="Mistake 1").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator(".tfc-attempt-diagnosis", has_text="Explanation 2.").is_visible()
    assert not page.locator(".tfc-attempt").first.is_visible()
    assert "Explanation 2." in page.locator("[role=status]").text_content()


def test_without_a_script_all_attempts_and_the_sentence_can_be_read(chromium: Any, open_page: Open) -> None:
    context = chromium.new_context(java_script_enabled=False, offline=True)
    page = open_page(attempts(), hero(), on=context.new_page())
    assert all(attempt.is_visible() for attempt in page.locator(".tfc-attempt").all())
    assert page.get_by_text("Mistake 3").is_visible()
    assert page.locator("svg.tfc-hero[role=img]").is_visible()
    context.close()


@pytest.mark.parametrize("theme", THEMES)
def test_figures_of_the_front_page_are_accessible_fit_and_can_be_read_on_a_phone(
    open_page: Open, axe: Any, theme: str
) -> None:
    page = open_page(hero(), attempts(), theme=theme)
    for width in (1000, 390):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(300)
        violations = axe.run(page, options={"preload": False}).response["violations"]
        assert [(item["id"], [node["html"][:200] for node in item["nodes"]]) for item in violations] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    sizes = page.locator(".tfc-hero text:visible").evaluate_all(
        "texts => texts.map(text => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a)"
    )
    assert min(sizes) >= 9
