"""The drawings of chapter 03 show what its text says, on a page and on a phone."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import pytest
import torch

from tfcourse.attention import (
    attention_projections,
    masked_attention_weights,
    scaled_dot_product_attention,
    soft_lookup,
)
from tfcourse.lessons.figures import Drawing
from tfcourse.lessons.figures.scenes import ch03_scaled_dot_product as scenes

KEYS = torch.tensor([[2, 1, 1, 0], [1, 1, 0, 0], [0, 0, 0, -1]], dtype=torch.float64)
VALUES = torch.tensor([[4.2, 2.1], [2.1, 6.3], [0.0, 21.0]], dtype=torch.float64)
READINGS = torch.tensor([1, 1, 1, 0], dtype=torch.float64)

DRAWINGS = (
    scenes.lookup_in_a_book,
    scenes.three_uses,
    scenes.shapes_at_carrow_head,
    scenes.online_softmax,
    scenes.number_formats,
)


def texts(drawing: Drawing) -> list[str]:
    """Return the labels of the layout for a page, in the order in which they are drawn."""
    return ["".join(text.itertext()) for text in drawing._root.iter("text")]


@pytest.mark.parametrize("draw", DRAWINGS, ids=lambda draw: draw.__name__)
def test_every_drawing_fits_a_phone(draw: Callable[[], Drawing]) -> None:
    drawing = draw()
    if drawing.narrow is None:
        assert 0.85 * drawing.width <= 350
    else:
        assert drawing.narrow.width <= 350


def test_lookup_blends_what_the_formula_of_the_chapter_blends() -> None:
    labels = texts(scenes.lookup_in_a_book())
    query = math.log(2) * READINGS / 2  # divided by the square root of the width
    weights = torch.softmax(KEYS @ query, dim=0)
    assert [label for label in labels if re.fullmatch(r"0\.\d\d", label)] == [f"{weight:.2f}" for weight in weights]
    assert f"{soft_lookup(query, KEYS, VALUES)[0]:.1f} m" in labels


def test_shapes_are_those_of_the_lesson() -> None:
    x_q, x_kv = torch.zeros(2, 6), torch.zeros(3, 6)
    w_q, w_k, w_v = torch.zeros(6, 4), torch.zeros(6, 4), torch.zeros(6, 2)
    q, k, v = attention_projections(x_q, x_kv, w_q, w_k, w_v)
    expected = [x_q, w_q, q, x_kv, w_k, k, x_kv, w_v, v]
    expected += [masked_attention_weights(q, k), scaled_dot_product_attention(q, k, v)]
    written = [label for label in texts(scenes.shapes_at_carrow_head()) if label.startswith("(")]
    assert written == [str(tuple(tensor.shape)) for tensor in expected]


def test_running_sums_end_at_the_forecast() -> None:
    scores = KEYS @ (math.log(2) * READINGS) / 2
    labels = texts(scenes.online_softmax())
    for pages, largest in (([2, 1], math.log(2)), ([2, 1, 0], 2 * math.log(2))):
        powers = (scores[pages] - largest).exp()
        assert f"ℓ = {powers.sum():.4g}" in labels
        assert f"u = {powers @ VALUES[pages, 0]:.4g}" in labels
    assert f"{scaled_dot_product_attention((math.log(2) * READINGS)[None], KEYS, VALUES)[0, 0]:.1f}" in labels


def test_formats_have_their_bits_and_reach() -> None:
    drawing = scenes.number_formats()
    bits: dict[str, list[str]] = {}
    for rect in drawing._root.iter("rect"):
        tone = rect.attrib.get("class", "tfd-ink").removeprefix("tfd-")
        bits.setdefault(rect.attrib["y"], []).append(tone)
    for tones, dtype in zip(bits.values(), (torch.float32, torch.float16, torch.bfloat16), strict=True):
        info = torch.finfo(dtype)
        assert len(tones) == info.bits
        assert info.eps == 2.0 ** -tones.count("key")
        assert math.frexp(info.max)[1] == 2 ** (tones.count("query") - 1)
    assert f"up to {torch.finfo(torch.float16).max:,.0f}" in texts(drawing)
    assert all(f"{torch.finfo(dtype).max:.1e}" == "3.4e+38" for dtype in (torch.float32, torch.bfloat16))
