"""The lesson of chapter 03 runs, shows figures that everybody can read, and states no number that is not true."""

from __future__ import annotations

import itertools
import json
import math
import re
import statistics
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from tfcourse import attention
from tfcourse.attention import (
    attention_backward,
    attention_cost,
    cosine_attention,
    masked_attention_weights,
    projected_attention,
    soft_lookup,
)

from .form import LessonForm
from .lesson import ROOT, Lesson

# What the finished kernel is asked for: a name, and the expression that the lesson's own variables answer.
ASKED = {
    "looped": "looped.tolist()",
    "measured": "[measured[True], measured[False]]",
    "shouting": "[dot_forecast[0], dot_forecast[-1], min(cosine_forecast), max(cosine_forecast)]",
    "masked": "[[((masked_attention_weights(q[:1], page) * mask) @ v)[0, 0].item(),"
    " scaled_dot_product_attention(q[:1], page, v, mask)[0, 0].item()] for page in (keys, other_keys)]",
    "poisoned": "[gradient.isnan().item(), repaired.isnan().item(), batch_q.grad.isnan().any().item()]",
    "words": "[both_ways.tolist(), one_way.tolist()]",
    "errors": "{name: (forecast - truth).square().mean().item() for name, (forecast, truth) in forecasts.items()}",
    "learned": "[learned.tolist(), w_v.flatten().tolist()]",
    "rank": "rank",
    "same": "[bool((one - other).abs().max() < 1e-12) for one, other in trials.values()]",
    "largest": "list(largest.values())",
    "mistakes": "[wrong_axis.sum().item(), (wrong_axis @ v[:, 0]).item(), added[0, 0].item()]",
}
# Numbers of the prose that come from a record or from the papers, are settings of the code, or are worked out on the spot.
GIVEN = """
4.2 2.1 6.3 0.5 3.2 1.5 1.75 5.25 20,000 768,000 0.08 98,561 0.25 65,536 262,144 268,435,456 1,048,576 5,242,880 115,200
0.02 0.03 0.05 0.06 0.26 0.35 0.38 0.6 0.8 1.28 1.66 1.8 15.9 16.3 18.7 3.4 3.6 4.6 4.9
"""

LESSON = Lesson("03_scaled_dot_product", ASKED, GIVEN)

KEYS = torch.tensor([[2, 1, 1, 0], [1, 1, 0, 0], [0, 0, 0, -1]], dtype=torch.float64)
VALUES = torch.tensor([[4.2, 2.1], [2.1, 6.3], [0.0, 21.0]], dtype=torch.float64)
QUERIES = math.log(2) * torch.tensor([[1, 1, 1, 0], [0, 2, -2, -4]], dtype=torch.float64)
WEIGHTS = torch.tensor([[4, 2, 1], [1, 2, 4]], dtype=torch.float64) / 7
HIDDEN = torch.tensor([False, True, True])


class TestForm(LessonForm):
    """The lesson has the form of all lessons."""


def test_the_lesson_links_and_uses_every_public_function() -> None:
    linked = set(re.findall(r"\{py:func\}`~tfcourse\.attention\.(\w+)`", LESSON.source))
    used = set(re.findall(r"\w+", " ".join(re.findall(r"```\{code-cell\}.*?```", LESSON.source, flags=re.DOTALL))))
    assert linked == set(attention.__all__) - {"AttentionCost"}
    assert linked <= used


def test_no_two_figures_of_the_page_share_an_identifier(pages: list[str]) -> None:
    figures = [page for page in pages if page.startswith(("<svg", '<div class="tfcourse-drawing"'))]
    identifiers = [name for figure in figures for name in re.findall(r'\sid="([^"]+)"', figure)]
    assert len(identifiers) == len(set(identifiers)) > 0


# ------------------------------------------------------------------------------------------- by hand


def near(actual: Any, expected: Any) -> None:
    """Equal up to the float32 of the lesson."""
    torch.testing.assert_close(
        torch.as_tensor(actual, dtype=torch.float64),
        torch.as_tensor(expected, dtype=torch.float64),
        rtol=1e-5,
        atol=1e-5,
    )


