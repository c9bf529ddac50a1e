"""The head explorer tells the truth about the weights, in HTML that no token can break; the recorder sees what a layer does."""

import json
import math
from html.parser import HTMLParser

import pytest
import torch
from torch import Tensor

from tfcourse.attention import causal_mask
from tfcourse.lessons.explorers.heads import HeadExplorer, head_explorer, record_heads
from tfcourse.multihead import MultiHeadAttention

WORDS = ["the", "aunt", "near"]
NASTY = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "\"double\" and 'single' quotes",
    "a & b &amp; c",
    "\U0001f600 \u05de\u05d9\u05dc\u05d4 \u2028\u2029",
    "`${1}` {{x}}",
    "",
    "   ",
]


def weights_of(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).softmax(-1)


class Page(HTMLParser):
    """The elements of a page in order, the text of each table head, and the JSON."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.heads: list[str] = []
        self.json = ""
        self.figures: list[str] = []
        self._inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._inside = tag
        if tag == "th":
            self.heads.append("")
        if tag == "td":
            self.figures.append("")

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.json += data
        elif self._inside == "th":
            self.heads[-1] += data
        elif self._inside == "td":
            self.figures[-1] += data

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""


def shown(explorer: HeadExplorer) -> Page:
    return Page(explorer._repr_html_())


def test_json_holds_the_weights_rounded_to_four_digits() -> None:
    weights = weights_of(2, 3, 3, 3)
    data = json.loads(shown(head_explorer(WORDS, weights, caption="c")).json)
    torch.testing.assert_close(torch.tensor(data["weights"]), weights, atol=5.1e-5, rtol=0)
    assert all(len(str(weight)) <= 6 for layer in data["weights"] for head in layer for row in head for weight in row)


def test_json_holds_tokens_caption_and_start() -> None:
    explorer = head_explorer(
        WORDS, weights_of(1, 2, 2, 3), query_tokens=["la", "tante"], caption="Who?", start=(0, 1, 0)
    )
    data = json.loads(shown(explorer).json)
    assert data["keys"] == WORDS
    assert data["queries"] == ["la", "tante"]
    assert data["caption"] == "Who?"
    assert data["start"] == {"layer": 0, "head": 1, "query": 0}


def test_without_a_start_the_last_query_of_the_first_head_is_shown() -> None:
    assert head_explorer(WORDS, weights_of(2, 2, 3, 3), caption="c").start == (0, 0, 2)


def test_nasty_tokens_come_back_as_they_are_and_open_no_element() -> None:
    tame = shown(head_explorer(["a"] * len(NASTY), weights_of(1, 1, len(NASTY), len(NASTY)), caption="c"))
    page = shown(head_explorer(NASTY, weights_of(1, 1, len(NASTY), len(NASTY)), caption="c"))
    assert json.loads(page.json)["keys"] == NASTY
    assert page.heads == NASTY + NASTY
    assert page.tags == tame.tags


@pytest.mark.parametrize("form", ["stacked", "single layer", "list", "different numbers of heads"])
def test_each_form_of_the_weights_is_accepted(form: str) -> None:
    weights = weights_of(2, 4, 3, 3)
    given, layers = {
        "stacked": (weights, [4, 4]),
        "single layer": (weights[0], [4]),
        "list": ([weights[0], weights[1]], [4, 4]),
        "different numbers of heads": ([weights[0], weights[1, :2]], [4, 2]),
    }[form]
    assert [len(heads) for heads in head_explorer(WORDS, given, caption="c").weights] == layers


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_weights_of_every_precision_that_need_gradients_are_accepted(dtype: torch.dtype) -> None:
    scores = torch.randn(1, 2, 3, 3, generator=torch.Generator().manual_seed(0)).to(dtype).requires_grad_()
    assert len(head_explorer(WORDS, scores.softmax(-1), caption="c").weights[0]) == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"weights": weights_of(1, 2, 3, 4)}, r"\(H, 3, 3\).*\(2, 3, 4\)"),
        ({"weights": weights_of(5, 1, 2, 3, 3)}, "a batch"),
        ({"weights": weights_of(3, 3)}, "expected weights of shape"),
        ({"weights": []}, "no layer"),
        ({"weights": torch.randn(1, 2, 3, 3, generator=torch.Generator().manual_seed(0))}, "between 0 and 1"),
        ({"weights": torch.full((1, 2, 3, 3), math.nan)}, "between 0 and 1"),
        ({"query_tokens": ["la", "tante"]}, r"\(H, 2, 3\)"),
        ({"start": (0, 2, 0)}, r"start=\(0, 2, 0\)"),
        ({"start": (0, 0, 3)}, "points outside"),
        ({"start": (-1, 0, 0)}, "points outside"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_values(given: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"weights": weights_of(1, 2, 3, 3), "caption": "c", **given}
    weights = arguments.pop("weights")
    with pytest.raises(ValueError, match=message):
        head_explorer(WORDS, weights, **arguments)  # type: ignore[arg-type]


def test_rows_that_do_not_sum_to_one_are_shown_as_they_are() -> None:
    weights = weights_of(1, 2, 3, 3)
    weights[0, 1, 2] = 0.0  # a fully masked row
    weights[0, 0, 1] = 0.9
    rows = head_explorer(WORDS, weights, caption="c").weights
    assert rows[0][1][2] == (0, 0, 0)
    assert rows[0][0][1] == (0.9, 0.9, 0.9)


def test_fallback_has_one_table_a_head_with_every_weight_to_two_decimals() -> None:
    weights = weights_of(2, 2, 3, 3)
    weights[0, 0] = torch.eye(3)
    page = shown(head_explorer(WORDS, weights, caption="c"))
    assert page.tags.count("table") == 4
    expected = [
        "" if cell is None else "0" if cell == 0 else f"{cell:.2f}"
        for layer in weights.tolist()
        for head in layer
        for cell in [None, *(round(weight, 4) for row in head for weight in row)]
    ]
    assert page.figures == expected


def test_only_the_first_head_that_is_shown_is_unfolded() -> None:
    text = head_explorer(WORDS, weights_of(2, 2, 3, 3), caption="c", start=(1, 0, 0))._repr_html_()
    assert text.count("<details open>") == 1
    assert "<details open><summary>Layer 2, head 1</summary>" in text


def test_text_form_says_what_there_is_to_see() -> None:
    explorer = head_explorer(WORDS, weights_of(1, 2, 1, 3), query_tokens=["la"], caption="Who looks where?")
    assert repr(explorer) == "HeadExplorer: 1 layer of 2 heads, 1 query on 3 keys. Who looks where?"
    ragged = head_explorer(WORDS, [weights_of(1, 3, 3), weights_of(4, 3, 3)], caption="c")
    assert repr(ragged).startswith("HeadExplorer: 2 layers of 1 to 4 heads, 3 queries on 3 keys.")


@pytest.fixture
def layer() -> MultiHeadAttention:
    torch.manual_seed(0)
    return MultiHeadAttention(12, 3)


def by_loop(layer: MultiHeadAttention, x: Tensor, context: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Weights and outputs of every head, one head and one example at a time; mask (B, H, T, S)."""
    q, k, v = layer.q_proj(x), layer.k_proj(context), layer.v_proj(context)
    weights, outputs = [], []
    for b in range(len(x)):
        for h in range(3):
            cut = slice(4 * h, 4 * h + 4)
            scores = q[b, :, cut] @ k[b, :, cut].T / 2.0
            if mask is not None:
                scores = scores.masked_fill(~mask[b, h], -torch.inf)
            weights.append(scores.softmax(-1))
            outputs.append(weights[-1] @ v[b, :, cut])
    shape = (len(x), 3)
    return torch.stack(weights).unflatten(0, shape), torch.stack(outputs).unflatten(0, shape)


