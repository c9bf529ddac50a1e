"""The lesson of chapter 05 runs, shows figures that everybody can read, and states no number that is not true."""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor

from tfcourse.data import number_pairs, number_to_words, recorded_translation, tokenize
from tfcourse.layers import FeedForward, layer_norm, residual_post_norm, residual_pre_norm
from tfcourse.lessons.explorers.alignments import count_crossings
from tfcourse.lessons.figures.scenes import ch05_transformer as drawings
from tfcourse.positions import sinusoidal_positions
from tfcourse.training import cross_entropy, noam_learning_rate

from .form import LessonForm
from .lesson import Lesson

# What the finished kernel is asked for: a name, and the expression that the lesson's own variables answer.
ASKED = {
    "V": "V",
    "toy": "[[P[m] @ P[m + 1] for m in range(3)] for P in [sinusoidal_positions(4, 4).double()]][0]",
    "nothing": "[apart['no positions'], noticed['layer norm'], masked_apart, *agreement.values(), turned / 1e6]",
    "something": "[apart['sinusoids'], noticed['batch norm']]",
    "lowest": "[lowest.values.item(), grid[lowest.indices].item(), furthest]",
    "noticing": "[noticing, list(affected.values())]",
    "weights": "weights",
    "arriving": "[arriving[False], arriving[True]]",
    "first_gradients": "first_gradients",
    "gradients": "{name: sizes.tolist() for name, sizes in gradients.items()}",
    "components": "components",
    "same": "same",
    "floor": "floor",
    "race": "race['post-norm, at once']",
    "frequencies_only": "frequencies_only",
    "found": "[text for text, _ in found.values()]",
    "translations": "{f'{n} | {t}': translate(translators[n], [t])[0] for n in translators for t in ('three hundred and two', "
    "'two hundred and three', 'twenty-three thousand, four hundred and fifty-six')}",
    "right": "correct",
    "doubt": "{name: [sure[name].mean().item() - correct[name], "
    "mistaken[name]['mean'] - 1 + mistaken[name]['wrong'] / mistaken[name]['tokens']] for name in sure}",
    "surprise": "surprise",
    "averages": "[averages['both'][1], [right == marks['smoothed'] for right, _ in averages.values()]]",
    "added": "added",
    "looks": "looks.tolist()",
    "reads": "reads",
    "asked": "vocabulary.pieces(tokens_of('forty-five thousand, two hundred and twenty-three')[0])",
    "generous": "[honest, generous, free_points]",
    "untied": "untied_losses",
    "cheated": "[cheated, translate(unshifted, ['two hundred and three'])[0]]",
}
# Numbers of the prose that come from papers, from experiments/warm_up.py, from a count below, or are settings of the code.
GIVEN = """
0.98 0.1 0.9 0.5 0.4 0.3 0.6 0.01 1.1 1.5 37,000 99,999 28.4 27.3 3.5
1.04 0.55 1.53 0.15 0.31 49.5
"""

LESSON = Lesson("05_transformer", ASKED, GIVEN)
ROW = torch.tensor([-1.0, 1.0, 1.0, 7.0])


class TestForm(LessonForm):
    """The lesson has the form of all lessons."""


def test_drawn_tokens_are_those_of_the_vocabulary() -> None:
    assert tokenize("twenty-three") == [token for token in drawings.SOURCE if "(" not in token]
    assert tokenize("dreiundzwanzig") == [token for token in drawings.SAYS if "(" not in token]


def test_what_the_page_tries_is_noticed_where_the_text_says_and_nowhere_else(values: dict[str, Any]) -> None:
    assert max(values["nothing"]) < 1e-12
    assert min(values["something"]) > 0.1
    assert values["noticing"] == [[2], [[4, 5], [], [0, 1, 2, 3, 4, 5]]]
    assert values["same"] == {"train": False, "eval": True}


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


def test_dot_products_of_neighbours_are_those_of_the_text(values: dict[str, Any]) -> None:
    assert values["toy"] == pytest.approx([math.cos(1) + math.cos(0.01)] * 3, abs=1e-6)


@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        (layer_norm, [-1, -1 / 3, -1 / 3, 5 / 3]),
        (lambda *row: residual_post_norm(row[0], lambda y: 2 * y, *row[1:]), [-1, -1 / 3, -1 / 3, 5 / 3]),
        (lambda *row: residual_pre_norm(row[0], lambda y: 2 * y, *row[1:]), [-3, 1 / 3, 1 / 3, 31 / 3]),
    ],
    ids=["layer norm", "post-norm", "pre-norm"],
)
def test_norms_by_hand_are_right(compute: Any, expected: list[float]) -> None:
    torch.testing.assert_close(compute(ROW, torch.ones(4), torch.zeros(4)), torch.tensor(expected), atol=1e-4, rtol=0)


def test_gelu_has_the_lowest_value_of_its_figure(values: dict[str, Any]) -> None:
    lowest, place, furthest = values["lowest"]
    assert [lowest, place] == pytest.approx([-0.17, -0.75], abs=0.005)
    assert furthest < 0.0005


