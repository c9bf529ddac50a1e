"""The lesson of chapter 04 runs, shows figures that everybody can read, and states no number that is not true."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tfcourse.attention import causal_mask
from tfcourse.data import recorded_sentence_vectors
from tfcourse.lessons.explorers.heads import record_heads
from tfcourse.multihead import MultiHeadAttention, attention_parameters, head_ablation, split_heads

from .form import LessonForm
from .lesson import Lesson

# What the finished kernel is asked for: a name, and the expression that the lesson's own variables answer.
ASKED = {
    "report": "report",
    "control": "control",
    "wider": "wider",
    "written": "written.tolist()",
    "one_by_one": "largest_difference",
    "split": "[right.tolist(), wrong.tolist()]",
    "shares_memory": "right.data_ptr() == numbers.data_ptr()",
    "strides": "[numbers.stride(), right.stride()]",
    "flops": "[one_wide.flops, 8 * one_narrow.flops]",
    "crossed": "[list(crossed.shape), moved]",
    "masks": "[agreement, bool(as_it_is[0, -1].isnan().all()), bool(inverted.isfinite().all())]",
    "without_weights": "theirs(x, x, x, attn_mask=causal_mask(T), need_weights=False)[0][:, -1].isfinite().all().item()",
    "merged": "[list(Z.shape), difference, ranks]",
    "bias_gradients": "{n: getattr(biased, n).bias.grad.abs().max().item() for n in ('q_proj', 'k_proj', 'v_proj', 'o_proj')}",
    "hops": "[hop.weights[0, 0].tolist() for hop in hops]",
    "sums": "[stream[0, 8].view(5,9)[3], trail[1](trail[0](torch.cat([address, address[points_to], empty], 1)[None]))[0, 8].view(5, 9)[3]]",
    "ring": "{f'{n_layers} {n_heads}': errors for (n_layers, n_heads), errors in ring_errors.items()}",
    "results": "results",
    "parameters_of_readers": "[sum(p.numel() for p in readers[n][0].parameters()) for n in (1, 4)]",
    "always_s": "(exam != vocabulary.index('they')).all(dim=1).double().mean().item()",
    "weights": "weights.tolist()",
    "mirrored": "looks.tolist()",
    "ablated": "ablated",
    "restored": "restored",
    "pair": "pair",
    "joint": "joint",
    "induction": "[first.tolist(), second.tolist(), [[kinds[f[t].argmax()] for t in (6, 7)] for f in (follower, alone)]]",
    "unexplained": "left",
    "shuffled": "[words_moved, heads_moved]",
    "noticed": "{' | '.join(key): value for key, value in noticed.items()}",
    "influence": "influence",
    "exchanged": "apart",
    "flat": "[weights[1, 7, 4].item(), flat[1, 7, 4].item()]",
}
# Numbers of the prose that come from the papers it cites or are worked out in the sentence itself.
GIVEN = {
    "24.9 BLEU with one head, 25.8 with eight, 25.4 with thirty-two",
    "38 of 48 encoder heads for 0.15 BLEU",
    r"1 - \tfrac13 \approx 0.67",
}


LESSON = Lesson("04_multi_head", ASKED, GIVEN)
SOURCE, PROSE, check = LESSON.source, LESSON.prose, LESSON.check


# ---------------------------------------------------------------------------------------------- the page


class TestForm(LessonForm):
    """The lesson has the form of all lessons."""


def test_explorers_show_the_trail_and_the_reader(pages: list[str]) -> None:
    explorers = [page for page in pages if page.startswith("<head-explorer")]
    data = [json.loads(re.search(r"<script[^>]*>(.*?)</script>", page)[1]) for page in explorers]  # type: ignore[index]
    assert [(len(one["weights"]), len(one["weights"][0])) for one in data] == [(3, 1), (2, 1), (1, 4), (1, 3)]
    ours = "the aunt near the boys says she sees them"
    assert [" ".join(one["keys"]) for one in data] == [
        ours,
        "yes , the aunt says : the aunt",
        ours,
        f"[CLS] {ours} . [SEP]",
    ]


# ------------------------------------------------------------------------------------------- its numbers


@pytest.mark.parametrize(("a", "b"), [(1.0, 0.0), (0.5, 0.5), (0.75, 0.25), (0.3, 0.9)])
def test_one_average_loses_half_whatever_its_weights(a: float, b: float) -> None:
    n = 5
    eye = torch.eye(n, dtype=torch.float64)
    blend = torch.cat([a * eye, b * eye])  # (2n, n): what one head makes of the pair
    best = torch.linalg.lstsq(blend, torch.eye(2 * n, dtype=torch.float64)).solution  # the best M
    torch.testing.assert_close((blend @ best - torch.eye(2 * n)).square().sum().item(), float(n))
    formula = torch.cat([a * eye, b * eye], dim=1) / (a * a + b * b)
    torch.testing.assert_close(best, formula)


def test_one_head_fails_and_two_succeed(values: dict[str, Any]) -> None:
    report = {int(heads): error for heads, error in values["report"].items()}
    check("One head ends at 0.50, where", report[1])
    check("the same head makes an error of 0.001.", values["control"], form=".3f")
    assert all(report[heads] < 0.002 for heads in (2, 4, 8))
    assert values["wider"] < 0.005 < report[32], "32 heads fail only where each has a single column"
    check("its error is 0.001.", values["wider"], form=".3f")
    assert f"{report[16]:.2f} for sixteen and {report[32]:.2f} for thirty-two" in SOURCE


def test_two_heads_by_hand_return_the_numbers_of_both_nouns(values: dict[str, Any]) -> None:
    says = torch.tensor(values["written"])[2]
    torch.testing.assert_close(says, torch.tensor([-1.0, 1.0, 0.0, 0.0]), atol=1e-4, rtol=0)
    key_of_both = torch.softmax(torch.tensor([20.0, 20.0, 0.0]) / 2**0.5, dim=0)  # one head that both nouns answer
    assert abs(key_of_both @ torch.tensor([-1.0, 1.0, 0.0])) < 1e-4


def test_narrowest_head_can_point_at_two_of_nine_keys_only() -> None:
    keys = torch.randn(9, 1, generator=torch.Generator().manual_seed(0))
    favourites = {int((query * keys).argmax()) for query in torch.linspace(-3, 3, 50)}
    assert favourites == {int(keys.argmin()), int(keys.argmax())}


def test_heads_cut_out_one_by_one_equal_the_layer(values: dict[str, Any]) -> None:
    assert values["one_by_one"] < 1e-14


def test_plain_reshape_mixes_words(values: dict[str, Any]) -> None:
    right, wrong = values["split"]
    assert right[0] == [[[10, 11], [20, 21], [30, 31]], [[12, 13], [22, 23], [32, 33]]]
    assert wrong[0][0] == [[10, 11], [12, 13], [20, 21]]
    assert values["shares_memory"]
    assert values["strides"] == [[12, 4, 1], [12, 2, 4, 1]]
    check("The next head is 2 numbers away, the next word 4.")


def test_heads_cost_what_one_wide_head_costs(values: dict[str, Any]) -> None:
    check("Both take the same 536,870,912 operations.", *values["flops"], form=",")


def test_self_cross_and_causal_behave_as_told(values: dict[str, Any], cells: list[Any]) -> None:
    shape, moved = values["crossed"]
    assert shape == [1, 10, 12]
    assert moved < 1e-14
    printed = "".join(output.get("text", "") for cell in cells for output in cell.outputs)
    assert "self:   words 1 to 5 notice a change of words 6 to 9: True" in printed
    assert "causal: words 1 to 5 notice a change of words 6 to 9: False" in printed


def test_pytorch_agrees_under_the_inverted_mask_only(values: dict[str, Any]) -> None:
    agreement, last_is_nan, inverted_is_finite = values["masks"]
    assert agreement < 1e-14
    assert last_is_nan
    assert inverted_is_finite
    assert values["without_weights"], "the lesson says that this path returns finite numbers"


def test_parameter_counts_are_those_of_the_papers() -> None:
    base = attention_parameters(512, 8, 64, 64, 512)
    check("a layer has 1,048,576 parameters.", base.query_key + base.value_output, form=",")
    largest = attention_parameters(12288, 96, 128, 128, 12288)
    assert base.merged_value_output == 4 * base.value_output == 4 * 2 * 512**2
    assert largest.merged_value_output == 48 * largest.value_output
    check("4 times here and 48 times in GPT-3.")
    assert sum(p.numel() for p in MultiHeadAttention(512, 8, bias=False).parameters()) == 4 * 512**2
    for heads, millions in ((1, "0.26"), (32, "8.4")):
        merged = attention_parameters(512, heads, 512 // heads, 512 // heads, 512).merged_value_output
        assert f"{merged / 1e6:.2g}" == millions
        assert f"{millions} million" in SOURCE or f'{millions} "' in SOURCE
    assert f"{base.value_output / 1e6:.2f} million" in SOURCE


def test_merging_values_and_output_changes_nothing_and_needs_rank(values: dict[str, Any]) -> None:
    shape, difference, ranks = values["merged"]
    assert shape == [36, 12]
    assert difference < 1e-14
    assert ranks == [4, 4, 4]
    check("it has rank at most $D_h$, here 4 of 12")


def test_key_bias_never_learns_and_value_bias_is_a_constant(values: dict[str, Any]) -> None:
    sizes = values["bias_gradients"]
    assert sizes["k_proj"] < 1e-12
    assert min(sizes["q_proj"], sizes["v_proj"], sizes["o_proj"]) > 0.1
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(12, 3).double(), torch.randn(2, 9, 12, dtype=torch.float64)
    before = layer(x, mask=causal_mask(9))
    with torch.no_grad():
        shift = torch.randn(12, dtype=torch.float64)
        layer.v_proj.bias += shift
        constant = shift @ layer.o_proj.weight.T
    torch.testing.assert_close(layer(x, mask=causal_mask(9)), before + constant)


def test_trail_leads_from_them_to_aunt(values: dict[str, Any]) -> None:
    reached = [max(range(9), key=hop[8].__getitem__) for hop in values["hops"]]
    assert reached == [7, 6, 1]
    assert all(max(row) > 0.999 for hop in values["hops"] for row in hop)


def test_one_layer_takes_one_step_and_two_take_three(values: dict[str, Any]) -> None:
    for name in ("1 1", "1 8"):
        one, two, three = values["ring"][name]
        assert one < 0.02
        assert two == pytest.approx(2 / 3, abs=0.06)
        assert three == pytest.approx(2 / 3, abs=0.06)
    assert max(values["ring"]["2 1"]) < 0.02


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


def test_second_head_in_layer_1_lets_two_layers_reach_four_steps() -> None:
    address, pointer, content, successor = _ring(12)
    fetched = _exact_lookup(pointer, address, torch.cat([pointer, content], dim=1))  # head 1: of the successor
    predecessor = _exact_lookup(address, pointer, address)  # head 2: who points to me?
    four_down = content[successor[successor[successor[successor]]]]
    torch.testing.assert_close(_exact_lookup(fetched[:, :12], predecessor, fetched[:, 12:]), four_down)
    assert (_exact_lookup(fetched[:, :12], address, fetched[:, 12:]) - four_down).abs().max() > 0.1  # without head 2


def test_blocks_are_lost_where_a_layer_replaces_its_input(values: dict[str, Any]) -> None:
    added, replaced = values["sums"]
    assert max(range(9), key=added.__getitem__) == 1, "the aunt"
    assert max(map(abs, replaced)) < 1e-6, "the addresses by which layer 2 would find anything are gone"


def test_induction_head_by_hand_copies_what_followed(values: dict[str, Any]) -> None:
    first, second, (predicted, without) = values["induction"]
    assert [max(range(8), key=row.__getitem__) for row in first[1:]] == list(range(7))
    assert [max(range(8), key=second[t].__getitem__) for t in (6, 7)] == [3, 4]
    assert predicted == ["aunt", "says"]
    assert without == ["the", "aunt"]


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
    shares = [share for result in values["results"]["4"] for share in result.values()]
    assert round(sum(500 * (1 - share) for share in shares)) == 1
    check("the five models together make one mistake in 10,000 forms.", 500 * len(shares), form=",")
    first, second, *others = values["results"]["1"]
    assert sum(result["says"] < 0.75 for result in values["results"]["1"]) == 3
    assert round(sum(500 * (1 - share) for share in second.values())) == 2
    check("the model from seed 4 makes two mistakes in 2,000 forms, with one head.", 500 * len(second), form=",")
    assert max(first["says"], others[0]["says"]) < 0.75
    check("three of five are stuck, above all at says: 0.63 is what one gets by always adding an s.", first["says"])
    assert f"{values['always_s']:.2f}" == f"{first['says']:.2f}"
    alone, together = values["parameters_of_readers"]
    assert alone == together


def test_heads_look_where_the_lesson_says(values: dict[str, Any]) -> None:
    weights = torch.tensor(values["weights"])
    looks = weights.argmax(dim=-1)
    the, aunt, before, boys, says, she, sees = 0, 1, 3, 4, 5, 6, 7
    assert looks[0, [boys, says, she]].tolist() == [aunt] * 3
    assert looks[1, [sees, boys]].tolist() == [boys, the]
    assert looks[3, boys] == before
    assert looks[2, she] == aunt
    assert weights[[0, 0, 0, 1, 1, 3], [boys, says, she, sees, boys, boys]].amax(dim=-1).min() > 0.85
    check("although it looked at aunt with a weight of 0.79", weights[2, she, aunt].item())


def test_head_1_looks_for_a_subject_that_is_one(values: dict[str, Any]) -> None:
    check("From boy, head 1 gives aunts a weight of 0.02.", values["mirrored"][1])


def test_ablation_gives_the_numbers_of_the_text(values: dict[str, Any]) -> None:
    one, two, three, four = values["ablated"]
    check("Without head 1, she falls to 0.67;", one["she"])
    check("without head 2, them falls to 0.34,", two["them"])
    check("no form falls below 0.99 without head 3", min(three.values()))
    check("The prediction for says fails. It suffers without head 1 (0.71),", one["says"])
    check("even more without heads 2 and 4 (0.57 and 0.68),", two["says"], four["says"])
    check("She stays at 0.67, so head 3 is no reserve for it.", values["joint"]["she"])
    assert values["joint"]["she"] == pytest.approx(one["she"], abs=0.02)
    assert values["unexplained"] < 1e-12


def test_averages_stand_in_for_heads_2_and_4_but_not_for_head_1(values: dict[str, Any]) -> None:
    restored = values["restored"]
    check("and says is back at 1.00.", restored[1], restored[3])
    assert values["pair"] > 0.99, "with both replaced at once"
    check("with its mean instead of its look, 0.65 remain.", restored[0])


def test_words_and_heads_may_be_shuffled(values: dict[str, Any]) -> None:
    assert max(values["shuffled"]) < 1e-14


def test_silent_mistakes_show_as_told(values: dict[str, Any]) -> None:
    everybody, noticed = list(range(1, 10)), values["noticed"]
    assert noticed["right | words 7 to 9"] == [7, 8, 9]
    assert noticed["right | word 1"] == everybody
    assert noticed["reshape in the split | words 7 to 9"] == everybody
    assert noticed["reshape in both places | words 7 to 9"] == [7, 8, 9]
    assert noticed["reshape in both places | word 1"] == [1, 2, 3]
    once, twice = (torch.tensor(values["influence"][version][1]) for version in (1, 2))
    blocks = torch.block_diag(*[torch.ones(3, 3)] * 3).bool()
    assert torch.equal(torch.tensor(values["influence"][0][1]), causal_mask(9))
    assert once.triu(1).any(), "early outputs notice late words"
    assert torch.equal(twice, blocks & causal_mask(9))
    assert values["exchanged"] == pytest.approx(0.2, abs=0.02)
    check("loads without an error and is wrong by a fifth.")
    right, flat = values["flat"]
    assert right > flat + 0.2


# ------------------------------------------------------------------------------ symptoms that the tables name


def test_twin_heads_stay_twins() -> None:
    torch.manual_seed(0)
    layer = MultiHeadAttention(8, 2)
    with torch.no_grad():
        for projection in (layer.q_proj, layer.k_proj, layer.v_proj):
            projection.weight[4:] = projection.weight[:4]
            projection.bias[4:] = projection.bias[:4]
        layer.o_proj.weight[:, 4:] = layer.o_proj.weight[:, :4]
    layer(torch.randn(2, 5, 8)).square().sum().backward()
    for projection in (layer.q_proj, layer.k_proj, layer.v_proj):
        grad = projection.weight.grad
        assert grad is not None
        torch.testing.assert_close(grad[4:], grad[:4])
        assert grad.abs().max() > 1e-3
    output_grad = layer.o_proj.weight.grad
    assert output_grad is not None
    torch.testing.assert_close(output_grad[:, 4:], output_grad[:, :4])


def test_softmax_over_heads_gives_a_single_head_the_sum_of_all_values() -> None:
    q, k, v = torch.randn(3, 2, 1, 5, 4, generator=torch.Generator().manual_seed(0))
    weights = torch.softmax(q @ k.transpose(-2, -1) / 2, dim=1)
    torch.testing.assert_close(weights @ v, v.sum(dim=-2, keepdim=True).expand_as(v))


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


def test_bias_removed_with_each_head_is_missing_as_often_as_there_are_heads() -> None:
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(12, 3), torch.randn(2, 5, 12)
    with torch.no_grad(), record_heads([layer]) as records:
        output = layer(x)
        assert records[0] is not None
        missing = head_ablation(records[0].outputs, layer.o_proj.weight, layer.o_proj.bias) - layer.o_proj.bias
        surplus = (output - missing).sum(dim=0) + layer.o_proj.bias - output
    torch.testing.assert_close(surplus, (3 * layer.o_proj.bias).expand_as(surplus))


def test_without_output_projection_the_first_columns_know_head_1_only() -> None:
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(12, 3), torch.randn(2, 5, 12)
    layer.o_proj = nn.Identity()  # type: ignore[assignment]
    before = layer(x)
    with torch.no_grad():
        for projection in (layer.q_proj, layer.k_proj, layer.v_proj):
            projection.weight[4:] += 1.0
    torch.testing.assert_close(layer(x)[..., :4], before[..., :4])


def test_heads_left_behind_the_positions_never_let_words_meet() -> None:
    x = torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(0))
    other = x.clone()
    other[:, 0] += 1.0
    left = [split_heads(one, 3).transpose(1, 2) for one in (x, other)]  # (B, T, H, Dh)
    before, after = (F.scaled_dot_product_attention(one, one, one) for one in left)
    torch.testing.assert_close(after[:, 1:], before[:, 1:])


def test_real_heads_are_the_largest_of_their_measures_and_the_numbers_are_those_of_the_record() -> None:
    heads = recorded_sentence_vectors()["heads"]
    means = torch.tensor(heads["means"])  # (L, H, measures)
    of = {name: means[..., number] for number, name in enumerate(heads["measures"])}
    assert f"three of the {of['previous'].numel()} heads" in PROSE
    assert f"Over {heads['texts']} other sentences" in PROSE
    for name, phrase in (
        ("previous", "the token before (layer 1, head 3)"),
        ("[CLS]", "every text begins (layer 3, head 10)"),
        ("entropy", "entropy of the weights (layer 1, head 4)"),
    ):
        shown = heads["shown"][name]
        assert phrase in PROSE
        assert phrase.endswith(f"(layer {shown['layer']}, head {shown['head']})")
        assert of[name][shown["layer"] - 1, shown["head"] - 1] == of[name].max()
    check("its mean weight is 1.00.", of["previous"].max().item())
    check("The second parks 0.89 of its weight on `[CLS]`,", of["[CLS]"].max().item())
    assert f"and {int((of['[CLS]'] > 0.5).sum())} of the 72 heads park more than half there" in PROSE
    check("0.18 is the largest mean weight on `[SEP]`.", of["[SEP]"].max().item())
    check("The third has 0.88 of the largest possible entropy.", of["entropy"].max().item())