MASKS = {
    "none": None,
    "for everybody": torch.rand(5, 7, generator=torch.Generator().manual_seed(1)) < 0.6,
    "by example": torch.rand(2, 5, 7, generator=torch.Generator().manual_seed(2)) < 0.6,
    "by head": torch.rand(2, 3, 5, 7, generator=torch.Generator().manual_seed(3)) < 0.6,
}


@pytest.mark.parametrize("by_position", [True, False], ids=["by position", "by keyword"])
@pytest.mark.parametrize("name", MASKS)
def test_recorded_weights_and_outputs_are_those_of_a_loop_over_heads(
    layer: MultiHeadAttention, name: str, by_position: bool
) -> None:
    x, context, mask = torch.randn(2, 5, 12), torch.randn(2, 7, 12), MASKS[name]
    if mask is not None:
        mask = mask.clone()
        mask[..., 0] = True  # no empty row: the loop's softmax over nothing is NaN
    with record_heads([layer]) as records:
        layer(x, context, mask) if by_position else layer(x, context=context, mask=mask)
    full = None if mask is None else (mask.unsqueeze(1) if mask.ndim == 3 else mask).expand(2, 3, 5, 7)
    weights, outputs = by_loop(layer, x, context, full)
    record = records[0]
    assert record is not None
    torch.testing.assert_close(record.weights, weights)
    torch.testing.assert_close(record.outputs, outputs)