def test_gradient_vanishes_without_residual_connections(values: dict[str, Any]) -> None:
    replacing, adding = values["arriving"]
    assert all(1 <= size < 10 for size in adding)
    assert replacing == sorted(replacing, reverse=True)
    assert replacing[-1] < 1e-12


def test_first_gradients_grow_towards_the_output_with_post_norm_only(values: dict[str, Any]) -> None:
    post, pre = values["first_gradients"]["post-norm"], values["first_gradients"]["pre-norm"]
    assert post == sorted(post), "they grow towards the output"
    assert all(row[-1] < row[0] for row in values["gradients"]["pre-norm"]), "the other way round from every seed"
    assert all(row[-1] > 2 * row[0] for row in values["gradients"]["post-norm"])
    assert max(pre) < 1.6 * min(pre)


def test_parameters_of_the_base_model_are_counted_as_told(values: dict[str, Any]) -> None:
    D, F_, V = 512, 2048, 37_000
    attention, feed_forward = 4 * (D * D + D), 2 * D * F_ + F_ + D
    assert values["components"] == {
        "embedding": V * D,
        "attention": 18 * attention,
        "feed-forward": 12 * feed_forward,
        "layer norm": 30 * 2 * D,
    }
    assert 12 * feed_forward > V * D > 18 * attention > 0.99 * V * D, "the last two nearly equal"
    weights = values["weights"]
    assert weights["feed_forward"] / sum(weights.values()) == pytest.approx(2 / 3, abs=0.002)


def test_smoothing_has_the_targets_and_the_floor_of_the_text(values: dict[str, Any]) -> None:
    V, other = 113, 0.1 / 113
    assert values["V"] == V
    assert values["floor"] == pytest.approx(-(0.9 + other) * math.log(0.9 + other) - (V - 1) * other * math.log(other))


def test_schedule_peaks_where_the_text_says() -> None:
    assert noam_learning_rate(4000, 512) / noam_learning_rate(1, 512) == pytest.approx(4000)
    peaks = [noam_learning_rate(w, width, w) for width, w in ((512, 8000), (512, 4000), (256, 4000))]
    assert peaks == pytest.approx([0.49e-3, 0.70e-3, 0.99e-3], abs=0.005e-3)


def test_bold_start_fails_with_post_norm_only(values: dict[str, Any]) -> None:
    losses = values["race"]
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
    assert gain == pytest.approx((1.04, 0.55, 1.53), abs=0.005)
    lead = _interval([w - p for w, p in zip(warm, pre, strict=True)])
    assert lead == pytest.approx((0.15, -0.01, 0.31), abs=0.005)


def test_beam_finds_what_greedy_misses(values: dict[str, Any]) -> None:
    assert values["found"] == ["ABC", "ACB"]


def test_who_sees_a_bag_of_words_can_know_half_of_the_numbers() -> None:
    exam = number_pairs("en", "de", split="test", count=200, largest=99_999)
    sets = Counter(tuple(sorted(tokenize(number_to_words(number, "en")))) for number in range(100_000))
    sizes = [sets[tuple(sorted(tokenize(pair.source)))] for pair in exam]
    assert sizes.count(1) == 49
    assert 100 * sum(1 / size for size in sizes) / len(sizes) == pytest.approx(49.5, abs=0.05)
    assert {4, 6} <= set(sizes)


def test_blind_model_gives_302_and_203_one_translation(values: dict[str, Any]) -> None:
    said = values["translations"]
    assert said["smoothed | three hundred and two"] == "dreihundertzwei"
    assert said["smoothed | two hundred and three"] == "zweihundertdrei"
    assert said["no positions | three hundred and two"] == said["no positions | two hundred and three"]
    long = "twenty-three thousand, four hundred and fifty-six"
    assert said[f"smoothed | {long}"] == "dreiundzwanzigtausendvierhundertsechsundfünfzig"
    assert said[f"no positions | {long}"] == "dreiundfünfzigtausendvierhundertsechsundzwanzig"


def test_smoothing_raises_the_loss_and_makes_no_more_mistakes(values: dict[str, Any]) -> None:
    surprise, right = values["surprise"], values["right"]
    assert surprise["smoothed"] > 5 * surprise["not smoothed"]
    assert right["smoothed"] >= right["not smoothed"]
    (home, abroad), (home_without, abroad_without) = values["doubt"]["smoothed"], values["doubt"]["not smoothed"]
    assert home < home_without < 0 < abroad < abroad_without, "worse calibrated on the test set, better on six digits"


def test_numbering_alone_spoils_a_mean(values: dict[str, Any]) -> None:
    assert values["averages"] == [0, [True] * 3], "renumbered, the same function"


def test_sublayers_add_to_the_stream_without_replacing_it(values: dict[str, Any]) -> None:
    assert list(values["added"]) == ["self-attention", "cross-attention", "feed-forward"]
    assert all(0.05 < change < 0.5 for change in values["added"].values()), "the stream has size 1"


