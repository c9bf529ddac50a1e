"""The lesson of chapter 04 runs, shows figures that everybody can read, and states no number that is not true."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tfcourse.attention import causal_mask
from tfcourse.data import recorded_sentence_vectors
from tfcourse.multihead import MultiHeadAttention, attention_parameters

from .form import LessonForm
from .lesson import Lesson

# What the finished kernel is asked for: a name, and the expression that the lesson's own variables answer.
ASKED = {
    "report": "report",
    "controls": "[control, own_columns, wider]",
    "written": "written[2].tolist()",
    "equal": "[largest_difference, moved, agreement, difference, words_moved, heads_moved]",
    "mixed": "wrong.tolist()",
    "shares_memory": "right.data_ptr() == numbers.data_ptr()",
    "masks": "[bool(as_it_is[0, -1].isnan().all()), bool(inverted.isfinite().all()),"
    " theirs(x, x, x, attn_mask=causal_mask(T), need_weights=False)[0][:, -1].isfinite().all().item()]",
    "noticed_later": "[bool((layer(later, mask=m) - layer(english, mask=m))[0, :5].any()) for m in (None, causal_mask(T))]",
    "bias_gradients": "[getattr(biased, n).bias.grad.abs().max().item() for n in ('q_proj', 'k_proj', 'v_proj', 'o_proj')]",
    "hops": "[hop.weights[0, 0].tolist() for hop in hops]",
    "sums": "[stream[0, 8].view(5,9)[3], trail[1](trail[0](torch.cat([address, address[points_to], empty], 1)[None]))[0, 8].view(5, 9)[3]]",
    "ring": "list(ring_errors.values())",
    "results": "results",
    "parameters_of_readers": "{n: sum(p.numel() for p in readers[n][0].parameters()) for n in (1, 4)}",
    "always_s": "(exam != vocabulary.index('they')).all(dim=1).double().mean().item()",
    "weights": "weights.tolist()",
    "mirrored": "looks[1].item()",
    "ablated": "ablated",
    "restored": "restored",
    "pair": "pair",
    "joint": "joint",
    "induction": "[[kinds[f[t].argmax()] for t in (6, 7)] for f in (follower, alone)]",
    "unexplained": "left",
    "noticed": "list(noticed.values())",
    "influence": "[grid for _, grid in influence]",
    "exchanged": "apart",
    "flattened": "(weights - flat)[1, 7, 4].item()",
}
# Numbers of the prose that come from the papers it cites or are worked out in the sentence itself.
GIVEN = "24.9 25.8 25.4 0.15 0.67"


LESSON = Lesson("04_multi_head", ASKED, GIVEN)


# ---------------------------------------------------------------------------------------------- the page


class TestForm(LessonForm):
    """The lesson has the form of all lessons."""


# ------------------------------------------------------------------------------------------- its numbers


@pytest.mark.parametrize(("a", "b"), [(1.0, 0.0), (0.5, 0.5), (0.75, 0.25), (0.3, 0.9)])
def test_one_average_loses_half_whatever_its_weights(a: float, b: float) -> None:
    eye = torch.eye(5, dtype=torch.float64)
    blend = torch.cat([a * eye, b * eye])  # (2n, n): what one head makes of the pair
    best = torch.linalg.lstsq(blend, torch.eye(10, dtype=torch.float64)).solution  # the best M
    torch.testing.assert_close((blend @ best - torch.eye(10)).square().sum().item(), 5.0)
    torch.testing.assert_close(best, torch.cat([a * eye, b * eye], dim=1) / (a * a + b * b))


def test_one_head_fails_and_two_succeed(values: dict[str, Any]) -> None:
    report = values["report"]
    assert report["1"] == pytest.approx(0.5, abs=0.005)
    assert max(report["2"], report["4"], report["8"], *values["controls"]) < 0.002 < report["16"] < report["32"]


def test_what_the_algebra_says_is_equal_differs_by_rounding(values: dict[str, Any]) -> None:
    assert max(values["equal"]) < 1e-14
    assert values["unexplained"] < 1e-12


def test_two_heads_by_hand_return_the_numbers_of_both_nouns(values: dict[str, Any]) -> None:
    assert values["written"] == pytest.approx([-1, 1, 0, 0], abs=1e-4)


def test_narrowest_head_can_point_at_two_of_nine_keys_only() -> None:
    keys = torch.randn(9, 1, generator=torch.Generator().manual_seed(0))
    favourites = {int((query * keys).argmax()) for query in torch.linspace(-3, 3, 50)}
    assert favourites == {int(keys.argmin()), int(keys.argmax())}


def test_plain_reshape_mixes_words_and_the_split_copies_nothing(values: dict[str, Any]) -> None:
    assert ([pair[0] // 10 for pair in values["mixed"][0][0]], values["shares_memory"]) == ([1, 1, 2], True), (
        "the, the, aunt"
    )


def test_pytorch_needs_the_inverted_mask_and_the_causal_one_hides_the_future(values: dict[str, Any]) -> None:
    assert [*values["masks"], *values["noticed_later"]] == [True, True, True, True, False]


@pytest.mark.parametrize(("width", "heads", "factor"), [(512, 8, 4), (12288, 96, 48)])
def test_a_layer_has_four_squares_of_parameters_and_merging_costs_half_the_heads_times_as_many(
    width: int, heads: int, factor: int
) -> None:
    count = attention_parameters(width, heads, width // heads, width // heads, width)
    assert count.query_key + count.value_output == 4 * width**2
    assert count.merged_value_output == factor * count.value_output


def test_key_bias_never_learns_and_value_bias_is_a_constant(values: dict[str, Any]) -> None:
    queries, keys, *others = values["bias_gradients"]
    assert keys < 1e-12 < 0.1 < min(queries, *others)
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(12, 3).double(), torch.randn(2, 9, 12, dtype=torch.float64)
    before, shift = layer(x, mask=causal_mask(9)), torch.randn(12, dtype=torch.float64)
    layer.v_proj.bias.data += shift
    torch.testing.assert_close(layer(x, mask=causal_mask(9)), before + shift @ layer.o_proj.weight.T)


def test_trail_leads_from_them_to_aunt_and_is_lost_where_a_layer_replaces_its_input(values: dict[str, Any]) -> None:
    hops = torch.tensor(values["hops"])
    assert hops[:, 8].argmax(dim=-1).tolist() == [7, 6, 1]
    assert hops.amax(dim=-1).min() > 0.999
    added, replaced = torch.tensor(values["sums"])
    assert added.argmax() == 1, "the aunt"
    assert replaced.abs().max() < 1e-6, "the addresses by which layer 2 would find anything are gone"


def test_one_layer_takes_one_step_and_two_take_three(values: dict[str, Any]) -> None:
    one_head, eight_heads, two_layers = values["ring"]
    assert max(one_head[0], eight_heads[0], *two_layers) < 0.02
    assert [*one_head[1:], *eight_heads[1:]] == pytest.approx([2 / 3] * 4, abs=0.06)


def _exact_lookup(queries: torch.Tensor, keys: torch.Tensor, contents: torch.Tensor) -> torch.Tensor:
    """A head with weights set by hand, whose softmax is as good as an exact lookup."""
    return torch.softmax(200 * queries @ keys.T, dim=-1) @ contents


def _ring(size: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Addresses, pointers and contents of words on a ring in random order, and the successor of each word."""
    generator = torch.Generator().manual_seed(0)
    order = torch.randperm(size, generator=generator)
    successor = torch.empty_like(order).scatter_(0, order, order.roll(-1))
    return torch.eye(size), torch.eye(size)[successor], torch.randn(size, 4, generator=generator), successor


