"""The numbers in the drawings are those of the code or of arithmetic; how drawings look is asked in `pages/test_drawings.py`."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import torch
from torch.nn.functional import one_hot

from tfcourse.alignment import SCORES as SCORE_FUNCTIONS
from tfcourse.alignment import attend, masked_softmax
from tfcourse.attention import (
    attention_projections,
    causal_mask,
    masked_attention_weights,
    scaled_dot_product_attention,
    soft_lookup,
)
from tfcourse.layers import layer_norm
from tfcourse.lessons.explorers.alignments import count_crossings
from tfcourse.lessons.figures.scenes import (
    ch02_alignment,
    ch04_multi_head,
    ch05_transformer,
)
from tfcourse.multihead import split_heads
from tfcourse.recurrent import language_model_blocks
from tfcourse.training import cross_entropy, noam_learning_rate, shift_right

from .every_scene import SCENES, draw

KEYS = torch.tensor([[2, 1, 1, 0], [1, 1, 0, 0], [0, 0, 0, -1]], dtype=torch.float64)
VALUES = torch.tensor([[4.2, 2.1], [2.1, 6.3], [0.0, 21.0]], dtype=torch.float64)
QUERY = math.log(2) * torch.tensor([1, 1, 1, 0], dtype=torch.float64)


def layouts(name: str) -> list[ET.Element]:
    """The layout for a page and, where there is one, the one for a phone."""
    drawing = draw(name)
    return [layout._root for layout in (drawing, drawing.narrow) if layout is not None]


def texts(layout: ET.Element) -> list[str]:
    """The labels in the order in which they are drawn."""
    return ["".join(text.itertext()) for text in layout.iter("text")]


@pytest.mark.parametrize("name", SCENES)
def test_every_drawing_fits_a_phone(name: str) -> None:
    drawing = draw(name)
    assert (0.85 * drawing.width if drawing.narrow is None else drawing.narrow.width) <= 350


def context() -> str:
    scores, notes = torch.tensor([[[0.0, math.log(8), 0.0]]]), torch.tensor([[[10.0, 0.0], [0.0, 10.0], [0.0, 0.0]]])
    weights, found = attend(scores, notes, torch.ones(1, 3, dtype=torch.bool))
    torch.testing.assert_close(weights[0, 0], torch.tensor(ch02_alignment.WEIGHTS))
    return f"context ({found[0, 0, 0]:.0f}, {found[0, 0, 1]:.0f})"


CALENDARS = {"Germany": "day month year", "United States": "month day year", "Hungary": "year month day"}


def crossings(place: str) -> str:
    parts = [part for part in CALENDARS[place].split() for _ in range(ch02_alignment.DIGITS[part])]
    order = [i for part in ("year", "month", "day") for i, other in enumerate(parts) if other == part]
    return f"{place}: {count_crossings(one_hot(torch.tensor(order), 8).double())} crossings"


def shapes() -> list[str]:
    x_q, x_kv = torch.zeros(2, 6), torch.zeros(3, 6)
    w_q, w_k, w_v = torch.zeros(6, 4), torch.zeros(6, 4), torch.zeros(6, 2)
    q, k, v = attention_projections(x_q, x_kv, w_q, w_k, w_v)
    drawn = [x_q, w_q, q, x_kv, w_k, k, x_kv, w_v, v]
    drawn += [masked_attention_weights(q, k), scaled_dot_product_attention(q, k, v)]
    return [str(tuple(tensor.shape)) for tensor in drawn]


def running_sums() -> list[str]:
    scores, sums = KEYS @ QUERY / 2, []
    for pages, largest in (([2, 1], math.log(2)), ([2, 1, 0], 2 * math.log(2))):
        powers = (scores[pages] - largest).exp()
        sums += [f"ℓ = {powers.sum():.4g}", f"u = {powers @ VALUES[pages, 0]:.4g}"]
    return sums


def smoothed() -> list[str]:
    right, others, each = 0.9 + 0.1 / 113, 112 * 0.1 / 113, 0.1 / 113
    target = torch.full((113,), each).double()
    target[7] = right
    floor = cross_entropy(target.log()[None], torch.tensor([7]), label_smoothing=0.1)
    torch.testing.assert_close(floor, -(target * target.log()).sum())
    return [f"{right:.3f}", f"{others:.3f}", f"{each:.4f}"]


SPLIT = torch.tensor([ch04_multi_head.NUMBERS])
BLOCKS = language_model_blocks(torch.arange(11), 3)
HEADS = split_heads(SPLIT, ch04_multi_head.N_HEADS)
ROW = torch.tensor(ch05_transformer.ROW, dtype=torch.float64)
TOKENS = [token for pair in zip(ch05_transformer.READS, ch05_transformer.SAYS, strict=True) for token in pair]

# A drawing, which of its labels, or of what stands in them, are looked at, and what they are in the order in which they are drawn.
LABELS: list[tuple[str, str, list[Any]]] = [
    ("encoder_decoder", "^(?:[abc]|[BE]OS)$", [*"abc", "BOS", *"ccbba", "a", "EOS"]),
    ("teacher_forcing", "^(?:[a-e]|BOS)$", ["BOS", *"ccdba", "BOS", *"ccdde"]),
    ("stacked_and_bidirectional", "^(?:lower|upper|→|←)$", ["lower"] * 3 + ["upper"] * 3 + ["→"] * 3 + ["←"] * 3),
    ("corpus_in_blocks", r"^\d+$", [*range(11), *BLOCKS[0].flatten().tolist(), *BLOCKS[1].flatten().tolist()]),
    ("gradient_on_its_way", r"^[\d.]+$", [0.125, 0.25, 0.5, 1, 0.5, 8, 4, 2, 1, 2]),
    ("soft_lookup", "^context.*", [context()]),
    ("date_orders", ".*crossings", [crossings(place) for place in CALENDARS]),
    ("lookup_in_a_book", r"^0\.\d\d$", [f"{weight:.2f}" for weight in torch.softmax(KEYS @ QUERY / 2, 0)]),
    ("lookup_in_a_book", r"^3.* m$", [f"{soft_lookup(QUERY / 2, KEYS, VALUES)[0]:.1f} m"]),
    ("shapes_at_carrow_head", r"^\(.*", shapes()),
    ("online_softmax", "^[ℓu] = .*", running_sums()),
    (
        "multi_head_layer",
        r"^\(.*",
        ["(B, T, D)"] * 2 + ["(B, H, T, Dh)", "(B, H, T, S)", "(B, H, T, Dh)"] + ["(B, T, D)"] * 2,
    ),
    (
        "split_and_merge",
        r"^\d+$",
        [n for x in (SPLIT, HEADS, SPLIT.reshape(HEADS.shape)) for n in x.flatten().tolist()],
    ),
    ("three_sources", r"\d+, \d+|\d+ outputs", ["9, 9", "9 outputs"] * 2 + ["10, 9", "10 outputs"]),
    ("reach_on_a_ring", "^holds (.*)", ["0, 1", "2, 3", "0, 1, 2, 3"]),
    ("jobs_of_heads", "^(?:the|boys|see|0.*)$", ["boys", *["the", "0.90"] * 4, "see", *["boys", "0.60"] * 4]),
    ("two_permutations", r"^o\d$", ["o1", "o2", "o3", "o3", "o1", "o2"]),
    ("norms_of_a_batch", r"mean (\d), deviation \d", [f"{ROW.mean():.0f}", "0"]),
    ("norms_of_a_batch", r"mean \d, deviation (\d)", [f"{ROW.std(correction=0):.0f}", "1"]),
    ("shifted_target", "^(?:drei|##.*|[(](?:begin|end|pad)[)])$", TOKENS),
    ("smoothed_target", r"\b0\.\d{3,4}", smoothed()),
]


@pytest.mark.parametrize(("name", "pattern", "expected"), LABELS)
def test_labels_are_what_the_code_or_arithmetic_gives(name: str, pattern: str, expected: list[Any]) -> None:
    for layout in layouts(name):
        labels = [label for text in texts(layout) for label in re.findall(pattern, text)]
        assert [type(value)(label) for value, label in zip(expected, labels, strict=True)] == expected


FUTURE = int((~causal_mask(4)).sum())


@pytest.mark.parametrize(
    ("name", "cells"), [("three_sources", FUTURE), ("three_masks", 4 + FUTURE + 4), ("who_notices", 3 * 36)]
)
def test_masks_cross_out_what_may_not_be_looked_at(name: str, cells: int) -> None:
    for layout in layouts(name):
        paths = (path for path in layout.iter("path") if "tfd-muted" in path.attrib.get("class", ""))
        assert sum(path.attrib["d"].count("M") == 2 for path in paths) == cells


def test_formats_have_their_bits_and_reach() -> None:
    bits: dict[str, list[str]] = {}
    for rect in layouts("number_formats")[0].iter("rect"):
        tone = rect.attrib.get("class", "tfd-ink").removeprefix("tfd-")
        bits.setdefault(rect.attrib["y"], []).append(tone)
    for tones, dtype in zip(bits.values(), (torch.float32, torch.float16, torch.bfloat16), strict=True):
        info = torch.finfo(dtype)
        assert (len(tones), 2.0 ** -tones.count("key")) == (info.bits, info.eps)
        assert math.frexp(info.max)[1] == 2 ** (tones.count("query") - 1)
    reach = "".join(texts(layouts("number_formats")[0]))
    assert f"{torch.finfo(torch.float16).max:,.0f}" in reach
    assert reach.count("3.4 · 10") == 2, f"{torch.finfo(torch.bfloat16).max:.1e}"


def test_drawn_weights_are_those_of_the_masked_softmax() -> None:
    scores = torch.tensor([[0.0, math.log(8), 0.0, 0.0, 0.0]])
    allowed = torch.tensor([[True, True, True, False, False]])
    plain = torch.softmax(scores, dim=-1)
    drawn = [[float(Fraction(entry)) for entry in row] for row in ch02_alignment.SOFTMAX_ROWS.values()]
    expected = torch.cat([plain, masked_softmax(scores, allowed), plain * allowed])
    torch.testing.assert_close(torch.tensor(drawn), expected)


def test_open_weights_keep_their_proportions() -> None:
    everything, closed, nothing = torch.tensor([[float(w or 0) for w in row] for row in ch02_alignment.CLOSED.values()])
    rest = torch.tensor([0.0, *everything[1:]])
    torch.testing.assert_close(torch.stack([everything.sum(), nothing.sum()]), torch.tensor([1.0, 0.0]))
    torch.testing.assert_close(closed, rest / rest.sum())


def test_every_score_of_the_course_has_its_panel() -> None:
    assert {name.replace(" ", "_") for name in ch02_alignment.SCORE_PANELS} == set(SCORE_FUNCTIONS)


def test_normalised_row_is_that_of_layer_norm_and_the_target_is_that_of_shift_right() -> None:
    exact = layer_norm(ROW, torch.ones(4).double(), torch.zeros(4).double())
    fractions = {"−1": -1.0, "−⅓": -1 / 3, "1⅔": 5 / 3}
    drawn = torch.tensor([fractions[text] for text in ch05_transformer.NORMALISED]).double()
    torch.testing.assert_close(exact, drawn, atol=1e-5, rtol=0)
    numbers = {
        token: number for number, token in enumerate(("(pad)", "(begin)", "(end)", "drei", "##und", "##zwanzig"))
    }
    target = torch.tensor([[numbers[token] for token in ch05_transformer.SAYS]])
    assert shift_right(target).tolist() == [[numbers[token] for token in ch05_transformer.READS]]


def test_removed_head_sends_no_arrow_to_the_sum() -> None:
    arrows = {
        second: sum(
            path.attrib["fill"] != "none" for path in ch04_multi_head._contributions("t", second)._root.iter("path")
        )
        for second in ("nothing", "its mean", "")
    }
    assert arrows["nothing"] + 1 == arrows["its mean"] == arrows[""]


def test_norm_comes_after_the_sum_or_first() -> None:
    labels = [
        (float(text.get("x", 0)), float(text.get("y", 0)), "".join(text.itertext()))
        for text in layouts("post_and_pre_norm")[0].iter("text")
    ]
    post, pre = (
        [
            label
            for _, label in sorted(
                (y, label) for x, y, label in labels if (x < 200) == left and label in ("LN", "f", "+")
            )
        ]
        for left in (True, False)
    )
    assert (post, pre) == (["f", "+", "LN"], ["LN", "f", "+"])


def test_rate_peaks_where_the_branches_meet() -> None:
    paths = layouts("warm_up_rate")[0].iter("path")
    curves = [path.attrib["d"] for path in paths if path.attrib.get("stroke-width") == "3"]
    rising, falling = (
        [tuple(map(float, pair)) for pair in re.findall(r"([\d.]+) ([\d.]+)", curve)] for curve in curves
    )
    assert rising[-1] == falling[0]
    (first, highest), (last, lowest) = ((x - 44.0, 196.0 - y) for x, y in (falling[0], falling[-1]))
    ratio = noam_learning_rate(round(1000 * last / first), 512, 1000) / noam_learning_rate(1000, 512, 1000)
    assert lowest / highest == pytest.approx(ratio, abs=0.01)
    assert falling == sorted(falling)


# The table of the lesson: after each text, the probability of the next token.
TABLE = {
    "": {"A": 0.5, "B": 0.2, "C": 0.2, "end": 0.1},
    "A": {"A": 0.1, "B": 0.4, "C": 0.3, "end": 0.2},
    "AB": {"A": 0.2, "B": 0.2, "C": 0.4, "end": 0.2},
    "AC": {"A": 0.1, "B": 0.6, "C": 0.2, "end": 0.1},
    "ABC": {"end": 0.6},
    "ACB": {"end": 0.6},
}


def test_beam_multiplies_the_probabilities_of_the_table() -> None:
    totals = {"": 1.0}
    for branches in ch05_transformer.BEAM:
        for parent, name, probability, _ in branches:
            totals[name] = probability
            token = name.removeprefix(parent).strip()
            if token in TABLE.get(parent, {}):
                assert probability == pytest.approx(totals[parent] * TABLE[parent][token]), name
        assert sum(kept for *_, kept in branches) <= 2
    (best,) = [name for _, name, _, kept in ch05_transformer.BEAM[-1] if kept]
    assert best == max((branch[1] for branch in ch05_transformer.BEAM[-1]), key=totals.__getitem__)
