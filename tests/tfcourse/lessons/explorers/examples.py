"""One example of every figure to play with, for the tests that all of them have to pass, in Python and in a browser."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from bs4 import BeautifulSoup
from torch import Tensor

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

CONTRIBUTING = Path(__file__).parents[4] / "book" / "contributing.md"
Text = Callable[[str], str]

WORDS = ("the", "aunt", "near", "the", "boys", "says", "she", "sees", "them")
HOSTILE = '</script><script>window.hacked = 1</script><!--<b title="\'">bold</b> &amp; \u05de\u05d9\u05dc\u05d4 \u2028 '


def plainly(text: str) -> str:
    """A text as it is."""
    return text


def hostile(text: str) -> str:
    """A text behind what could break out of an element, an attribute or a script."""
    return HOSTILE + text


def broken(text: str) -> str:
    """A text behind characters that no page can hold: half of a surrogate pair, and control characters."""
    return f"\ud800\x00\x1b{text}"


def data_of(explorer: Explorer) -> dict[str, Any]:
    """What the script of a figure reads."""
    data: dict[str, Any] = json.loads(explorer.to_json())
    return data


def tables_of(explorer: Explorer) -> list[list[list[str]]]:
    """The texts of all cells of the tables without a script, by table and row."""
    page = BeautifulSoup(explorer._repr_html_(), "html.parser")
    return [
        [[cell.get_text() for cell in row.find_all(["th", "td"])] for row in table.find_all("tr")]
        for table in page.find_all("table")
    ]


def weights(layers: int, heads: int, T: int, S: int, seed: int = 0) -> Tensor:
    """Attention weights of random scores, (layers, heads, T, S)."""
    return (2.5 * torch.randn(layers, heads, T, S, generator=torch.Generator().manual_seed(seed))).softmax(-1)


def heads(text: Text) -> Explorer:
    """Two layers of three heads that look back."""
    scores = weights(2, 3, 9, 9).log().masked_fill(~torch.ones(9, 9).tril().bool(), -torch.inf)
    looks = scores.softmax(-1)
    looks[0, 0, 8] = torch.eye(9)[1]  # what is shown first has the strongest shade that there is
    return head_explorer(
        [text(word) for word in WORDS],
        looks,
        caption=text("Who looks where?"),
        names=[text(name) for name in ("left", "middle", "right")],
    )


def alignments(text: Text) -> Explorer:
    """Two pairs of sentences and two aligners; the links of the first pair cross."""
    first, second = text("IBM model 1"), text("attention")
    soft = torch.tensor([[0.05, 0.95], [0.7, 0.3], [0.9, 0.1]])
    five = AlignedPair(
        [text(word) for word in ("forty-", "##five")],
        [text(word) for word in ("fünf", "##und", "##vierzig")],
        {first: soft.round(), second: soft},
    )
    two = AlignedPair(
        [text("two"), text("three")], [text("zwei"), text("drei")], {first: torch.eye(2), second: torch.eye(2)}
    )
    return alignment_explorer([five, two], caption=text("Which word comes from which?"))


def gradients(text: Text) -> Explorer:
    """Four cells at three settings of a dial, over 21 steps."""
    back = torch.arange(20, -1, -1, dtype=torch.float64)
    norms = {
        text("plain RNN"): torch.stack([scale**back for scale in (0.5, 1.0, 2.0)]),
        text("LSTM"): torch.stack([0.9**back] * 3),
        text("GRU"): torch.stack([0.8**back] * 3),
        text("none"): torch.zeros(3, 21),
    }
    caption = text("How much of the gradient comes back?")
    return gradient_explorer(norms, (0.5, 1.0, 2.0), setting_name=text("scale of the weights"), caption=caption)


def blocks(text: Text) -> Explorer:
    """A decoder layer, which has all parts."""
    return block_explorer(layer="decoder", caption=text("What shape has each tensor?"))


def positions(text: Text) -> Explorer:
    """Sinusoids and random numbers at 20 positions."""
    drawn = torch.randn(20, 16, generator=torch.Generator().manual_seed(0))
    encodings = {text("Sinusoids"): sinusoidal_positions(20, 16), text("Drawn"): drawn}
    return position_explorer(encodings, start=(3, 8), caption=text("Does only the distance count?"))


def lookups(text: Text) -> Explorer:
    """A dictionary of three pages."""
    return lookup_explorer(
        [text(name) for name in ("gale", "breeze", "calm")],
        torch.tensor([4.0, 2.0, 0.0]) * math.log(2),
        torch.tensor([4.2, 2.1, 0.0]),
        answer=text("Forecast"),
        unit=text("m"),
        caption=text("How do the pages share the weight?"),
    )


def merges(text: Text) -> Explorer:
    """Two words, one of them twice, and three merges."""
    letters = {letter: text(letter) for letter in "lower "}
    words = [[letters[letter] for letter in word] for word in ("low", " low", " lower")]
    pairs = [(letters["l"], letters["o"]), (letters["l"] + letters["o"], letters["w"]), (letters["e"], letters["r"])]
    return merge_explorer(words, pairs, caption=text("Which pair is merged next?"))


def samplers(text: Text) -> Explorer:
    """Two distributions, of six tokens and of fifteen, and two samplers that are switched on."""
    six = torch.tensor([0.4, 0.25, 0.15, 0.1, 0.06, 0.04]).log()
    many = torch.linspace(2, -2, 15)
    distributions = {
        text("six"): ([text(letter) for letter in "ABCDEF"], six),
        text("many"): ([text(f"{letter}{n}") for n, letter in enumerate("abcdefghijklmno")], many),
    }
    chain = [("temperature", {"t": 1.5}), ("top_p", {"p": 0.8})]
    return sampler_explorer(distributions, chain=chain, caption=text("What does each card take away?"))


def gaps(text: Text) -> Explorer:
    """Two words and one word, with all sets of gaps."""
    two, hundred, six = (text(word) for word in ("two", "hundred", "six"))
    pair = [
        [],
        [[(six, 0.3), (two, 0.25)]],
        [[(hundred, 1.0), (six, 0.0)]],
        [[(six, 0.5), (two, 0.004)], [(two, 0.4), (hundred, 0.1)]],
    ]
    one = [[], [[(two, 0.7), (six, 0.3)]]]
    return gap_explorer([[two, hundred], [six]], [pair, one], caption=text("What goes into the gaps?"))


def caches(text: Text) -> Explorer:
    """Six tokens in a small model."""
    words = [text(word) for word in WORDS[:6]]
    return cache_explorer(words, d_model=64, n_layers=2, caption=text("What is computed for each token?"))


def spans(text: Text) -> Explorer:
    """Six words, and three masks."""
    return span_explorer([text(word) for word in WORDS[:6]], caption=text("What becomes of hidden words?"), masks=3)


def dials(text: Text) -> Explorer:
    """A query and a key of four pairs, and two bases."""
    q, k = torch.randn(2, 8, generator=torch.Generator().manual_seed(0))
    return dial_explorer(q, k, caption=text("Does only the distance count?"))


def costs(text: Text) -> Explorer:
    """A small model and one that no card holds."""
    sizes = {text("8B"): (128_256, 4096, 32, 8, 14_336, 32), text("405B"): (128_256, 16_384, 128, 8, 53_248, 126)}
    return cost_explorer(sizes, caption=text("What does a token wait for?"))


def reaches(text: Text) -> Explorer:
    """A picture of noise."""
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    return reach_explorer(noise, caption=text("Who may look at whom?"), alt=text("Noise in all colours."))


def documented_code() -> dict[str, str]:
    """The example of the page for contributors: "python" and "js"."""
    page = CONTRIBUTING.read_text(encoding="utf-8")
    section = page[page.index("## How to add an interactive figure") :]
    return dict(re.findall(r"^```(python|js)\n(.*?)^```", section, flags=re.MULTILINE | re.DOTALL))


def documented(text: Text) -> Explorer:
    """The example of the page for contributors, as it is printed there; it has a stepper that plays."""
    names: dict[str, Any] = {"__name__": "tfcourse.lessons.explorers.steps"}
    exec(compile(documented_code()["python"], str(CONTRIBUTING), "exec", dont_inherit=True), names)
    looks = weights(1, 1, 4, 4)[0, 0]
    looks[0] = torch.eye(4)[0]  # the strongest shade that there is
    explorer: Explorer = names["step_explorer"](
        [text(word) for word in WORDS[:4]], looks, caption=text("Who looks at whom?")
    )
    return explorer


EXAMPLES: dict[str, Callable[[Text], Explorer]] = {
    "head": heads,
    "alignment": alignments,
    "gradient": gradients,
    "block": blocks,
    "position": positions,
    "lookup": lookups,
    "merge": merges,
    "sampler": samplers,
    "gap": gaps,
    "cache": caches,
    "span": spans,
    "dial": dials,
    "cost": costs,
    "reach": reaches,
    "documented": documented,
}
"""By name, a function that makes the figure; each of its texts goes through the function that it is given."""
