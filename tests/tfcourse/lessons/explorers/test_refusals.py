"""What a figure cannot show is refused, with the value that does not fit; a blank caption is asked about in `test_base.py`."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tfcourse.lessons.explorers.alignments import AlignedPair, alignment_explorer, count_crossings
from tfcourse.lessons.explorers.base import required_text
from tfcourse.lessons.explorers.blocks import block_explorer
from tfcourse.lessons.explorers.caches import MOST_TOKENS, cache_explorer
from tfcourse.lessons.explorers.costs import Card, cost_explorer
from tfcourse.lessons.explorers.dials import dial_explorer
from tfcourse.lessons.explorers.gaps import LONGEST, gap_explorer
from tfcourse.lessons.explorers.gradients import gradient_explorer
from tfcourse.lessons.explorers.heads import head_explorer
from tfcourse.lessons.explorers.lookups import lookup_explorer
from tfcourse.lessons.explorers.merges import MOST_MERGES, merge_explorer
from tfcourse.lessons.explorers.positions import position_explorer
from tfcourse.lessons.explorers.reaches import reach_explorer
from tfcourse.lessons.explorers.samplers import sampler_explorer
from tfcourse.lessons.explorers.spans import MOST_WORDS, span_explorer

THREE = ["the", "aunt", "near"]
EVEN = torch.full((1, 2, 3, 3), 1 / 3)
NORMS = torch.tensor([[1.0, 0.5, 0.2, 0.1]] * 3)
SIZES = (128_256, 4096, 32, 8, 14_336, 32)
GUESSES = [[], [[("two", 0.25)]], [[("hundred", 1.0)]], [[("two", 0.5)], [("hundred", 0.1)]]]
LOGITS = torch.tensor([1.0, 3.0, 2.0, -4.0])
NOISE = np.zeros((64, 64, 3), dtype=np.uint8)


def aligned(weights: dict[str, Tensor]) -> AlignedPair:
    """Two words and three words."""
    return AlignedPair(["forty-", "##five"], ["fünf", "##und", "##vierzig"], weights)


def even(*names: str) -> dict[str, Tensor]:
    return {name: torch.full((3, 2), 0.5) for name in names}


# A figure that can be shown, by name.
DRAWABLE: dict[str, Callable[..., Any]] = {
    "alignment": partial(alignment_explorer, pairs=[aligned(even("IBM"))]),
    "block": block_explorer,
    "cache": partial(cache_explorer, words=["a", "b"], d_model=4, n_layers=1),
    "cost": partial(cost_explorer, sizes={"8B": SIZES}),
    "dial": partial(dial_explorer, query=torch.ones(8), key=torch.ones(8)),
    "gap": partial(gap_explorer, sentences=[["two", "hundred"]], guesses=[GUESSES]),
    "gradient": partial(gradient_explorer, norms={"a": NORMS}, settings=(0.5, 1.0, 1.5), setting_name="scale"),
    "head": partial(head_explorer, tokens=THREE, weights=EVEN),
    "lookup": partial(
        lookup_explorer, names=THREE, scores=torch.ones(3), values=torch.ones(3), answer="Forecast", unit="m"
    ),
    "merge": partial(merge_explorer, words=["low", "lower"], merges=[("l", "o")]),
    "position": partial(position_explorer, encodings={"a": torch.ones(3, 4)}),
    "reach": partial(reach_explorer, picture=NOISE, alt="noise"),
    "sampler": partial(sampler_explorer, distributions={"x": (list("abcd"), LOGITS)}),
    "span": partial(span_explorer, words=THREE),
}

# What is changed about a figure, and what the message names.
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("alignment", {"pairs": []}, "at least one"),
    ("alignment", {"pairs": [aligned({})]}, "at least one"),
    ("alignment", {"pairs": [aligned(even("IBM", "net")), aligned(even("net", "IBM"))]}, r"\('net', 'IBM'\)"),
    ("alignment", {"pairs": [aligned({"net": torch.ones(2, 3) / 3})]}, r"pair 0 .*\(2, 3\)"),
    ("alignment", {"pairs": [aligned({"net": torch.full((3, 2), 2.0)})]}, "0 and 1"),
    ("alignment", {"start": -1}, "start=-1"),
    ("block", {"H": 5, "D": 12}, "H divides D"),
    ("block", {"T": 0}, "positive"),
    ("block", {"layer": "both"}, "'both'"),
    ("block", {"norm": "no"}, "'no'"),
    ("cache", {"words": ["a"]}, "got 1"),
    ("cache", {"words": ["a"] * (MOST_TOKENS + 1)}, "got 25"),
    ("cache", {"d_model": 0}, "d_model=0"),
    ("cache", {"n_layers": 0}, "n_layers=0"),
    ("cost", {"sizes": {}}, "got 0"),
    ("cost", {"sizes": {str(n): SIZES for n in range(5)}}, "got 5"),
    ("cost", {"sizes": {"few": (10, 8, 4, 2)}}, "six"),
    ("cost", {"sizes": {"none": (10, 8, 4, 2, 16, 0)}}, "positive"),
    ("cost", {"sizes": {"odd": (10, 8, 4, 3, 16, 2)}}, "3 heads"),
    ("cost", {"sizes": {"narrow": (10, 9, 4, 2, 16, 2)}}, "width of 9"),
    ("cost", {"card": 3}, "card 3"),
    ("cost", {"cards": ()}, "among 0"),
    ("cost", {"cards": (Card("idle", 0.0, 1.0, 1),), "card": 0}, "positive"),
    ("dial", {"query": torch.ones(7), "key": torch.ones(7)}, "even"),
    ("dial", {"key": torch.ones(6)}, "one even width"),
    ("dial", {"query": torch.full((8,), torch.nan)}, "finite"),
    ("dial", {"thetas": ()}, "bases"),
    ("dial", {"thetas": (1.0,)}, "above 1"),
    ("dial", {"trained": 64, "longest": 64}, "beyond"),
    ("dial", {"start": (0, 300)}, "outside"),
    ("gap", {"sentences": [], "guesses": []}, "at least one"),
    ("gap", {"guesses": []}, "at least one"),
    ("gap", {"sentences": [["a"] * (LONGEST + 1)], "guesses": [[[]]]}, "9 words"),
    ("gap", {"sentences": [["", "b"]]}, "empty"),
    ("gap", {"guesses": [GUESSES[:3]]}, "got 3"),
    ("gap", {"guesses": [[[], [], *GUESSES[2:]]]}, "entry 1 .* got 0"),
    ("gap", {"guesses": [[[], [[("six", 1.0)]], *GUESSES[2:]]]}, "'two'"),
    ("gap", {"guesses": [[[], [[("two", 1.5)]], *GUESSES[2:]]]}, "probabilities"),
    ("gradient", {"setting_name": ""}, "name"),
    ("gradient", {"settings": (1.0, 0.5, 1.5)}, "ascend"),
    ("gradient", {"settings": ()}, "ascend"),
    ("gradient", {"settings": (0.5, 1.0)}, r"\(2, T\).*\(3, 4\)"),
    ("gradient", {"norms": {}}, "got 0"),
    ("gradient", {"norms": dict.fromkeys("abcde", NORMS)}, "got 5"),
    ("gradient", {"norms": {"a": NORMS[:, :1]}}, "two steps"),
    ("gradient", {"norms": {"a": NORMS[0]}}, r"\(4,\)"),
    ("gradient", {"norms": {"a": NORMS, "b": NORMS[:, :3]}}, r"\[3, 4\]"),
    ("gradient", {"norms": {"a": -NORMS}}, "negative"),
    ("gradient", {"norms": {"a": NORMS / 0}}, "finite"),
    ("gradient", {"norms": {"a": NORMS * math.nan}}, "finite"),
    ("gradient", {"start": (1, 0, 0)}, r"start=\(1, 0, 0\)"),
    ("gradient", {"start": (0, 3, 0)}, "outside"),
    ("gradient", {"start": (0, 0, -1)}, "outside"),
    ("head", {"weights": torch.ones(1, 2, 3, 4)}, r"\(H, 3, 3\).*\(2, 3, 4\)"),
    ("head", {"weights": torch.ones(5, 1, 2, 3, 3)}, "batch"),
    ("head", {"weights": torch.ones(3, 3)}, "shape"),
    ("head", {"weights": []}, "no layer"),
    ("head", {"weights": EVEN - 0.5}, "0 and 1"),
    ("head", {"weights": EVEN + 1}, "0 and 1"),
    ("head", {"weights": EVEN * math.nan}, "0 and 1"),
    ("head", {"query_tokens": ["la", "tante"]}, r"\(H, 2, 3\)"),
    ("head", {"start": (0, 2, 0)}, r"start=\(0, 2, 0\)"),
    ("head", {"start": (0, 0, 3)}, "outside"),
    ("head", {"start": (-1, 0, 0)}, "outside"),
    ("head", {"names": ["left"]}, "name"),
    ("head", {"names": ["left", "right", "more"]}, "name"),
    ("head", {"names": ["left", " "]}, "name"),
    ("head", {"names": []}, "name"),
    ("lookup", {"names": []}, "at least one"),
    ("lookup", {"names": ["a", "b"]}, r"2 pages.*\(3,\)"),
    ("lookup", {"scores": torch.ones(1, 3)}, r"\(1, 3\)"),
    ("lookup", {"values": torch.tensor([1.0, math.inf, 0.0])}, "finite"),
    ("lookup", {"scores": torch.tensor([1.0, math.nan, 0.0])}, "finite"),
    ("lookup", {"largest": 1.0}, "largest=1.0"),
    ("lookup", {"largest": math.inf}, "largest=inf"),
    ("lookup", {"names": ["a", " ", "c"]}, "name"),
    ("lookup", {"answer": ""}, "answer"),
    ("merge", {"words": []}, "at least one"),
    ("merge", {"words": ["low", ""]}, "empty"),
    ("merge", {"words": [["l", ""]]}, "empty"),
    ("merge", {"merges": []}, "got 0"),
    ("merge", {"merges": [("l", "o")] * (MOST_MERGES + 1)}, f"got {MOST_MERGES + 1}"),
    ("position", {"encodings": {}}, "matrices"),
    ("position", {"encodings": {"a": torch.ones(3, 4), "b": torch.ones(4, 4)}}, "same"),
    ("position", {"encodings": {"a": torch.ones(3)}}, r"\(3,\)"),
    ("position", {"encodings": {"a": torch.full((3, 4), torch.nan)}}, "finite"),
    ("position", {"encodings": {" ": torch.ones(3, 4)}}, "blank"),
    ("position", {"start": (0, 3)}, "outside"),
    ("reach", {"picture": NOISE[:, :32]}, "square"),
    ("reach", {"picture": NOISE[..., 0]}, "square"),
    ("reach", {"picture": NOISE.astype(float)}, "bytes"),
    ("reach", {"sides": ()}, "sides"),
    ("reach", {"sides": (8, 8)}, "sides"),
    ("reach", {"sides": (7,)}, "divide"),
    ("reach", {"sides": (256,)}, "divide"),
    ("reach", {"alt": " "}, "picture"),
    ("sampler", {"distributions": {}}, "at least one"),
    ("sampler", {"distributions": {"x": (list("abcd"), LOGITS[:3])}}, r"\(3,\)"),
    ("sampler", {"distributions": {"x": (list("ab"), LOGITS[:2])}}, "at least 3"),
    ("sampler", {"distributions": {"x": (list("abcd"), LOGITS / 0)}}, "finite"),
    ("sampler", {"chain": [("top_q", {})]}, "'top_q'"),
    ("sampler", {"chain": [("top_p", {"k": 1})]}, "got k"),
    ("sampler", {"chain": [("top_p", {"p": 2})]}, "got 2"),
    ("sampler", {"chain": [("top_p", {}), ("top_p", {})]}, "once"),
    ("span", {"words": ["one"]}, "got 1"),
    ("span", {"words": ["w"] * (MOST_WORDS + 1)}, "got 25"),
    ("span", {"masks": 0}, "at least 1"),
]


@pytest.mark.parametrize("name", DRAWABLE)
def test_the_figure_is_drawn_before_anything_is_changed_about_it(name: str) -> None:
    assert "<script" in DRAWABLE[name](caption="c")._repr_html_()


@pytest.mark.parametrize(("name", "changed", "named"), REFUSED)
def test_what_cannot_be_shown_is_refused_with_what_does_not_fit(name: str, changed: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        DRAWABLE[name](**{"caption": "c"} | changed)


def test_crossings_of_a_batch_and_a_blank_name_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\(2, 3, 4\)"):
        count_crossings(torch.ones(2, 3, 4))
    with pytest.raises(ValueError, match="dial"):
        required_text("", "its dial")
