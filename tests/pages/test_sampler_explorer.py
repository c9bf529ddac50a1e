"""What the sampler explorer does of its own in a reader's hands; what all explorers do is in `test_explorers.py`."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tfcourse.lessons.explorers.samplers import SAMPLERS, SamplerExplorer, sampler_explorer
from tfcourse.sampling import sampler_chain

pytestmark = pytest.mark.browser

Open = Callable[..., Any]
EXAMPLE = torch.tensor([0.4, 0.25, 0.15, 0.1, 0.06, 0.04]).log()


def explorer() -> SamplerExplorer:
    chain = [("temperature", {"t": 2.0}), ("top_p", {"p": 0.8})]
    return sampler_explorer({"six": (list("ABCDEF"), EXAMPLE)}, chain=chain, caption="c")


def drawn_chains(count: int) -> list[tuple[list[float], list[tuple[str, dict[str, float]]]]]:
    """Logits and chains of two to four samplers with drawn settings."""
    rng = random.Random(0)
    chains = []
    for _ in range(count):
        chain = []
        for name in rng.sample(list(SAMPLERS), rng.randint(1, 4)):
            settings = {
                setting: 1 if setting == "probability" else least + (most - least) * round(rng.uniform(0.05, 0.95), 3)
                for setting, (least, most, _, _) in SAMPLERS[name][1].items()
            }
            chain.append((name, settings | ({"k": rng.randint(2, 9)} if name == "top_k" else {})))
        chains.append(([round(rng.gauss(0, 2), 4) for _ in range(12)], chain))
    return chains


def test_the_page_computes_what_the_course_computes(open_page: Open) -> None:
    page = open_page(explorer())
    chains = drawn_chains(40)
    theirs = page.evaluate(
        """chains => chains.map(([logits, chain]) =>
            customElements.get('sampler-explorer').apply(logits, chain).map(logit => logit === -Infinity ? null : logit))""",
        [[logits, [list(step) for step in chain]] for logits, chain in chains],
    )
    assert {name for _, chain in chains for name, _ in chain} == set(SAMPLERS)
    for (logits, chain), result in zip(chains, theirs, strict=True):
        ours = sampler_chain(torch.tensor([logits], dtype=torch.float64), torch.zeros(1, 1, dtype=torch.long), chain)
        expected = [None if logit == -torch.inf else logit for logit in ours[0].tolist()]
        assert [logit is None for logit in result] == [logit is None for logit in expected], chain
        for mine, other in zip(result, expected, strict=True):
            assert other is None or mine == pytest.approx(other, abs=1e-6), chain


def test_cards_are_moved_by_keys_and_the_order_matters(open_page: Open) -> None:
    page = open_page(explorer())
    live = page.locator(".explorer-live")
    assert live.text_content().startswith("Temperature, then Top-p: 4 of 6 tokens kept")
    up = page.get_by_role("button", name="Top-p up")
    up.focus()
    page.keyboard.press("Enter")
    assert live.text_content().startswith("Top-p, then Temperature: 3 of 6 tokens kept")
    assert up.evaluate("button => button === document.activeElement"), "the focus goes with the card"
    assert page.locator(".se-name").all_text_contents()[:2] == ["Top-p", "Temperature"]


def test_cards_are_moved_by_drag(open_page: Open) -> None:
    page = open_page(explorer())
    cards = page.locator(".se-card")
    cards.nth(1).locator(".se-name span").drag_to(cards.nth(0).locator(".se-name span"))
    assert page.locator(".explorer-live").text_content().startswith("Top-p, then Temperature")


def test_switches_and_settings_change_what_is_kept(open_page: Open) -> None:
    page = open_page(explorer())
    page.get_by_role("checkbox", name="Temperature", exact=True).uncheck()
    live = page.locator(".explorer-live")
    assert live.text_content().startswith("Top-p: 3 of 6 tokens kept, with 80 %")
    page.get_by_role("checkbox", name="Top-p").uncheck()
    assert live.text_content().startswith("No sampler: 6 of 6")
    page.get_by_role("checkbox", name="Top-k").check()
    dial = page.get_by_role("slider", name="k")
    dial.focus()
    page.keyboard.press("Home")
    assert live.text_content() == "Top-k: 1 of 6 tokens kept, with 40 % of the model's mass; 0.00 bits of choice."
    assert page.locator(".se-gone").count() == 5
