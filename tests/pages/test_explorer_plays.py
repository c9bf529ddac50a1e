"""What each figure to play with does of its own, as plays in `explorer_plays.toml`: what a reader does, and what is seen and said then.

What all figures do is in `test_explorers.py`; numbers that Python computes anew for each setting are in `test_explorer_numbers.py`.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tfcourse.lessons.explorers.alignments import AlignedPair, alignment_explorer
from tfcourse.lessons.explorers.base import Explorer
from tfcourse.lessons.explorers.blocks import block_explorer
from tfcourse.lessons.explorers.caches import cache_explorer
from tfcourse.lessons.explorers.costs import cost_explorer
from tfcourse.lessons.explorers.dials import dial_explorer
from tfcourse.lessons.explorers.gaps import gap_explorer
from tfcourse.lessons.explorers.gradients import gradient_explorer
from tfcourse.lessons.explorers.heads import head_explorer
from tfcourse.lessons.explorers.lookups import lookup_explorer
from tfcourse.lessons.explorers.merges import merge_explorer
from tfcourse.lessons.explorers.positions import position_explorer
from tfcourse.lessons.explorers.reaches import reach_explorer
from tfcourse.lessons.explorers.samplers import sampler_explorer
from tfcourse.lessons.explorers.spans import span_explorer
from tfcourse.positions import sinusoidal_positions

from ..tfcourse.lessons.explorers.examples import EXAMPLES, plainly, weights

pytestmark = pytest.mark.browser

Open = Callable[..., Any]
PLAYS = tomllib.loads(Path(__file__).with_name("explorer_plays.toml").read_text(encoding="utf-8"))["play"]

SENTENCE = ["the", "aunt", "near", "the", "boys", "says", "she", "sees", "them"]
LOOKS = torch.eye(9)[[0, 0, 1, 2, 3, 4, 5, 6, 7]].expand(2, 3, 9, 9).clone()
LOOKS[1, 2, 6] = torch.tensor([0.62, 0.0, 0.0625, 0.004, 0.3135, 0, 0, 0, 0])
LOOKS[0, 1, 4] = torch.tensor([0.62, 0.04, 0.06, 0.28, 0, 0, 0, 0, 0])
LOOKS[0, 1, 1] = 0.0
LOOKS[0, 1, 2] = 0.2
NASTY = ["<b>bold</b>", '"quoted" & more', "\u05de\u05d9\u05dc\u05d4", " "]
LONG = "antidisestablishmentarianism-" * 3
SOFT = torch.tensor([[0.05, 0.95], [0.7, 0.3], [0.9, 0.1]])
PAIRS = [
    AlignedPair(["forty-", "##five"], ["fünf", "##und", "##vierzig"], {"IBM model 1": SOFT.round(), "attention": SOFT}),
    AlignedPair(["two", "three"], ["zwei", "drei"], {"IBM model 1": torch.eye(2), "attention": torch.eye(2)}),
]
LOW = ["low", " low", " lower", " low"]
MERGES = [("l", "o"), ("lo", "w"), (" ", "low"), ("e", "r")]
GAPS: Any = [
    [],
    [[("six", 0.3), ("two", 0.25)]],
    [[("hundred", 0.999)]],
    [[("one", 0.5), ("two", 0.004)], [("ten", 0.4), ("hundred", 0.1)]],
]
BACK = torch.arange(20, -1, -1, dtype=torch.float64)
NORMS = {
    "plain RNN": torch.stack([scale**BACK for scale in (0.5, 1.0, 2.0)]),
    "LSTM": torch.stack([0.9**BACK] * 3),
    "GRU": torch.stack([0.8**BACK] * 3),
    "none": torch.zeros(3, 21),
}
ENCODINGS = {"Sinusoids": sinusoidal_positions(20, 16), "Drawn": weights(1, 1, 20, 16)[0, 0] - 0.1}
SIXTH = torch.tensor([0.4, 0.25, 0.15, 0.1, 0.06, 0.04]).log()
CHAIN = [("temperature", {"t": 2.0}), ("top_p", {"p": 0.8})]
LLAMAS = {"8B": (128_256, 4096, 32, 8, 14_336, 32), "405B": (128_256, 16_384, 128, 8, 53_248, 126)}
TURNED = torch.randn(2, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
NOISE = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)

SHOWN: dict[str, Callable[[], Explorer]] = {
    "documented": lambda: EXAMPLES["documented"](plainly),
    "head": lambda: head_explorer(SENTENCE, LOOKS, caption="c"),
    "head, of uneven rows": lambda: head_explorer(SENTENCE, LOOKS, caption="c", start=(0, 1, 4)),
    "head, of two weights": lambda: head_explorer(["a", "b"], torch.tensor([[[0.8, 0.2]] * 2]), caption="c"),
    "head, thin": lambda: head_explorer([f"t{i}" for i in range(40)], torch.full((1, 1, 40, 40), 1 / 40), caption="c"),
    "head, across": lambda: head_explorer(
        SENTENCE[:5], weights(1, 2, 3, 5), query_tokens=["elle", "les", "voit"], caption="c"
    ),
    "head, nasty": lambda: head_explorer(NASTY, torch.eye(4)[None], caption="<i>not</i> italic"),
    "head, long": lambda: head_explorer([LONG, "a"], torch.full((1, 1, 2, 2), 0.5), caption="c"),
    "alignment": lambda: alignment_explorer(PAIRS, caption="c"),
    "block": lambda: block_explorer(B=2, S=7, D=12, H=3, F=20, caption="c"),
    "merge": lambda: merge_explorer(LOW, MERGES, caption="c"),
    "gap": lambda: gap_explorer(
        [["two", "hundred"], ["zero"]], [GAPS, [[], [[("ten", 0.7), ("zero", 0.3)]]]], caption="c"
    ),
    "gradient": lambda: gradient_explorer(
        NORMS, (0.5, 1.0, 2.0), setting_name="scale of the weights", caption="c", start=(0, 0, 18)
    ),
    "position": lambda: position_explorer(ENCODINGS, start=(3, 8), caption="c"),
    "lookup": lambda: lookup_explorer(
        ["gale", "breeze", "calm"],
        math.log(2) * torch.tensor([4.0, 2.0, 0.0]),
        torch.tensor([4.2, 2.1, 0.0]),
        answer="Forecast",
        unit="m",
        caption="c",
    ),
    "sampler": lambda: sampler_explorer({"six": (list("ABCDEF"), SIXTH)}, chain=CHAIN, caption="c"),
    "cache": lambda: cache_explorer(["one", "two", "three", "four", "five"], d_model=8, n_layers=2, caption="c"),
    "cost": lambda: cost_explorer(LLAMAS, caption="c"),
    "dial": lambda: dial_explorer(*TURNED, caption="c"),
    "reach": lambda: reach_explorer(NOISE, caption="c", alt="Noise."),
    "span": lambda: span_explorer(["the", "train", "to", "Lyon", "leaves", "at", "six"], caption="c", masks=3),
}


def facts(text: str) -> str:
    """The numbers and quoted words of a sentence, without the marks that isolate words of another direction."""
    plain = re.sub("[\u2066-\u2069]", "", text).replace("\u2212", "-")
    return " ".join(re.findall(r"“.*?”|-?\d+(?:,\d{3})*(?:\.\d+)?", plain))


def follow(page: Any, steps: list[Any]) -> None:
    """Do what a play says. A text is something to do; a pair is what is seen then: a selector, `@` an attribute, and its values.

    A selector may also be `said`, for the facts of the sentence below a figure; `focus`, for the name of what has the focus; and
    `js`, for the value of an expression. What is seen may take a second to come.
    """
    for step in steps:
        if not isinstance(step, str):
            what, expected = step
            for _ in range(20):
                if (found := seen(page, what)) == expected:
                    break
                page.wait_for_timeout(50)
            assert found == expected, what
            continue
        verb, _, rest = step.partition(" ")
        where, _, value = rest.partition(" := ")
        if verb == "press":
            for key in rest.split():
                page.keyboard.press(key)
        elif verb == "push":
            page.get_by_role("button", name=rest).press("Enter")
        elif verb == "move":
            page.mouse.move(2, 2)
        elif verb == "drag":
            page.drag_and_drop(where, value)
        elif verb == "tap":
            box, (across, down) = page.locator(where).bounding_box(), map(float, value.split())
            page.mouse.click(box["x"] + across * box["width"], box["y"] + down * box["height"])
        elif verb == "pass":
            page.clock.run_for(int(rest))
        elif verb == "prefer":
            page.emulate_media(reduced_motion=rest)
        else:
            getattr(page.locator(where).first, verb)(*([value] if " := " in rest else []))


def seen(page: Any, what: str) -> Any:
    """The value of what a play looks at."""
    where, _, attribute = what.partition(" @")
    if where.startswith("js "):
        return page.evaluate(where.removeprefix("js "))
    if where.startswith("said"):
        return facts(page.locator(".explorer-live:visible").nth(int(where.removeprefix("said") or 0)).text_content())
    if where == "focus":
        return page.evaluate("document.activeElement.getAttribute('aria-label') ?? document.activeElement.tagName")
    if attribute:
        return page.locator(where).evaluate_all(f"all => all.map((one) => one.getAttribute('{attribute}'))")
    return page.locator(where).all_text_contents()


@pytest.fixture
def stage(request: pytest.FixtureRequest, play: dict[str, Any]) -> Any:
    """The page that a play uses; the figure that plays by itself has one whose clock stands still."""
    if play["figure"] != "documented":
        return request.getfixturevalue("reused_page")
    page = request.getfixturevalue("page")
    page.clock.install()
    return page


@pytest.mark.parametrize("play", PLAYS, ids=lambda play: play["name"])
def test_a_figure_does_what_its_reader_asks(open_page: Open, stage: Any, play: dict[str, Any]) -> None:
    width = 420 if play["figure"] == "head, long" else 1000
    follow(open_page(SHOWN[play["figure"]](), on=stage, width=width), play["steps"])