def test_forecasts_of_the_log_are_those_worked_out_by_hand(values: dict[str, Any]) -> None:
    weights = torch.tensor([16, 4, 1], dtype=torch.float64) / 21
    near(soft_lookup(QUERIES[0], KEYS, VALUES), weights @ VALUES)
    near(masked_attention_weights(QUERIES, KEYS), WEIGHTS)
    near(values["looped"], [[3.0, 6.0], (WEIGHTS[1] @ VALUES).tolist()])
    near(soft_lookup(QUERIES[0] / 2, KEYS, VALUES), [3.0, 6.0])


def test_a_page_that_shouts_wins_with_the_dot_product_and_not_with_the_cosine(values: dict[str, Any]) -> None:
    shouted = KEYS * torch.tensor([[1.0], [4.0], [1.0]])
    near(masked_attention_weights(QUERIES[:1], shouted)[0], [4 / 21, 16 / 21, 1 / 21])
    near(torch.nn.functional.cosine_similarity(QUERIES[:1], KEYS), [4 / 18**0.5, 2 / 6**0.5, 0])
    quiet, loud, least, most = values["shouting"]
    assert loud < quiet - 0.5
    near([least, most], [cosine_attention(QUERIES, KEYS, VALUES, scale=4.0)[0, 0].item()] * 2)


def test_a_mask_before_the_softmax_leaves_no_influence_and_one_after_it_does(values: dict[str, Any]) -> None:
    near(masked_attention_weights(QUERIES, KEYS, HIDDEN)[0], [0, 2 / 3, 1 / 3])
    (zeroed, forbidden), (zeroed_again, forbidden_again) = values["masked"]
    near([zeroed, forbidden, forbidden_again], [0.6, 1.4, 1.4])
    assert zeroed_again > zeroed + 0.1
    assert values["poisoned"] == [True, True, False]


def test_gradient_of_the_query_is_the_one_worked_out_by_hand() -> None:
    upstream = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    pull = WEIGHTS[0] * (VALUES[:, 0] - 3.0)
    assert abs(pull.sum()) < 1e-12
    near(attention_backward(QUERIES[:1], KEYS, VALUES, upstream)[0][0], pull @ KEYS / 2)


def test_mistakes_make_the_numbers_of_their_table(values: dict[str, Any]) -> None:
    scores = QUERIES @ KEYS.T / 2  # (T, S)
    wrong_axis, added = torch.softmax(scores, dim=0)[0], torch.softmax(scores + HIDDEN, dim=1)
    near(values["mistakes"], [wrong_axis.sum(), wrong_axis @ VALUES[:, 0], added[0, 0]])
    assert wrong_axis @ VALUES[:, 0] > VALUES[:, 0].max(), "higher than any wave in the book"


def test_fern_has_the_largest_weight_of_it_and_of_dry(values: dict[str, Any]) -> None:
    fern, it, dry, the = 3, 5, 7, 2
    both, back = torch.tensor(values["words"])
    grown = torch.tensor([1, 0.5, 0, 3, 0, 1.5, 1, 1]).exp()  # the scores of "it"
    near(both[it], grown / grown.sum())
    near(back[it, :6], grown[:6] / grown[:6].sum())
    assert [both[it].argmax(), both[dry].argmax()] == [fern, fern]
    near(both[the], [1 / 8] * 8)


# ------------------------------------------------------------------------------------------- what it costs