def test_three_steps_need_all_words_to_look_in_layer_1() -> None:
    address, pointer, content, successor = _ring(6)
    fetched = _exact_lookup(pointer, address, torch.cat([pointer, content], dim=1))  # layer 1: of the successor
    three_down = content[successor[successor[successor]]]
    torch.testing.assert_close(_exact_lookup(fetched[:, :6], address, fetched[:, 6:]), three_down)
    for asker in range(6):
        alone = torch.zeros_like(fetched)  # the control: in layer 1 only the asking word looks
        alone[asker] = fetched[asker]
        reached = _exact_lookup(alone[:, :6], address, alone[:, 6:])[asker]
        assert (reached - three_down[asker]).abs().max() > 0.1


def test_two_layers_of_one_head_can_reach_four_steps() -> None:
    address, pointer, content, successor = _ring(12)
    ask, found = (
        torch.cat([pointer, 0.98 * address], dim=1),
        torch.cat([address, pointer], dim=1),
    )  # one head, two looks
    fetched = _exact_lookup(ask, found, torch.cat([address, pointer, content], dim=1))
    little = torch.sigmoid(torch.tensor(-200 * 0.02))  # the weight of the predecessor
    predecessor = (fetched[:, :12] - (1 - little) * pointer) / little
    reached = _exact_lookup(fetched[:, 12:24], predecessor, fetched[:, 24:])
    assert (reached - content[successor[successor[successor[successor]]]]).square().mean() < 1e-3


