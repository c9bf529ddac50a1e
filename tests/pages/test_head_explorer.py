"""The head explorer in a reader's hands: mouse, keyboard, screen reader, light and dark, and without JavaScript."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tfcourse.explorers.heads import HeadExplorer, head_explorer

pytestmark = pytest.mark.browser

STATIC = Path(__file__).parents[2] / "book" / "_static"
SENTENCE = ["the", "aunt", "near", "the", "boys", "says", "she", "sees", "them"]
NASTY = [
    "</script><script>window.hacked = 1</script>",
    "<b>bold</b>",
    '"quoted" & more',
    "\u05de\u05d9\u05dc\u05d4",
    " ",
]
THEMES = ("light", "dark")
Open = Callable[..., Any]


def causal_weights(layers: int = 2, heads: int = 3, seed: int = 0) -> Tensor:
    scores = 2.5 * torch.randn(layers, heads, 9, 9, generator=torch.Generator().manual_seed(seed))
    return scores.masked_fill(~torch.ones(9, 9).tril().bool(), -torch.inf).softmax(-1)


def on_sentence(weights: Tensor | None = None, **options: Any) -> HeadExplorer:
    weights = causal_weights() if weights is None else weights
    return head_explorer(SENTENCE, weights, caption="Who looks where in our sentence?", **options)


def theme_styles() -> list[Path]:
    spec = importlib.util.find_spec("pydata_sphinx_theme")
    if spec is None or spec.origin is None:
        return []
    return [Path(spec.origin).parent / "theme/pydata_sphinx_theme/static/styles/pydata-sphinx-theme.css"]


@pytest.fixture
def open_page(page: Any, tmp_path: Path) -> Open:
    """Open a page from the disk that shows explorers, as a page of the site would."""

    def open_it(*explorers: HeadExplorer, theme: str = "light", on: Any = page, width: int = 1000) -> Any:
        styles = [*theme_styles(), STATIC / "custom.css", STATIC / "head-explorer.css"]
        links = "".join(f'<link rel="stylesheet" href="{style.as_uri()}">' for style in styles if style.exists())
        script = (STATIC / "head-explorer.js").as_uri()
        cells = "".join(
            f'<div class="cell_output"><div class="output text_html">{explorer._repr_html_()}</div></div>'
            for explorer in explorers
        )
        (tmp_path / "page.html").write_text(
            f'<!doctype html><html lang="en" data-theme="{theme}"><head><meta charset="utf-8"><title>Heads</title>'
            f'{links}<script src="{script}"></script></head><body style="display: block"><main class="bd-content" '
            f'style="display: block; max-width: 46rem; margin: auto"><h1>Heads</h1>{cells}</main></body></html>',
            encoding="utf-8",
        )
        on.set_viewport_size({"width": width, "height": 900})
        on.goto((tmp_path / "page.html").as_uri())
        return on

    return open_it


def sentence_below(page: Any) -> str:
    """What the live region says, without the marks that isolate words of another direction."""
    return re.sub("[\u2066-\u2069]", "", page.locator(".he-live").first.text_content())


def strongest(row: Tensor) -> str:
    return SENTENCE[int(row.argmax())]


def focused(page: Any) -> str:
    return page.evaluate("document.activeElement.getAttribute('aria-label')")


def test_figure_comes_before_the_tables_which_are_folded_away(open_page: Open) -> None:
    page = open_page(on_sentence())
    assert page.locator("head-explorer > figure.he").is_visible()
    assert page.get_by_role("group", name="Who looks where in our sentence?").first.is_visible()
    assert page.locator("details.he-all > summary").text_content() == "All weights as tables"
    assert not page.locator("table").first.is_visible()
    page.locator("details.he-all > summary").click()
    assert page.locator("table").first.is_visible()
    assert page.get_by_text("Who looks where in our sentence?").count() == 1


def test_every_weight_of_the_chosen_word_is_shown_as_number_and_bar(open_page: Open) -> None:
    weights = causal_weights()
    page = open_page(on_sentence(weights, start=(1, 2, 6)))
    row = weights[1, 2, 6].tolist()
    expected = ["0" if weight == 0 else "<\u20090.01" if weight < 0.005 else f"{weight:.2f}" for weight in row]
    assert page.locator(".he-number").all_text_contents() == expected
    scales = [fill.evaluate("element => element.style.transform") for fill in page.locator(".he-fill").all()]
    drawn = torch.tensor([float(re.sub(r"scaleX\((.*)\)", r"\1", scale)) for scale in scales])
    torch.testing.assert_close(drawn, weights[1, 2, 6], atol=1e-4, rtol=0)


def test_click_chooses_a_head_and_a_word(open_page: Open) -> None:
    weights = causal_weights()
    page = open_page(on_sentence(weights))
    page.get_by_role("radio", name="Layer 2, head 3").click()
    page.get_by_role("radio", name="she, word 7").click()
    assert page.locator(".he-heading").text_content() == "Layer 2, head 3"
    assert sentence_below(page).startswith("Layer 2, head 3: “she” looks at “")
    assert strongest(weights[1, 2, 6]) in sentence_below(page)
    assert page.locator(".he-thumb[aria-checked=true]").count() == 1
    assert page.locator(".he-word[aria-checked=true]").count() == 1


def test_mouse_over_a_word_previews_it_and_leaving_goes_back(open_page: Open) -> None:
    page = open_page(on_sentence(start=(0, 0, 8)))
    chosen = sentence_below(page)
    page.get_by_role("radio", name="aunt, word 2").hover()
    assert "“aunt” looks at" in sentence_below(page)
    assert page.get_by_role("radio", name="them, word 9").get_attribute("aria-checked") == "true"
    page.mouse.move(2, 2)
    assert sentence_below(page) == chosen


def test_heads_and_words_are_one_tab_stop_each(open_page: Open) -> None:
    page = open_page(on_sentence(start=(1, 1, 4)))
    stops = []
    for _ in range(3):
        page.keyboard.press("Tab")
        stops.append(
            page.evaluate("document.activeElement.getAttribute('aria-label') ?? document.activeElement.tagName")
        )
    assert stops == ["Layer 2, head 2", "boys, word 5", "SUMMARY"]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("ArrowRight", "Layer 1, head 2"),
        ("ArrowRight ArrowRight ArrowRight", "Layer 2, head 1"),
        ("ArrowLeft", "Layer 2, head 3"),
        ("ArrowDown", "Layer 2, head 1"),
        ("ArrowDown ArrowDown", "Layer 2, head 1"),
        ("ArrowRight ArrowDown ArrowUp", "Layer 1, head 2"),
        ("End", "Layer 2, head 3"),
        ("End Home", "Layer 1, head 1"),
    ],
)
def test_arrows_move_between_heads_and_layers_and_take_the_focus_along(
    open_page: Open, keys: str, expected: str
) -> None:
    page = open_page(on_sentence())
    page.get_by_role("radio", name="Layer 1, head 1").focus()
    for key in keys.split():
        page.keyboard.press(key)
    assert focused(page) == expected
    assert page.locator(".he-heading").text_content() == expected


@pytest.mark.parametrize(
    ("keys", "word", "heading"),
    [
        ("ArrowUp", "sees, word 8", "Layer 1, head 1"),
        ("ArrowDown", "them, word 9", "Layer 1, head 1"),
        ("Home", "the, word 1", "Layer 1, head 1"),
        ("Home ArrowUp", "the, word 1", "Layer 1, head 1"),
        ("Home End", "them, word 9", "Layer 1, head 1"),
        ("ArrowUp ArrowRight", "sees, word 8", "Layer 1, head 2"),
        ("ArrowLeft", "them, word 9", "Layer 2, head 3"),
    ],
)
def test_up_and_down_choose_the_word_and_left_and_right_its_head(
    open_page: Open, keys: str, word: str, heading: str
) -> None:
    page = open_page(on_sentence())
    page.get_by_role("radio", name="them, word 9").focus()
    for key in keys.split():
        page.keyboard.press(key)
    assert focused(page) == word
    assert page.locator(".he-heading").text_content() == heading
    assert sentence_below(page).startswith(f"{heading}: “{word.split(',')[0]}”")


def test_arrows_in_the_figure_do_not_scroll_the_page_and_other_keys_are_left_alone(open_page: Open) -> None:
    page = open_page(on_sentence(), on_sentence(), on_sentence())
    page.get_by_role("radio", name="the, word 1").first.focus()
    before = page.evaluate("window.scrollY")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("window.scrollY") == before
    said = sentence_below(page)
    for key in ("Control+ArrowDown", "Alt+ArrowRight", "x", "Meta+ArrowUp"):
        page.keyboard.press(key)
    assert sentence_below(page) == said


def test_live_region_says_the_strongest_links_and_which_of_two_equal_words(open_page: Open) -> None:
    weights = torch.zeros(1, 1, 9, 9)
    weights[..., 0] = 1.0
    weights[0, 0, 4, :4] = torch.tensor([0.62, 0.04, 0.06, 0.28])
    page = open_page(on_sentence(weights, start=(0, 0, 4)))
    live = page.locator(".he-live").first
    assert live.get_attribute("role") == "status"
    assert live.get_attribute("aria-live") == "polite"
    assert sentence_below(page) == (
        "Layer 1, head 1: “boys” looks at “the” (word 1) 0.62, “the” (word 4) 0.28 and “near” 0.06."
    )


def test_live_region_points_out_rows_that_are_empty_or_do_not_sum_to_one(open_page: Open) -> None:
    weights = torch.full((1, 1, 9, 9), 0.2)
    weights[0, 0, 1] = 0.0
    page = open_page(on_sentence(weights, start=(0, 0, 1)))
    assert sentence_below(page) == "Layer 1, head 1: “aunt” looks at nothing: all of its weights are zero."
    page.get_by_role("radio", name="near, word 3").click()
    assert sentence_below(page).endswith("Its weights sum to 1.80, not to one.")


def test_thin_spread_is_told_by_its_strongest_link(open_page: Open) -> None:
    tokens = [f"t{i}" for i in range(40)]
    page = open_page(head_explorer(tokens, torch.full((1, 1, 40, 40), 1 / 40), caption="Even"))
    assert sentence_below(page) == "Layer 1, head 1: “t39” looks at “t0” 0.03."


def test_cross_attention_shows_both_sequences(open_page: Open) -> None:
    weights = torch.randn(1, 2, 3, 5, generator=torch.Generator().manual_seed(1)).softmax(-1)
    explorer = head_explorer(
        ["she", "sees", "them", "all", "day"], weights, query_tokens=["elle", "les", "voit"], caption="c"
    )
    page = open_page(explorer)
    assert page.locator(".he-word .he-token").all_text_contents() == ["elle", "les", "voit"]
    assert page.locator(".he-key .he-token").all_text_contents() == ["she", "sees", "them", "all", "day"]


def test_tokens_are_text_whatever_they_contain(open_page: Open) -> None:
    weights = torch.randn(1, 1, 5, 5, generator=torch.Generator().manual_seed(1)).softmax(-1)
    page = open_page(head_explorer(NASTY, weights, caption="<i>not</i> italic"))
    assert page.evaluate("window.hacked") is None
    assert page.locator("head-explorer b, head-explorer i").count() == 0
    assert page.locator(".he-word .he-token").all_text_contents() == [*NASTY[:-1], "\u2423"]
    assert page.locator(".he-caption").text_content() == "<i>not</i> italic"


def test_explorers_on_one_page_do_not_disturb_each_other(open_page: Open) -> None:
    page = open_page(on_sentence(), on_sentence())
    second = page.locator("head-explorer").nth(1)
    second.get_by_role("radio", name="Layer 2, head 2").click()
    assert page.locator(".he-heading").all_text_contents() == ["Layer 1, head 1", "Layer 2, head 2"]


def test_element_that_arrives_after_the_page_works_too(open_page: Open) -> None:
    page = open_page()
    page.evaluate(
        "html => document.querySelector('main').insertAdjacentHTML('beforeend', html)", on_sentence()._repr_html_()
    )
    assert page.locator(".he-heading").text_content() == "Layer 1, head 1"
    page.evaluate(
        "const e = document.querySelector('head-explorer'); e.remove(); document.querySelector('main').append(e)"
    )
    assert page.locator(".he").count() == 1


def test_tables_stay_if_the_data_cannot_be_read(open_page: Open, page: Any) -> None:
    open_page()
    broken = re.sub(r"(<script[^>]*>).*?(</script>)", r"\1{broken\2", on_sentence()._repr_html_())
    page.evaluate("html => document.querySelector('main').insertAdjacentHTML('beforeend', html)", broken)
    assert page.locator("table").first.is_visible()
    assert page.locator(".he").count() == 0


def test_without_javascript_the_tables_are_there_to_read(open_page: Open, chromium: Any) -> None:
    context = chromium.new_context(java_script_enabled=False, offline=True)
    page = open_page(on_sentence(start=(0, 1, 8)), on=context.new_page())
    assert page.locator("table").count() == 6
    assert [table.is_visible() for table in page.locator("table").all()] == [False, True, False, False, False, False]
    assert page.get_by_role("columnheader", name="aunt").is_visible()
    assert page.get_by_role("rowheader", name="them").is_visible()
    assert page.get_by_text("Who looks where in our sentence?").is_visible()
    context.close()


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("unfolded", [False, True], ids=["figure", "tables"])
def test_axe_finds_nothing_to_complain_about(open_page: Open, axe: Any, theme: str, unfolded: bool) -> None:
    weights = causal_weights()
    weights[0, 0, 8] = torch.nn.functional.one_hot(torch.tensor(1), 9)  # the strongest shade that there is
    page = open_page(on_sentence(weights, start=(0, 0, 8)), theme=theme)
    if unfolded:
        page.locator("details.he-all > summary").click()
    page.wait_for_timeout(250)  # the shade of a word changes slowly
    # Preloading would read style sheets with XMLHttpRequest, which a page from a disk may not do.
    violations = axe.run(page, options={"preload": False}).response["violations"]
    found = [(violation["id"], [node["html"] for node in violation["nodes"]]) for violation in violations]
    assert not found


CONTRAST = """([first, second]) => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const luminance = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((byte) => {
      const part = byte / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [high, low] = [luminance(first), luminance(second)].sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
}"""


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(
    ("selector", "property_", "least"),
    [
        (".he-fill", "background-color", 3),
        (".he-link", "stroke", 3),
        (".he-thumb .he-row", "stroke", 3),
        (".he-word[aria-checked=true] .he-token", "border-top-color", 3),
        (".he-number", "color", 4.5),
        (".he-place", "color", 4.5),
        (".he-live", "color", 4.5),
    ],
)
def test_what_carries_meaning_stands_out_in_both_themes(
    open_page: Open, theme: str, selector: str, property_: str, least: float
) -> None:
    page = open_page(on_sentence(), theme=theme)
    colour, back = (
        page.locator(where).first.evaluate(f"element => getComputedStyle(element).getPropertyValue('{name}')")
        for where, name in ((selector, property_), (".he", "background-color"))
    )
    assert page.evaluate(CONTRAST, [colour, back]) >= least


def test_dark_page_has_no_light_box_around_the_figure(open_page: Open) -> None:
    page = open_page(on_sentence(), theme="dark")
    box = page.locator(".text_html").evaluate("element => getComputedStyle(element).backgroundColor")
    assert box == "rgba(0, 0, 0, 0)"


def test_strength_can_be_seen_without_colour(open_page: Open) -> None:
    weights = torch.zeros(1, 1, 9, 9)
    weights[..., 0], weights[..., 1] = 0.8, 0.2
    page = open_page(on_sentence(weights))
    strong, weak = (float(link.get_attribute("stroke-width")) for link in page.locator(".he-link").all())
    assert strong > 2 * weak
    page.wait_for_timeout(250)
    first, second = (fill.bounding_box()["width"] for fill in page.locator(".he-fill").all()[:2])
    assert first == pytest.approx(4 * second, rel=0.05)


def test_nothing_moves_for_readers_who_asked_for_that(open_page: Open, chromium: Any) -> None:
    durations = {}
    for preference in ("reduce", "no-preference"):
        context = chromium.new_context(reduced_motion=preference, offline=True)
        page = open_page(on_sentence(), on=context.new_page())
        style = "element => getComputedStyle(element).transitionDuration"
        durations[preference] = {page.locator(name).first.evaluate(style) for name in (".he-fill", ".he-key .he-token")}
        context.close()
    assert durations == {"reduce": {"0s"}, "no-preference": {"0.16s"}}


@pytest.mark.parametrize("width", [320, 420, 800])
def test_figure_fits_its_page_without_scrolling_sideways(open_page: Open, width: int) -> None:
    page = open_page(on_sentence(causal_weights(heads=4)), width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for selector in (".he-stage", ".he-heads", ".he-keys"):
        outside = page.locator(selector).evaluate(
            "element => element.getBoundingClientRect().right - element.closest('.he').getBoundingClientRect().right"
        )
        assert outside <= 0, f"{selector} sticks out by {outside} pixels"


def test_long_words_are_cut_and_can_be_read_in_full_by_pointing(open_page: Open) -> None:
    long = "antidisestablishmentarianism-" * 3
    page = open_page(head_explorer([long, "a"], torch.full((1, 1, 2, 2), 0.5), caption="c"), width=420)
    edges = "selector => document.querySelector(selector).getBoundingClientRect().right"
    assert page.evaluate(edges, ".he-keys") <= page.evaluate(edges, ".he")
    assert page.locator(".he-key .he-token").first.get_attribute("title") == long


def test_focus_can_be_seen(open_page: Open) -> None:
    page = open_page(on_sentence())
    for selector in (".he-thumb", ".he-word .he-token"):
        page.keyboard.press("Tab")
        target = page.locator(f"{selector}:focus-visible, :focus-visible > {selector.split()[-1]}").first
        assert target.evaluate("element => parseFloat(getComputedStyle(element).outlineWidth)") >= 2