def test_costs_are_those_that_the_text_works_out(values: dict[str, Any]) -> None:
    assert attention_cost(1024, 1024, 64, 64) == (268_435_456, 5_242_880)
    assert values["rank"] == 64
    plain, tiled = values["largest"]
    assert {b // a for a, b in itertools.pairwise(plain)} == {4}, "slope 2"
    assert {b // a for a, b in itertools.pairwise(tiled)} == {2}, "slope 1"
    assert (plain[0], tiled[0], tiled[-1]) == (16_384, 8_192, 131_072)


@pytest.mark.parametrize("N", [64, 512])
def test_operations_of_a_layer_are_counted_as_the_text_computes_them(N: int) -> None:
    D = 512
    x, w = torch.empty(N, D, device="meta"), torch.empty(D, D, device="meta")
    with FlopCounterMode(display=False) as layer:
        projected_attention(x, x, w, w, w) @ w
    with FlopCounterMode(display=False) as recurrent:
        for x_t in x.split(1):
            x_t @ w + x_t @ w
    assert layer.get_total_flops() == 8 * N * D**2 + 4 * N**2 * D
    assert recurrent.get_total_flops() == 4 * N * D**2


def test_half_precision_ends_where_the_text_says() -> None:
    assert math.ceil(math.log(torch.finfo(torch.float32).max)) == 89
    assert torch.tensor(128 * 30.0**2).half().isinf()
    assert torch.tensor(256.0).bfloat16() + 1 == 256


# ------------------------------------------------------------------------------------------- what was measured


def test_scores_of_random_vectors_behave_as_the_section_on_scale_describes(values: dict[str, Any]) -> None:
    scaled, unscaled = (torch.tensor(rows) for rows in values["measured"])  # (widths, 3)
    widths = torch.tensor([1.0, 4, 16, 64, 256, 1024])
    torch.testing.assert_close(scaled[:, 0], torch.ones(6), rtol=0.1, atol=0)
    torch.testing.assert_close(unscaled[:, 0], widths, rtol=0.1, atol=0)
    torch.testing.assert_close(scaled[:, 2], torch.full((6,), 0.87), rtol=0, atol=0.01)
    assert scaled[:, 1].max() < 0.3
    assert scaled[4, 1] == pytest.approx(0.25, abs=0.007), "the answer of the guess"
    assert unscaled[-1, 1] > 0.9 > 0.1 > unscaled[-1, 2]
    one, eight = (gap.sigmoid() * (-gap).sigmoid() for gap in torch.tensor([1.0, 8.0]))
    assert one / eight == pytest.approx(600, abs=50), "about 600 times"


def test_attention_is_far_ahead_of_fixed_weights(values: dict[str, Any]) -> None:
    errors = values["errors"]
    assert errors["attention"] * 10 < errors["mean of the log"], "more than ten times smaller"

    assert errors["fixed weights"] > 0.9 * errors["mean of the log"], "hardly beats the mean"
    assert errors["equal mixture"] < 0.36 * errors["fixed weights"], "removes two thirds of the error"
    record = json.loads((ROOT / "experiments" / "results" / "fixed_weights.json").read_text("utf-8"))
    few, many = (record["errors by logs"][logs] for logs in ("19200", "768000"))
    runs = [list(run) for run in zip(*record["attention"].values(), strict=True)]  # (seeds, columns)
    for start, run in enumerate(runs, 1):
        cells = [f"{number:.{digits}f}" for number, digits in zip(run, (2, 2, 1, 1, 2), strict=False)]
        assert f"| {start} | {' | '.join(cells)} |" in LESSON.prose
    assert [run[0] > errors["equal mixture"] for run in runs] == [False, False, True, True, False]
    assert all(longer < short for short, longer, *_ in runs), "profits from a longer log"
    assert [wind > other for _, _, wind, other, *_ in runs] == [True, True, False, False, True]
    assert max(many) < 2.5 * errors["attention"], "comes close to attention"
    assert min(few) > errors["fixed weights"] - 0.05, "with few logs no better than the linear map"
    assert statistics.mean(many) == pytest.approx(0.08, abs=0.005)
    assert record["parameters"] == 98_561


def test_first_of_five_attentions_compares_wind_with_wind(values: dict[str, Any]) -> None:
    learned, value = (torch.tensor(one) for one in values["learned"])
    torch.testing.assert_close(learned.diagonal()[:2], torch.full((2,), 19.0), atol=1.0, rtol=0)
    torch.testing.assert_close(value, torch.tensor([0.0, 0, 0, 0, 0, 1]), atol=0.1, rtol=0)


def test_pages_and_queries_may_be_shuffled_but_not_keys_alone_or_under_a_causal_mask(values: dict[str, Any]) -> None:
    assert values["same"] == [True, True, False, False]