def test_one_layer_of_seven_heads_can_take_two_steps() -> None:
    address, pointer, content, successor = _ring(6)
    # the head of an address looks there only if the successor, which has the largest score otherwise, points there
    heads = [2 * pointer @ address.T - 2 * pointer[:, a] + address[:, a] for a in range(6)]
    returned = [torch.softmax(100 * scores, dim=-1) @ content for scores in (*heads, pointer @ address.T)]
    torch.testing.assert_close(sum(returned[:6]) - 5 * returned[6], content[successor[successor]])


def test_induction_head_by_hand_copies_what_followed(values: dict[str, Any]) -> None:
    assert values["induction"] == [["aunt", "says"], ["the", "aunt"]]


def test_induction_head_needs_no_word_of_the_text() -> None:
    generator = torch.Generator().manual_seed(0)
    for _ in range(5):
        once = torch.randperm(20, generator=generator)
        text = torch.cat([torch.tensor([20]), once, once])  # a beginning, and a random text twice
        word, place = torch.eye(21)[text], torch.eye(41)
        hidden = torch.full((41, 41), -torch.inf).triu(1)
        before = torch.softmax(50 * place.roll(-1, dims=1) @ place.T + hidden, dim=-1) @ word
        follower = torch.softmax(50 * word @ before.T + hidden, dim=-1) @ word
        alone = torch.softmax(50 * word @ word.T + hidden, dim=-1) @ word
        assert torch.equal(follower.argmax(dim=-1)[21:-1], text[22:])
        assert torch.equal(alone.argmax(dim=-1)[21:-1], text[21:-1]), "without layer 1 it repeats the word itself"


def test_four_heads_learn_the_grammar_and_three_of_five_single_heads_do_not(values: dict[str, Any]) -> None:
    single, several = ([[500 * (1 - share) for share in one.values()] for one in values["results"][n]] for n in "14")
    assert round(sum(map(sum, several))) == 1
    assert round(sum(single[1])) == 2
    says = [result["says"] for result in values["results"]["1"]]
    assert sum(share < 0.75 for share in says) == 3
    assert says[0] == pytest.approx(values["always_s"], abs=0.005), "what one gets by always adding an s"
    assert len(set(values["parameters_of_readers"].values())) == 1


def test_heads_look_where_the_lesson_says(values: dict[str, Any]) -> None:
    weights = torch.tensor(values["weights"])
    the, aunt, before, boys, says, she, sees = 0, 1, 3, 4, 5, 6, 7
    for head, word, seen in (
        (0, boys, aunt),
        (0, says, aunt),
        (0, she, aunt),
        (1, sees, boys),
        (1, boys, the),
        (3, boys, before),
        (2, she, aunt),
    ):
        assert weights[head, word].argmax() == seen
        assert weights[head, word, seen] > (0.75 if head == 2 else 0.85)
    assert values["mirrored"] < 0.05, "head 1 does not find a subject that is many"