def test_recording_changes_neither_outputs_nor_gradients(layer: MultiHeadAttention) -> None:
    x = torch.randn(2, 5, 12, requires_grad=True)
    plain = layer(x, mask=causal_mask(5))
    (expected,) = torch.autograd.grad(plain.square().sum(), x)
    with record_heads([layer]) as records:
        recorded = layer(x, mask=causal_mask(5))
    (grad,) = torch.autograd.grad(recorded.square().sum(), x)
    torch.testing.assert_close(recorded, plain, rtol=0, atol=0)
    torch.testing.assert_close(grad, expected, rtol=0, atol=0)
    assert records[0] is not None
    assert not records[0].weights.requires_grad


def test_record_is_that_of_the_last_pass_and_stays_after_the_block(layer: MultiHeadAttention) -> None:
    first, second, third = torch.randn(3, 2, 5, 12)
    with record_heads([layer]) as records:
        assert records == [None]
        layer(first)
        before = records[0]
        layer(second)
    layer(third)  # the hooks are gone
    assert before is not None
    assert records[0] is not None
    torch.testing.assert_close(records[0].weights, by_loop(layer, second, second, None)[0])
    torch.testing.assert_close(before.weights, by_loop(layer, first, first, None)[0])


def test_mask_of_an_earlier_pass_is_forgotten(layer: MultiHeadAttention) -> None:
    x = torch.randn(2, 5, 12)
    with record_heads([layer]) as records:
        layer(x, mask=causal_mask(5))
        layer(x)
    assert records[0] is not None
    torch.testing.assert_close(records[0].weights, by_loop(layer, x, x, None)[0])


def test_hooks_are_removed_when_the_model_fails(layer: MultiHeadAttention) -> None:
    with pytest.raises(ValueError, match="shape"), record_heads([layer]):
        layer(torch.randn(12))
    assert not layer._forward_hooks
    assert not layer._forward_pre_hooks
    assert not any(projection._forward_hooks or projection._forward_pre_hooks for projection in layer.children())


def test_each_layer_of_a_model_has_its_own_record() -> None:
    torch.manual_seed(1)
    layers = [MultiHeadAttention(12, 3), MultiHeadAttention(12, 2)]
    x = torch.randn(2, 5, 12)
    with record_heads(layers) as records:
        layers[1](layers[0](x))
    assert [record.weights.shape[1] for record in records if record is not None] == [3, 2]
