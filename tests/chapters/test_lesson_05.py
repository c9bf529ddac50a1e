"""The lesson of chapter 05 runs, shows figures that everybody can read, and states no number that is not true."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections import Counter
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfcourse.data import number_pairs, number_to_words, recorded_translation, tokenize
from tfcourse.layers import EncoderLayer, FeedForward, gelu, layer_norm, residual_post_norm, residual_pre_norm
from tfcourse.lessons.explorers.alignments import count_crossings
from tfcourse.lessons.figures.scenes import ch05_transformer as drawings
from tfcourse.positions import sinusoidal_positions
from tfcourse.training import cross_entropy, noam_learning_rate
from tfcourse.transformer import Transformer

from .form import LessonForm
from .lesson import Lesson

# What the finished kernel is asked for: a name, and the expression that the lesson's own variables answer.
ASKED = {
    "V": "V",
    "apart": "apart",
    "toy": "[[P[m] @ P[m + 1] for m in range(3)] for P in [sinusoidal_positions(4, 4).double()]][0]",
    "turned": "turned",
    "noticed": "noticed",
    "lowest": "[lowest.values.item(), grid[lowest.indices].item(), furthest]",
    "noticing": "noticing",
    "weights": "weights",
    "arriving": "{str(add): sizes for add, sizes in arriving.items()}",
    "first_gradients": "first_gradients",
    "gradients": "{name: sizes.tolist() for name, sizes in gradients.items()}",
    "agreement": "agreement",
    "affected": "affected",
    "components": "components",
    "everything": "[everything, untied_total]",
    "same": "same",
    "floor": "floor",
    "race": "race",
    "finish": "finish",
    "frequencies_only": "frequencies_only",
    "found": "found",
    "marks": "marks",
    "translations": "{f'{n} | {t}': translate(translators[n], [t])[0] for n in translators for t in ('three hundred and two', "
    "'two hundred and three', 'twenty-three thousand, four hundred and fifty-six')}",
    "sure": "{name: values.mean().item() for name, values in sure.items()}",
    "right": "{name: (translators[name](source, shift_right(target), source_mask).argmax(dim=-1) == target)[real].double().mean().item() "
    "for name in sure}",
    "above": "(sure['not smoothed'] > 0.98).double().mean().item()",
    "surprise": "surprise",
    "mistaken": "mistaken",
    "averages": "averages",
    "added": "added",
    "looks": "looks.tolist()",
    "reads": "reads",
    "asked": "vocabulary.pieces(tokens_of('forty-five thousand, two hundred and twenty-three')[0])",
    "generous": "[honest, generous, free_points]",
    "untied": "untied_losses",
    "cheated": "[cheated, translate(unshifted, ['two hundred and three'])[0]]",
    "masked": "[masked_apart, unmasked_apart]",
}
# Numbers of the prose that come from the papers it cites or are worked out in the sentence itself.
GIVEN = {
    r"Adam, with $\beta_2 = 0.98$",
    "with probability 0.1 (in the base model), and the others are divided by 0.9",
    "Suppose $f'$ is small, 0.1 in one layer and −0.1 in the next. After 24 layers the first leaves $10^{-24}$,",
    "with 0.5 in every layer",
    "the paper takes 0.6 for its exponent, and a beam of 4",
    "a vocabulary of about 37,000 tokens",
    "4000 numbers up to 99,999",
    "larger model reached 28.4 BLEU from English into German after 3.5 days on eight GPUs",
    "Apply dropout with $p = 0.1$ to a million ones.",
}


LESSON = Lesson("05_transformer", ASKED, GIVEN, beside=r"\| [\w ]+ \|(?: \d\.\d \|){4}")
SOURCE, PROSE, check = LESSON.source, LESSON.prose, LESSON.check


# ---------------------------------------------------------------------------------------------- the page


class TestForm(LessonForm):
    """The lesson has the form of all lessons."""


def test_drawn_tokens_are_those_of_the_vocabulary() -> None:
    assert tokenize("twenty-three") == [token for token in drawings.SOURCE if "(" not in token]
    assert tokenize("dreiundzwanzig") == [token for token in drawings.SAYS if "(" not in token]


def test_explorers_show_a_layer_positions_and_the_translator(pages: list[str]) -> None:
    found = {}
    for page in pages:
        if element := re.match(r"<((?:block|position|head)-explorer)\b", page):
            found[element[1]] = json.loads(re.search(r"<script[^>]*>(.*?)</script>", page)[1])  # type: ignore[index]
    assert list(found) == ["block-explorer", "position-explorer", "head-explorer"]
    assert found["block-explorer"]["sizes"] == {"B": 2, "T": 9, "S": 7, "D": 512, "H": 8, "F": 2048}
    encodings = found["position-explorer"]["encodings"]
    assert [encoding["name"] for encoding in encodings] == ["Sinusoids", "Drawn at random"]
    assert found["head-explorer"]["keys"][-1] == "(end)"


# ------------------------------------------------------------------------------------------- its numbers


def test_without_positions_a_word_has_one_vector_in_both_numbers(values: dict[str, Any]) -> None:
    assert values["apart"]["no positions"] < 1e-13
    assert values["apart"]["sinusoids"] > 0.1


def test_dot_products_of_neighbours_are_those_of_the_text(values: dict[str, Any]) -> None:
    total = math.cos(1) + math.cos(0.01)
    check(r"\cos 1 + \cos 0.01 \approx 0.540 + 1.000 = 1.540", math.cos(1), math.cos(0.01), total, form=".3f")
    check(r"hands with $\omega_0 = 1$ and $\omega_1 = 0.01$:", 10_000 ** (-2 / 4))
    check(r"The first hand turns once in $2\pi \approx 6.3$ positions;", 2 * math.pi, form=".1f")
    assert values["toy"] == pytest.approx([total] * 3, abs=1e-6)
    assert values["turned"] < 1e-6


@pytest.mark.parametrize("width", [4, 32, 512])
def test_dot_product_of_sinusoids_depends_on_the_distance_alone(width: int) -> None:
    rows = sinusoidal_positions(60, width).double()
    products = rows @ rows.T
    for distance in range(60):
        expected = sum(math.cos(distance * 10_000 ** (-2 * i / width)) for i in range(width // 2))
        torch.testing.assert_close(
            products.diagonal(distance), torch.full((60 - distance,), expected).double(), atol=1e-4, rtol=0
        )
    torch.testing.assert_close(rows.square().mean(), torch.tensor(0.5).double(), atol=1e-6, rtol=0)


def test_layer_norm_by_hand_and_its_neighbours(values: dict[str, Any]) -> None:
    row = torch.tensor([-1.0, 1.0, 1.0, 7.0])
    normalised = layer_norm(row, torch.ones(4), torch.zeros(4))
    torch.testing.assert_close(normalised, torch.tensor([-1, -1 / 3, -1 / 3, 5 / 3]), atol=1e-5, rtol=0)
    assert values["noticed"]["layer norm"] == 0
    assert values["noticed"]["batch norm"] > 0.1


def test_two_orders_of_norm_and_sum_by_hand() -> None:
    row, gain, shift = torch.tensor([-1.0, 1.0, 1.0, 7.0]), torch.ones(4), torch.zeros(4)
    behind = residual_post_norm(row, lambda y: 2 * y, gain, shift)
    before = residual_pre_norm(row, lambda y: 2 * y, gain, shift)
    torch.testing.assert_close(behind, torch.tensor([-1, -1 / 3, -1 / 3, 5 / 3]), atol=1e-4, rtol=0)
    torch.testing.assert_close(before, torch.tensor([-3, 1 / 3, 1 / 3, 31 / 3]), atol=1e-4, rtol=0)


def test_gelu_has_the_values_of_the_text(values: dict[str, Any]) -> None:
    check(r"At $x = 1$ that is $1 \cdot 0.841$;", gelu(torch.tensor(1.0)).item(), form=".3f")
    check(r"at $x = -1$ it is $-1 \cdot 0.159$.", -gelu(torch.tensor(-1.0)).item(), form=".3f")
    lowest, place, furthest = values["lowest"]
    assert (f"{lowest:.2f}", f"{place:.2f}") == ("-0.17", "-0.75")
    assert "to minus 0.17 near minus 0.75" in SOURCE
    assert furthest < 0.0005


def test_feed_forward_is_two_thirds_of_a_layer_and_leaves_neighbours_alone(values: dict[str, Any]) -> None:
    assert values["noticing"] == [2]
    weights = values["weights"]
    check("2,099,712 parameters, two thirds of it.", weights["feed_forward"], form=",")
    assert weights["feed_forward"] / sum(weights.values()) == pytest.approx(2 / 3, abs=0.002)


def test_gradient_vanishes_without_residual_connections(values: dict[str, Any]) -> None:
    replacing, adding = values["arriving"]["False"], values["arriving"]["True"]
    assert all(1 <= size < 10 for size in adding)
    assert replacing == sorted(replacing, reverse=True)
    assert replacing[-1] < 1e-12
    check(r"the second leaves $(1.1 \cdot 0.9)^{12} \approx 0.89$,", (1.1 * 0.9) ** 12, form=".2f")
    check(r"the second grows to $1.5^{24} \approx 16{,}834$.")
    assert round(1.5**24) == 16834


def test_first_gradients_grow_towards_the_output_with_post_norm_only(values: dict[str, Any]) -> None:
    post, pre = values["first_gradients"]["post-norm"], values["first_gradients"]["pre-norm"]
    assert post == sorted(post), "they grow towards the output"
    ratios = {name: [row[-1] / row[0] for row in rows] for name, rows in values["gradients"].items()}
    check(
        "the last layer's is between 2.9 and 10.3 times the first one's.",
        *(f(ratios["post-norm"]) for f in (min, max)),
        form=".1f",
    )
    assert max(ratios["pre-norm"]) < 1, "with pre-norm it is the other way round from every seed"
    assert max(pre) < 1.6 * min(pre)


def test_pytorch_agrees_with_the_encoder_layer(values: dict[str, Any]) -> None:
    assert max(values["agreement"].values()) < 1e-13


def test_decoder_layer_keeps_its_promises(values: dict[str, Any]) -> None:
    assert values["affected"] == {
        "target positions 4, 5": [4, 5],
        "padding of the source": [],
        "source position 0": [0, 1, 2, 3, 4, 5],
    }


def test_parameters_of_the_base_model_are_counted_as_told(values: dict[str, Any]) -> None:
    components, (everything, untied) = values["components"], values["everything"]
    D, F_, V = 512, 2048, 37_000
    attention, feed_forward = 4 * (D * D + D), 2 * D * F_ + F_ + D
    assert components == {
        "embedding": V * D,
        "attention": 18 * attention,
        "feed-forward": 12 * feed_forward,
        "layer norm": 30 * 2 * D,
    }
    check("The count says 63,082,496 in all,", everything, form=",")
    check("44.0 million for the layers.", 168 * 512**2 / 1e6, form=".1f")
    check(
        "44.1 million of them for the layers, biases and norms included.",
        (everything - components["embedding"]) / 1e6,
        form=".1f",
    )
    check("it would be 101.0 million.", untied / 1e6, form=".1f")
    check("The norms, 0.03 million, are too thin", components["layer norm"] / 1e6)
    for stack, name in (("encoder", "6.3"), ("decoder", "12.6")):
        assert f"{(6 if stack == 'encoder' else 12) * attention / 1e6:.1f}" == name
    assert f"{6 * feed_forward / 1e6:.1f}" == "12.6"
    assert components["feed-forward"] > components["embedding"] > components["attention"]


def test_dropout_is_on_in_training_and_off_afterwards(values: dict[str, Any]) -> None:
    assert values["same"] == {"train": False, "eval": True}


def test_smoothing_has_the_targets_and_the_floor_of_the_text(values: dict[str, Any]) -> None:
    V = values["V"]
    assert V == 113
    check(r"$\log V$, here $\log 113 \approx 4.73$.", math.log(V))
    check("At a loss of 0.1 the right token gets about 90%.", 100 * math.exp(-0.1), form=".0f")
    right, other = 0.9 + 0.1 / V, 0.1 / V
    check(r"$0.9 + 0.1/113 \approx 0.901$, any other $0.1/113 \approx 0.0009$.", right, form=".3f")
    assert f"{other:.4f}" == "0.0009"
    check(r"With $\varepsilon = 0.1$ and $V = 113$")
    check("A smoothed loss stops near 0.8,", values["floor"], form=".1f")
    assert values["floor"] == pytest.approx(-right * math.log(right) - (V - 1) * other * math.log(other))


def test_schedule_peaks_where_the_text_says() -> None:
    check(r"for $D = 512$ and $w = 4000$ that is 0.0007.", noam_learning_rate(4000, 512), form=".4f")
    assert noam_learning_rate(4000, 512) / noam_learning_rate(1, 512) == pytest.approx(4000)
    for width, warmup, peak in ((512, 4000, "0.70"), (512, 8000, "0.49"), (256, 4000, "0.99")):
        assert f"{1000 * noam_learning_rate(warmup, width, warmup):.2f}" == peak
        assert peak in SOURCE


def test_bold_start_fails_with_post_norm_only(values: dict[str, Any]) -> None:
    bold, warm, pre = (
        values["finish"][name] for name in ("post-norm, at once", "post-norm, warmed up", "pre-norm, at once")
    )
    check("| post-norm, no warm-up | 2.96 |", bold)
    check("| post-norm, warmed up | 1.93 |", warm)
    check("| pre-norm, no warm-up | 1.71 |", pre)
    check("knows only how frequent each token is | 3.11 |", values["frequencies_only"])
    losses = values["race"]["post-norm, at once"]
    near = [abs(sum(losses[s - 10 : s]) / 10 - values["frequencies_only"]) < 0.3 for s in range(20, 91)]
    assert sum(near) / len(near) > 0.8, "for most of the race it knows no more than frequencies"


def _interval(differences: list[float]) -> tuple[float, float, float]:
    """The mean of five paired differences and its 95% interval."""
    mean, spread = statistics.mean(differences), 2.776 * statistics.stdev(differences) / 5**0.5
    return mean, mean - spread, mean + spread


def test_five_seeds_show_the_gain_of_the_warm_up_and_cannot_rank_warmed_post_norm_and_pre_norm() -> None:
    file = LESSON.path.parents[2] / "experiments" / "results" / "warm_up.json"
    bold, warm, pre = json.loads(file.read_text("utf-8"))["finish"].values()
    gain = _interval([b - w for b, w in zip(bold, warm, strict=True)])
    check("the warm-up lowers the loss of post-norm by 1.04, with a 95% interval from 0.55 to 1.53.", *gain)
    lead = _interval([w - p for w, p in zip(warm, pre, strict=True)])
    check("by 0.15 on average, but the interval goes from −0.01 to 0.31:", lead[0], -lead[1], lead[2])
    assert lead[1] < 0 < lead[2]


def test_beam_finds_what_greedy_misses(values: dict[str, Any]) -> None:
    greedy, beam = values["found"]["1"], values["found"]["2"]
    assert (greedy[0], beam[0]) == ("ABC", "ACB")
    check(r"$0.5 \cdot 0.4 \cdot 0.4 \cdot 0.6 = 0.048$.", greedy[1], form=".3f")
    check(r"$0.5 \cdot 0.3 \cdot 0.6 \cdot 0.6 = 0.054$.", beam[1], form=".3f")
    check("C at the second step costs a little (0.3 for 0.4) and pays off at the third (0.6 for 0.4):")
    check("the table gives 0.10 to the sentence A and as much to the empty one.", 0.5 * 0.2, form=".2f")
    rows = re.findall(r"^\| ([\w ]+) \|((?: \**\d\.\d\** \|){4})$", SOURCE, flags=re.M)
    assert len(rows) == 6
    for name, row in rows:
        shares = [float(share) for share in re.findall(r"\d\.\d", row)]
        assert sum(shares) == pytest.approx(1)
        check_row = f"| {name} | {' | '.join(format(share, '.1f') for share in shares)} |"
        assert check_row in PROSE


def test_translators_reach_what_the_text_says(values: dict[str, Any]) -> None:
    marks = values["marks"]
    right = (200 * marks[name] for name in ("smoothed", "not smoothed"))
    check("199 of 200 unseen numbers come out right with smoothing, 198 without.", *right, form=".0f")
    check("The model without positions gets 49.5%,", 100 * marks["no positions"], form=".1f")


def test_who_sees_a_bag_of_words_can_know_half_of_the_numbers() -> None:
    exam = number_pairs("en", "de", split="test", count=200, largest=99_999)
    sets = Counter(tuple(sorted(tokenize(number_to_words(number, "en")))) for number in range(100_000))
    sizes = [sets[tuple(sorted(tokenize(pair.source)))] for pair in exam]
    check("only 49 can be told from all others by their bag of words.", sizes.count(1), form="d")
    best = 100 * sum(1 / size for size in sizes) / len(sizes)
    check("is right in 49.5% of the cases on average.", best, form=".1f")
    assert {4, 6} <= set(sizes)


def test_blind_model_gives_302_and_203_one_translation(values: dict[str, Any]) -> None:
    said = values["translations"]
    assert said["smoothed | three hundred and two"] == "dreihundertzwei"
    assert said["smoothed | two hundred and three"] == "zweihundertdrei"
    assert said["no positions | three hundred and two"] == said["no positions | two hundred and three"]
    long = "twenty-three thousand, four hundred and fifty-six"
    right, blind = said[f"smoothed | {long}"], said[f"no positions | {long}"]
    assert right == "dreiundzwanzigtausendvierhundertsechsundfünfzig"
    assert blind != right
    turned = {"##zwanzig": "##fünfzig", "##fünfzig": "##zwanzig"}
    assert tokenize(blind) == [turned.get(token, token) for token in tokenize(right)]


def test_smoothed_model_is_as_sure_as_it_was_asked_to_be(values: dict[str, Any]) -> None:
    sure, surprise = values["sure"], values["surprise"]
    check("| test set: mean confidence | 0.89 | 0.98 |", sure["smoothed"], sure["not smoothed"])
    check("The smoothed model was asked for 0.901,", 0.9 + 0.1 / values["V"], form=".3f")
    check(
        "| test set: loss without smoothing | 0.125 | 0.024 |",
        *(surprise["smoothed"], surprise["not smoothed"]),
        form=".3f",
    )
    assert surprise["smoothed"] > 5 * surprise["not smoothed"]
    assert values["right"]["smoothed"] >= values["right"]["not smoothed"], "it makes no more mistakes"


def test_smoothed_model_doubts_its_mistakes(values: dict[str, Any]) -> None:
    doubting, certain = values["mistaken"]["smoothed"], values["mistaken"]["not smoothed"]
    both = (doubting, certain)
    check("| six digits: mean confidence in wrong tokens | 0.65 | 0.85 |", *(one["confidence"] for one in both))
    check("confidence above 0.9 in wrong tokens | 11% | 58% |", *(100 * o["nearly certain"] for o in both), form=".0f")
    check("| six digits: tokens wrong | 43% | 38% |", *(100 * o["wrong"] / o["tokens"] for o in both), form=".0f")
    check("But a threshold of 0.9 favours it:")


def test_numbering_alone_spoils_a_mean(values: dict[str, Any]) -> None:
    averages = values["averages"]
    assert all(right == values["marks"]["smoothed"] for right, _ in averages.values()), "renumbered, the same function"
    check("it translates 95.5% with other hidden units,", 100 * averages["hidden units"][1], form=".1f")
    check("29.0% with other heads, and nothing with both.", 100 * averages["heads"][1], form=".1f")
    assert averages["both"][1] == 0


def test_sublayers_add_to_the_stream_without_replacing_it(values: dict[str, Any]) -> None:
    assert list(values["added"]) == ["self-attention", "cross-attention", "feed-forward"]
    assert all(0.05 < change < 0.5 for change in values["added"].values()), "the stream has size 1"


def test_decoder_looks_where_the_lesson_says(values: dict[str, Any]) -> None:
    looks, reads, keys = torch.tensor(values["looks"]), values["reads"], [*values["asked"], "(end)"]
    assert " ".join(reads) == "(begin) fünf ##und ##vierzig ##tausend ##zwei ##hundert ##drei ##und ##zwanzig"
    head = looks[1, 0]  # head 1 of layer 2
    seen = [keys[int(row.argmax())] for row in head]
    assert seen[:3] == ["##five", "forty-", "forty-"]
    assert seen[6:9] == ["##three", "twenty-", "twenty-"]
    assert {keys[int(place)] for place in head[0].topk(2).indices} == {"##five", "forty-"}
    assert head[0].topk(2).values.sum() > 0.95
    assert head[2].max() > 0.98, "to forty- alone"
    assert "after und to `forty-` alone;" in PROSE
    assert seen[3] == "thousand,"
    assert seen[-1] == "and"
    last = {keys[int(row.argmax())] for row in looks[1, :, -1]}
    assert not last & {"##three", "twenty-", "(end)"}, "no head knows better"
    agreeing = [
        sum(
            [keys[int(row.argmax())] for row in looks[layer, h, [0, 2, 6, 8]]]
            == ["##five", "forty-", "##three", "twenty-"]
            for h in range(4)
        )
        for layer in (0, 1)
    ]
    assert agreeing == [2, 4], "two heads of layer 1 and all heads of layer 2 do the same there"


def test_silent_mistakes_show_as_told(values: dict[str, Any]) -> None:
    honest, generous, padding = values["generous"]
    assert honest - generous == pytest.approx(1, abs=0.05)
    assert honest > math.log(values["V"]) + 1  # "An untrained one does worse"
    assert padding == pytest.approx(0.25, abs=0.02)
    with_own_matrix, counted = values["untied"]
    assert abs(with_own_matrix - counted) < 0.2, "the cause is the tied matrix"
    assert abs(with_own_matrix - math.log(values["V"])) < 0.3
    cheated, written = values["cheated"]
    assert cheated < 0.01
    assert written == ""
    masked, unmasked = values["masked"]
    assert masked < 1e-12
    check("six blank tokens move the logits by 3.0 unless they are masked;", unmasked, form=".1f")


# ------------------------------------------------------------------------------ symptoms that the tables name


def small(**options: Any) -> Transformer:
    torch.manual_seed(0)
    sizes = {"d_model": 12, "n_heads": 3, "d_ff": 20, "n_layers": 2, "dropout": 0.0}
    return Transformer(11, 11, **(sizes | options)).double()


def test_without_a_bend_the_feed_forward_network_is_one_linear_map() -> None:
    torch.manual_seed(0)
    network = FeedForward(4, 16)
    x = torch.randn(5, 4)
    straight = network.down_proj(network.up_proj(x))
    weight = network.down_proj.weight @ network.up_proj.weight
    bias = network.down_proj.weight @ network.up_proj.bias + network.down_proj.bias
    torch.testing.assert_close(straight, x @ weight.T + bias)
    assert (network(x) - straight).abs().max() > 0.01


def test_logits_of_pre_norm_grow_with_depth_without_the_last_norm() -> None:
    sizes = []
    for depth in (1, 4, 16):
        torch.manual_seed(0)
        x, gain, shift = torch.randn(3, 12), torch.ones(12), torch.zeros(12)
        for _ in range(depth):
            x = residual_pre_norm(x, FeedForward(12, 48), gain, shift)
        sizes.append(x.norm().item())
    assert sizes == sorted(sizes)
    assert sizes[-1] > 1.2 * sizes[0]


def test_norm_over_the_length_tells_the_future() -> None:
    x = torch.randn(1, 5, 12, generator=torch.Generator().manual_seed(0))
    other = x.clone()
    other[:, 4] += 1.0
    over_length = [(y - y.mean(dim=1, keepdim=True)) / y.std(dim=1, keepdim=True) for y in (x, other)]
    assert (over_length[0] - over_length[1])[:, :4].abs().max() > 0.1
    gain, shift = torch.ones(12), torch.zeros(12)
    assert torch.equal(layer_norm(x, gain, shift)[:, :4], layer_norm(other, gain, shift)[:, :4])


def test_variance_by_one_less_is_off_by_a_constant_factor() -> None:
    x = torch.randn(3, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    right = layer_norm(x, torch.ones(8).double(), torch.zeros(8).double(), 0.0)
    wrong = (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True)
    torch.testing.assert_close(right / wrong, torch.full_like(x, math.sqrt(8 / 7)))


def test_forgotten_padding_mask_lets_the_neighbours_length_in() -> None:
    model, source, target = small(), torch.tensor([[4, 5, 2]]), torch.tensor([[1, 6]])
    padded = F.pad(source, (0, 3))
    alone = model(source, target)
    assert (model(padded, target) - alone).abs().max() > 0.01
    torch.testing.assert_close(model(padded, target, padded != 0), alone)


def test_mask_in_the_other_sense_shows_padding_only() -> None:
    torch.manual_seed(0)
    layer, real = EncoderLayer(12, 3, 20), torch.tensor([[True, True, True, False, False]])
    x = torch.randn(1, 5, 12)
    other = x.clone()
    other[:, 1] += 1.0
    inverted = [layer(y, ~real[:, None]) for y in (x, other)]
    changed = (inverted[0] != inverted[1]).any(dim=-1)[0]
    assert changed.tolist() == [False, True, False, False, False], (
        "real tokens are looked at by nobody but their own residual"
    )


def test_gradients_add_up_unless_they_are_cleared() -> None:
    model, source, target = small(), torch.tensor([[4, 5, 2]]), torch.tensor([[6, 7, 2]])
    sizes = []
    for _ in range(2):
        cross_entropy(model(source, torch.tensor([[1, 6, 7]])), target).backward()
        sizes.append(model.embedding.weight.grad.norm().item())
    assert sizes[1] == pytest.approx(2 * sizes[0])


def test_smoothing_over_the_others_only_is_off_in_a_late_digit() -> None:
    generator = torch.Generator().manual_seed(0)
    logits, right = torch.randn(6, 113, generator=generator).double(), torch.arange(6) + 1
    ours = cross_entropy(logits, right, label_smoothing=0.1)
    log_p = logits.log_softmax(-1)
    wanted = torch.full((6, 113), 0.1 / 112).double().scatter(1, right[:, None], 0.9)
    others_only = -(wanted * log_p).sum(-1).mean()
    torch.testing.assert_close(ours, F.cross_entropy(logits, right, label_smoothing=0.1))
    assert 1e-5 < abs(ours - others_only) / ours < 5e-3


def test_products_of_probabilities_vanish_after_a_few_hundred_tokens() -> None:
    assert torch.full((400,), 0.1, dtype=torch.float64).prod() == 0
    assert torch.full((60,), 0.1, dtype=torch.float32).prod() == 0
    assert torch.full((400,), 0.1, dtype=torch.float64).log().sum() < -900


def test_mean_of_two_runs_is_worse_than_either() -> None:
    def trained(seed: int) -> nn.Module:
        torch.manual_seed(seed)
        network = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
        optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
        for _ in range(300):
            loss = error(network)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return network

    x = torch.randn(64, 2, generator=torch.Generator().manual_seed(0))
    y = (x[:, :1] * x[:, 1:]).sign()

    def error(network: nn.Module) -> Tensor:
        return (network(x) - y).square().mean()

    first, second, mean = trained(0), trained(1), trained(0)
    state = {name: (weight + second.state_dict()[name]) / 2 for name, weight in first.state_dict().items()}
    mean.load_state_dict(state)
    assert error(mean) > 2 * max(error(first), error(second))


def test_second_softmax_keeps_the_loss_above_the_bound_of_the_table() -> None:
    V = 113
    perfect = torch.zeros(1, V, dtype=torch.float64)
    perfect[0, 7] = 1.0  # all of the probability on the right token
    check("the loss stops at 3.74 with our vocabulary", cross_entropy(perfect, torch.tensor([7])).item())
    assert cross_entropy(perfect, torch.tensor([7])).item() == pytest.approx(math.log(1 + (V - 1) / math.e))


def test_averaging_step_by_step_gives_the_last_checkpoint_half_of_the_weight() -> None:
    shares = torch.eye(5)
    mean = shares[0]
    for share in shares[1:]:
        mean = (mean + share) / 2
    assert mean[-1] == 0.5
    assert mean[0] < 0.1


def test_two_speeds_in_a_pair_let_the_place_of_the_neighbours_in() -> None:
    place = torch.arange(20, dtype=torch.float64)[:, None]
    speeds = 10_000.0 ** (-torch.arange(8, dtype=torch.float64) / 8)  # one for each column
    columns = torch.arange(8)
    rows = torch.where(columns % 2 == 0, (place * speeds).sin(), (place * speeds).cos())
    neighbours = (rows @ rows.T).diagonal(1)
    assert neighbours.max() - neighbours.min() > 0.1


def test_six_translators_did_what_their_record_says() -> None:
    record = recorded_translation()
    runs = {run["name"]: run for run in record["runs"]}
    check("One task, six translators")
    assert len(runs) == 6
    plain = runs["seq2seq"]
    task, budget = record["task"], record["budget"]
    check("numbers up to twelve digits, 5000 of them to learn from, 1200 steps of 64 pairs for each")
    assert (task["largest"], task["train"], budget["steps"], budget["batch_size"]) == (10**12 - 1, 5000, 1200, 64)
    check("1000 unseen numbers as the test set", task["test"], form="d")
    check("That takes eight minutes")
    assert round(sum(run["seconds"] for run in runs.values()) / 60) == 8
    check("gets 72.0% of the test set", 100 * plain["test"], form=".1f")
    longest = plain["by_length"][-1]
    check("of the longest numbers, 21 tokens and more, only 11%", 100 * longest["exact"], form=".0f")
    assert longest["shortest"] == 21
    assert all(run["test"] > 0.99 for name, run in runs.items() if name != "seq2seq")
    check("when its steps had run out, the plain translator was still climbing.")
    climb = [share for *_, share in plain["exact"]]
    assert climb == sorted(set(climb)), "each evaluation is above the one before"
    assert f"climbs slowly to {100 * climb[-1]:.0f}." in SOURCE
    sizes = [run["parameters"] for run in runs.values()]
    assert max(sizes) < 1.2 * min(sizes), "about as many parameters"


def test_six_translators_looked_where_the_text_says() -> None:
    record = recorded_translation()
    looked = {run["name"]: run["looked"] for run in record["runs"] if run["looked"]}
    check("Here are four unseen numbers, which all of them translated without a mistake.")
    assert len(record["shown"]) == 4
    assert all(one["right"] for shown in looked.values() for one in shown)
    words = {
        **{"ein": "one", "zwei": "two", "drei": "three", "vier": "four", "fünf": "five", "sechs": "six"},
        **{"sieben": "seven", "acht": "eight", "neun": "nine"},
        **{"zwanzig": "twenty", "dreißig": "thirty", "vierzig": "forty", "sechzig": "sixty"},
    }
    little = []
    for place in range(4):
        source, target = looked["dot"][place]["source"], looked["dot"][place]["target"]
        matrices = {
            name: torch.tensor(looked[name][place]["weights"]["attention"])
            for name in ("additive", "dot", "general", "location")
        }
        crossings = {name: count_crossings(matrix[:-1]) for name, matrix in matrices.items()}
        for name in ("additive", "dot", "general"):
            assert crossings[name] >= 2 > crossings["location"], (name, place)
            places = matrices[name].argmax(dim=-1).tolist()
            little += [
                source[at] == "and" for word, at in zip(target, places, strict=True) if word in ("##und", "##hundert")
            ]
        third = torch.tensor(looked["transformer"][place]["weights"]["layer 2, head 3"]).argmax(dim=-1).tolist()
        for word, at in zip(target, third, strict=True):
            if english := words.get(word.strip("#")):
                assert source[at].strip("#-,") == english, (place, word)
    check("from und and hundert they point, three times out of four, to and.")
    assert sum(little) / len(little) == pytest.approx(0.75, abs=0.03)
    check("it writes sieben while it attends to forty, whose encoder state has also read its neighbour.")
    (first, *_) = looked["location"]
    at = torch.tensor(first["weights"]["attention"])[first["target"].index("##sieben")].argmax()
    assert first["source"][at] == "forty-"