def test_heads_1_and_2_are_needed_and_heads_2_and_4_only_for_their_mean(values: dict[str, Any]) -> None:
    one, two, three, four = values["ablated"]
    assert two["them"] == pytest.approx(1 / 3, abs=0.05), "guessing among three"
    assert min(three.values()) > 0.985
    assert max(two["says"], four["says"]) < one["says"] < 0.9
    assert values["joint"]["she"] == pytest.approx(one["she"], abs=0.02), "head 3 is no reserve for head 1"
    assert values["joint"]["says"] < one["says"]
    first, second, _, fourth = values["restored"]
    assert first < 0.75 < 0.99 < min(second, fourth, values["pair"])


def test_silent_mistakes_show_as_told(values: dict[str, Any]) -> None:
    everybody, last = list(range(1, 10)), [7, 8, 9]
    assert values["noticed"] == [last, everybody, everybody, everybody, last, [1, 2, 3]]
    right, once, twice = torch.tensor(values["influence"])
    assert torch.equal(right, causal_mask(9))
    assert once.triu(1).any(), "early outputs notice late words"
    assert torch.equal(twice, torch.block_diag(*[torch.ones(3, 3)] * 3).bool() & causal_mask(9))
    assert values["exchanged"] == pytest.approx(0.2, abs=0.02)
    assert values["flattened"] > 0.2


# ------------------------------------------------------------------------------ symptoms that the tables name


def test_twin_heads_stay_twins() -> None:
    torch.manual_seed(0)
    layer = MultiHeadAttention(8, 2)
    parts = [p for one in (layer.q_proj, layer.k_proj, layer.v_proj) for p in one.parameters()]
    for rows in (*(p.data for p in parts), layer.o_proj.weight.data.T):  # of o_proj, heads have columns
        rows[4:] = rows[:4]
    layer(torch.randn(2, 5, 8)).square().sum().backward()
    for grad in (*(p.grad for p in parts), layer.o_proj.weight.grad.T):  # type: ignore[union-attr]
        torch.testing.assert_close(grad[4:], grad[:4])  # type: ignore[index]
    assert layer.q_proj.weight.grad.abs().max() > 1e-3  # type: ignore[union-attr]


def test_mask_without_a_place_for_heads_is_silent_only_if_batch_equals_heads_or_one() -> None:
    generator = torch.Generator().manual_seed(0)
    heads = torch.randn(3, 3, 5, 4, generator=generator)  # (B, H, T, Dh) with B = H
    mask = (torch.rand(3, 5, 5, generator=generator) < 0.5) | torch.eye(5, dtype=torch.bool)
    wrong = F.scaled_dot_product_attention(heads, heads, heads, attn_mask=mask)
    right = F.scaled_dot_product_attention(heads, heads, heads, attn_mask=mask[:, None])
    second_on_second = F.scaled_dot_product_attention(heads[0, 1], heads[0, 1], heads[0, 1], attn_mask=mask[1])
    torch.testing.assert_close(wrong[0, 1], second_on_second)
    assert (wrong - right).abs().max() > 0.1
    with pytest.raises(RuntimeError):
        F.scaled_dot_product_attention(heads[:2], heads[:2], heads[:2], attn_mask=mask[:2])


def test_without_output_projection_the_first_columns_know_head_1_only() -> None:
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(12, 3), torch.randn(2, 5, 12)
    layer.o_proj = nn.Identity()  # type: ignore[assignment]
    before = layer(x)
    with torch.no_grad():
        for projection in (layer.q_proj, layer.k_proj, layer.v_proj):
            projection.weight[4:] += 1.0
    torch.testing.assert_close(layer(x)[..., :4], before[..., :4])


def test_heads_of_the_published_model_are_the_largest_of_their_measures() -> None:
    heads = recorded_sentence_vectors()["heads"]
    means = torch.tensor(heads["means"])  # (L, H, measures)
    for name, shown in heads["shown"].items():
        measure = means[..., heads["measures"].index(name)]
        assert measure[shown["layer"] - 1, shown["head"] - 1] == measure.max()
    assert means[..., heads["measures"].index("[SEP]")].max() < 0.5, "no head parks on the separator"
