"""What figures hold for their scripts, and show in tables where no script runs, is what PyTorch or a formula gives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from tfcourse.attention import soft_lookup
from tfcourse.lessons.explorers.alignments import AlignedPair, alignment_explorer
from tfcourse.lessons.explorers.base import Explorer
from tfcourse.lessons.explorers.blocks import block_explorer
from tfcourse.lessons.explorers.caches import CacheStep, cache_explorer
from tfcourse.lessons.explorers.costs import CARDS, cost_explorer
from tfcourse.lessons.explorers.dials import dial_explorer
from tfcourse.lessons.explorers.gaps import gap_explorer
from tfcourse.lessons.explorers.gradients import gradient_explorer
from tfcourse.lessons.explorers.heads import head_explorer
from tfcourse.lessons.explorers.lookups import lookup_explorer
from tfcourse.lessons.explorers.merges import merge_explorer
from tfcourse.lessons.explorers.positions import position_explorer
from tfcourse.lessons.explorers.reaches import WAYS, reach_explorer
from tfcourse.lessons.explorers.samplers import sampler_explorer
from tfcourse.lessons.explorers.spans import span_explorer
from tfcourse.positions import sinusoidal_positions

from .examples import data_of, tables_of

WORDS = ["the", "aunt", "near"]
RANDOM = torch.Generator().manual_seed(0)
SOFT = torch.rand(2, 3, 2, 3, generator=RANDOM)
SOFT[0, 0] = torch.eye(3)[:2]
NORMS = 10.0 ** (20 * torch.rand(2, 3, 4, generator=RANDOM) - 15)
CROSSING = {"IBM": torch.tensor([[0.1, 0.9], [0.6, 0.4], [0.8, 0.2]]), "net": torch.eye(2)[[0, 0, 1]]}
HALF = {name: weights.half().requires_grad_() for name, weights in CROSSING.items()}
PAIRS = [AlignedPair(["forty-", "##five"], ["fünf", "##und", "##vierzig"], weights) for weights in (CROSSING, HALF)]
SHORT = AlignedPair(["a", "b"], ["c", "d"], {name: weights[1:] for name, weights in CROSSING.items()})
SIZES = {"B": 2, "T": 5, "S": 7, "D": 12, "H": 3, "F": 20}
STEPS = [CacheStep.of(length, 4, 1) for length in (1, 2, 3)]
LLAMA = {"8B": (128_256, 4096, 32, 8, 14_336, 32)}
ROWS = torch.randn(2, 8, generator=RANDOM, dtype=torch.float64)
GUESSES: Any = [
    [],
    [[("six", 0.3), ("two", 0.25)]],
    [[("hundred", 0.999)]],
    [[("one", 0.5), ("two", 0.004)], [("ten", 0.4), ("hundred", 0.1)]],
]
KEYS = torch.tensor([[2.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, -1.0]])
QUERY = math.log(2) * torch.tensor([1.0, 1.0, 1.0, 0.0])
VALUES = torch.tensor([4.2, 2.1, -1.0])
LOW = ["low", " low", " lower", " low", "newest"]
MERGES = [("l", "o"), ("lo", "w"), (" ", "low"), ("e", "w"), ("e", "r")]
MATRICES = {"Sinusoids": sinusoidal_positions(40, 32), "Drawn": torch.randn(40, 32, generator=RANDOM)}
NOISE = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
LOGITS = torch.tensor([1.0, 3.0, 2.0, -4.0])
BEST = torch.log_softmax(LOGITS, 0).sort(descending=True).values

ALIGNED = alignment_explorer(PAIRS, caption="c")
SHOWN: dict[str, Explorer] = {
    "pair": ALIGNED.figures[0],
    "half a pair": ALIGNED.figures[1],
    "pairs": ALIGNED,
    "word of a short pair": alignment_explorer([PAIRS[0], SHORT], caption="c", start=2).figures[1],
    "block": block_explorer(**SIZES, layer="decoder", norm="pre", caption="c"),  # type: ignore[arg-type]
    "cache": cache_explorer(["a", "b", "c"], d_model=4, n_layers=1, caption="c"),
    "cost": cost_explorer(LLAMA, caption="c", card=2),
    "dial": dial_explorer(*ROWS, caption="c"),
    "gap": gap_explorer([["two", "hundred"]], [GUESSES], caption="c"),
    "gradient": gradient_explorer(
        dict(zip(("plain", "gated"), NORMS, strict=True)), (0.5, 1, 1.5), setting_name="scale", caption="c"
    ),
    "gradient, elsewhere": gradient_explorer(
        {"a": NORMS[0]}, (1, 2, 3), setting_name="s", caption="c", start=(0, 2, 3)
    ),
    "head": head_explorer(WORDS, SOFT, query_tokens=["la", "tante"], caption="c", start=(0, 1, 0)),
    "head, as it begins": head_explorer(WORDS, SOFT[..., :1, :].expand(2, 3, 3, 3), caption="c"),
    "lookup": lookup_explorer(
        WORDS, (KEYS @ QUERY).requires_grad_(), VALUES, answer="Forecast", unit="m", largest=40.0, caption="c"
    ),
    "lookup, no unit": lookup_explorer(WORDS, KEYS @ QUERY, VALUES, answer="Forecast", caption="c"),
    "merge": merge_explorer(LOW, MERGES, caption="c"),
    "position": position_explorer(MATRICES, caption="c", start=(1, 5)),
    "reach": reach_explorer(NOISE, caption="c", alt="noise"),
    "sampler": sampler_explorer(
        {"one": (["b", "d", "c", "a"], LOGITS)}, chain=[("quadratic", {"factor": 0.5})], caption="c"
    ),
    "span": span_explorer([*WORDS, "the", "boys"], caption="c", masks=2),
}
SPANS: Any = SHOWN["span"]
DIAL: Any = SHOWN["dial"]
COST: Any = SHOWN["cost"]

# A figure, a path into what its script reads, and what stands there.
DATA: list[tuple[str, str, Any]] = [
    ("pair", "keys", ["forty-", "##five"]),
    ("pair", "queries", ["fünf", "##und", "##vierzig"]),
    ("pair", "names", ["IBM", "net"]),
    ("pair", "weights", torch.stack(list(CROSSING.values()))[None]),
    ("half a pair", "weights", torch.stack(list(HALF.values()))[None].detach().float()),
    ("pair", "start", {"layer": 0, "head": 0, "query": 0}),
    ("word of a short pair", "start query", 1),
    ("block", "sizes", SIZES),
    ("block", "start", {"layer": "decoder", "norm": "pre"}),
    ("cache", "words", ["a", "b", "c"]),
    ("cache", "steps", [[step.recomputed, step.cached, step.kept] for step in STEPS]),
    ("cost", "models 0 name", "8B"),
    ("cost", "models 0 shared 3", [8, *COST.models[0].parameters[8]]),
    ("cost", "cards 1 peak", CARDS[1].peak),
    ("cost", "start", {"card": 2, "length": 13}),
    ("cost", "longest", 17),
    ("dial", "bases 1 theta", 500_000),
    ("dial", "bases 0 ways 2 frequencies", torch.tensor(DIAL.clocks[2].frequencies)),
    ("dial", "start", {"m": 20, "n": 8}),
    ("gradient", "cells", ["plain", "gated"]),
    ("gradient", "settings", [0.5, 1, 1.5]),
    ("gradient", "settingName", "scale"),
    ("gradient", "start", {"cell": 0, "setting": 1, "step": 0}),
    ("gradient, elsewhere", "start", {"cell": 0, "setting": 2, "step": 3}),
    ("gradient", "norms", [[[float(f"{n:.3g}") for n in row] for row in cell] for cell in NORMS.tolist()]),
    ("head", "keys", WORDS),
    ("head", "queries", ["la", "tante"]),
    ("head", "start", {"layer": 0, "head": 1, "query": 0}),
    ("head, as it begins", "start", {"layer": 0, "head": 0, "query": 2}),
    ("head", "weights", SOFT),
    ("lookup", "names", WORDS),
    ("lookup", "scores", KEYS @ QUERY),
    ("lookup", "values", VALUES),
    ("lookup", "unit", "m"),
    ("lookup, no unit", "largest", 4.0),
    ("position", "start", {"first": 1, "second": 5}),
    ("position", "encodings 0 name", "Sinusoids"),
    *(("position", f"encodings {i} rows", matrix) for i, matrix in enumerate(MATRICES.values())),
    ("reach", "ways", list(WAYS)),
    ("sampler", "tokens", [["d", "c", "b", "a"]]),
    ("sampler", "logits 0", BEST),
    ("sampler", "chain", [["quadratic", {"factor": 0.5, "curve": 1.0}]]),
    ("span", "words", [*WORDS, "the", "boys"]),
    ("span", "drawn", [[place for place, hidden in enumerate(mask) if hidden] for mask in SPANS.drawn]),
]


@pytest.mark.parametrize(("name", "path", "expected"), DATA)
def test_the_script_is_told_what_was_computed(name: str, path: str, expected: Any) -> None:
    found: Any = data_of(SHOWN[name])
    for key in path.split():
        found = found[int(key)] if isinstance(found, list) else found[key]
    if isinstance(expected, torch.Tensor):
        torch.testing.assert_close(torch.tensor(found), expected, atol=5.1e-5, rtol=0, check_dtype=False)
    else:
        assert found == expected


def test_words_of_gaps_are_written_once_and_every_set_of_gaps_has_its_guesses() -> None:
    data = data_of(SHOWN["gap"])
    names = data["vocabulary"]
    assert len(names) == len(set(names))
    assert [names[word] for word in data["sentences"][0]] == ["two", "hundred"]
    assert [
        [[(names[word], share) for word, share in guess] for guess in gaps] for gaps in data["guesses"][0]
    ] == GUESSES


def test_a_picture_is_small() -> None:
    assert data_of(SHOWN["reach"])["picture"].startswith("data:image/jpeg;base64,")
    assert len(SHOWN["reach"].to_json()) < 100_000


SEVEN_APART = (MATRICES["Drawn"][7:] * MATRICES["Drawn"][:-7]).sum(-1)


def lookup_row(c: float, unit: str) -> list[str]:
    answer = soft_lookup(c * QUERY, KEYS, VALUES[:, None]).item()
    return [f"c = {c:g}: Forecast {answer:.2f}{unit}", *(f"{w:.2f}" for w in torch.softmax(c * KEYS @ QUERY, 0))]


def dot_products(k: int) -> list[str]:
    return [str(k), *[f"{sum(math.cos(k / 10_000 ** (2 * i / 32)) for i in range(16)):.2f}"] * 2]


# A figure, one of its tables, one of its rows, and what the row begins or ends with.
CELLS: list[tuple[str, int, int, list[str]]] = [
    *(("cache", 0, i + 1, [f"{n:,}" for n in (s.recomputed, s.cached, s.kept)]) for i, s in enumerate(STEPS)),
    ("cost", 0, 1, ["8B", "14.96", "1.00", "16.00", "4.00", "64.00"]),
    ("cost", 1, 1, [f"{1e3 * COST.models[0].latency(card, 8, 8_192).seconds:.2f}" for card in CARDS]),
    ("dial", 0, 1, ["0", f"{64 / (2 * math.pi):.2f}"]),
    ("dial", 1, -1, ["256", *(f"{DIAL.score(clock, 256):.2f}" for clock in DIAL.clocks[:4])]),
    ("gap", 0, 1, ["two", "0.25", "0.00"]),
    ("gap", 0, 2, ["hundred", "1.00", "0.10"]),
    ("gradient", 0, 0, ["", "1", "2", "3", "4"]),
    ("gradient", 1, 3, ["1.5", *(f"{float(f'{norm:.3g}'):.2g}" for norm in NORMS[1, 2])]),
    ("head", 0, 0, ["", *WORDS]),
    ("head", 0, 2, ["tante", "0", "1.00", "0"]),
    ("head", 4, 2, [f"{round(weight, 4):.2f}" for weight in SOFT[1, 1, 1].tolist()]),
    *(("lookup", 0, i + 1, lookup_row(c, " m")) for i, c in enumerate((0, 0.5, 1, 40))),
    ("lookup, no unit", 0, 4, lookup_row(4, "")),
    ("merge", 0, 1, ["1: l + o", "4", "19", "10"]),
    ("merge", 0, 3, ["3: ␣ + low", "3", "12", "12"]),
    *(("position", 0, k + 1, dot_products(k)) for k in (0, 1, 20, 39)),
    ("position", 2, 8, ["7", f"{SEVEN_APART.min():.2f}", f"{SEVEN_APART.max():.2f}"]),
    ("reach", 0, 5, ["1,024", "16,384", "never"]),
    *(("sampler", 0, i + 1, [token, f"{p.exp():.4f}"]) for i, (token, p) in enumerate(zip("dcba", BEST, strict=True))),
    *(("span", 0, i + 1, [" ".join(part) for part in SPANS.corrupted(mask)]) for i, mask in enumerate(SPANS.drawn)),
]


@pytest.mark.parametrize(("name", "table", "row", "expected"), CELLS)
def test_the_table_shows_what_was_computed(name: str, table: int, row: int, expected: list[str]) -> None:
    found = tables_of(SHOWN[name])[table][row]
    assert expected in (found[: len(expected)], found[-len(expected) :])


@pytest.mark.parametrize(
    ("name", "text"), [("pairs", "IBM: 2; net: none"), ("merge", "low  ␣low  ␣low·er  ␣low  n·ew·e·s·t")]
)
def test_what_the_tables_lead_to_stands_beside_them(name: str, text: str) -> None:
    assert text in SHOWN[name].plain()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_norms_of_zero_and_of_every_precision_that_need_gradients_are_accepted(dtype: torch.dtype) -> None:
    norms = torch.tensor([[0.0, 1.0]] * 3, dtype=dtype, requires_grad=True)
    explorer = gradient_explorer({"plain": norms}, (1, 2, 3), setting_name="s", caption="c")
    assert explorer.norms[0] == ((0.0, 1.0),) * 3