def test_decoder_looks_where_the_lesson_says(values: dict[str, Any]) -> None:
    looks, keys = torch.tensor(values["looks"]), [*values["asked"], "(end)"]
    assert " ".join(values["reads"]) == "(begin) fünf ##und ##vierzig ##tausend ##zwei ##hundert ##drei ##und ##zwanzig"

    def seen(rows: Tensor) -> list[str]:
        return [keys[int(row.argmax())] for row in rows]

    head = looks[1, 0]  # head 1 of layer 2
    assert seen(head[[0, 1, 2, 3, 6, 7, 8, 9]]) == [
        *("##five", "forty-", "forty-", "thousand,", "##three", "twenty-", "twenty-", "and")
    ]
    assert head[0].topk(2).values.sum() > 0.95, "to ##five and forty-"
    assert head[2].max() > 0.98, "to forty- alone"
    agreeing = [
        sum(seen(layer[h, [0, 2, 6, 8]]) == ["##five", "forty-", "##three", "twenty-"] for h in range(4))
        for layer in looks
    ]
    assert agreeing == [2, 4], "two heads of layer 1 and all heads of layer 2 do the same there"


def test_silent_mistakes_show_as_told(values: dict[str, Any]) -> None:
    nothing_known = math.log(values["V"])
    honest, generous, padding = values["generous"]
    assert honest - generous == pytest.approx(1, abs=0.05)
    assert honest > nothing_known + 1, "an untrained one does worse"
    assert padding == pytest.approx(0.25, abs=0.02)
    with_own_matrix, counted = values["untied"]
    assert abs(with_own_matrix - counted) < 0.2, "the cause is the tied matrix"
    assert abs(with_own_matrix - nothing_known) < 0.3
    cheated, written = values["cheated"]
    assert cheated < 0.01
    assert written == ""


# ------------------------------------------------------------------------------ symptoms that the table names


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


def test_products_of_probabilities_vanish_after_a_few_hundred_tokens() -> None:
    assert torch.full((400,), 0.1, dtype=torch.float64).prod() == 0
    assert torch.full((60,), 0.1, dtype=torch.float32).prod() == 0


def test_second_softmax_keeps_the_loss_above_the_bound_of_the_table() -> None:
    perfect = torch.zeros(1, 113, dtype=torch.float64)
    perfect[0, 7] = 1.0  # all of the probability on the right token
    assert cross_entropy(perfect, torch.tensor([7])).item() == pytest.approx(math.log(1 + 112 / math.e))


# ------------------------------------------------------------------------------ the recorded translators


def test_six_translators_did_what_their_record_says() -> None:
    runs = {run["name"]: run for run in recorded_translation()["runs"]}
    assert len(runs) == 6
    assert round(sum(run["seconds"] for run in runs.values()) / 60) == 8, "minutes"
    assert all(run["test"] > 0.99 for name, run in runs.items() if name != "seq2seq")
    climb = [share for *_, share in runs["seq2seq"]["exact"]]
    assert climb == sorted(set(climb)), "each evaluation is above the one before"
    assert round(100 * climb[-1]) == 73
    sizes = [run["parameters"] for run in runs.values()]
    assert max(sizes) < 1.2 * min(sizes), "about as many parameters"


def test_six_translators_looked_where_the_text_says() -> None:
    looked = {run["name"]: run["looked"] for run in recorded_translation()["runs"] if run["looked"]}
    assert all(len(shown) == 4 and all(one["right"] for one in shown) for shown in looked.values())
    words = {
        **{"ein": "one", "zwei": "two", "drei": "three", "vier": "four", "fünf": "five", "sechs": "six"},
        **{"sieben": "seven", "acht": "eight", "neun": "nine"},
        **{"zwanzig": "twenty", "dreißig": "thirty", "vierzig": "forty", "sechzig": "sixty"},
    }

    def at(name: str, place: int, weights: str = "attention") -> list[tuple[str, str]]:
        """Each written token, and the one that it attends to."""
        one = looked[name][place]
        places = torch.tensor(one["weights"][weights]).argmax(dim=-1).tolist()
        return [(word, one["source"][n].strip("#-,")) for word, n in zip(one["target"], places, strict=True)]

    to_and = []
    for place in range(4):
        crossings = {
            name: count_crossings(torch.tensor(looked[name][place]["weights"]["attention"])[:-1])
            for name in ("additive", "dot", "general", "location")
        }
        assert min(crossings[name] for name in ("additive", "dot", "general")) >= 2 > crossings["location"], place
        for name in ("additive", "dot", "general"):
            to_and += [seen == "and" for word, seen in at(name, place) if word in ("##und", "##hundert")]
        for word, seen in at("transformer", place, "layer 2, head 3"):
            assert seen == words.get(word.strip("#"), seen), (place, word)
    assert sum(to_and) / len(to_and) == pytest.approx(0.75, abs=0.03), "three times out of four"
    assert ("##sieben", "forty") in at("location", 0)
