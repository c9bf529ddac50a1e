"""The lesson of chapter 08 runs, shows figures that everybody can read, and states no number that is not true."""

from __future__ import annotations

import json
import math
from statistics import mean
from typing import Any

import pytest
import torch

from tfcourse.bert import bert_parameters, distillation_loss
from tfcourse.data import recorded_bert, recorded_sentence_vectors
from tfcourse.lessons.figures.scenes import ch08_bert as drawings
from tfcourse.number_names import NumberNames

from .form import LessonForm
from .lesson import Lesson

# What the finished kernel is asked for: a name, and the expression that the lesson's own variables answer.
ASKED = {
    "left_only": "left_only[HUNDRED]",
    "fates": "[float(share) for share in fates.values()]",
    "masks": "[len(masks), without]",
    "padding": "padding",
    "losses": "losses",
    "held_out": "list(held_out.values())",
    "gaps": "[ceiling, ours, least, beyond]",
    "span": "list(best)",
    "by_kind": "by_kind",
    "right": "right",
    "probed": "list(probed.values())",
    "perfectly": "perfectly",
    "similar": "similar",
    "new": "len(new_targets)",
    "heads": "[tag_accuracy, span_accuracy]",
    "of_sixes": "its_tags[repeated == SIX]",
    "replaced": "replaced_share",
    "sizes": "[ours_whole, ours_shared]",
    "distilled": "{str(t): float(loss) for t, loss in distilled.items()}",
    "valid": "valid",
}
# Numbers of the prose that come from the papers it cites, from experiments and counts below, or are settings of the code.
GIVEN = """
999,999 0.097 0.052 0.050 0.220 0.160 0.115 30,522 0.9 0.999 0.01 0.1 10,000 3,300 131,072 128,000 20,000 5.6 4.7 0.50 8,000 50,265
0.2 1.6 11,683,584 84.2 84.3 94.9 94.0 84.4 86.7 88.5 83.9 86.5 87.9 82.1 77.5 77.8
"""

LESSON = Lesson("08_bert", ASKED, GIVEN)
RECORD = recorded_bert()
PUBLISHED = recorded_sentence_vectors()
NAMES = NumberNames()
IDS = {token: number for number, token in enumerate(NAMES.vocabulary.tokens)}


class TestForm(LessonForm):
    """The lesson has the form of all lessons."""


# ------------------------------------------------------------------------------- the figure to play with


def recorded_gaps(name: int, *hidden: str) -> list[dict[str, float]]:
    """What the recorded model says where some words are hidden, all if none are named."""
    words = RECORD["vocabulary"]
    tokens = [words[token] for token in RECORD["gaps"][name]["tokens"]]
    number = sum(1 << place for place, word in enumerate(tokens) if word in hidden or not hidden)
    return [{words[token]: share for token, share in guess} for guess in RECORD["gaps"][name]["guesses"][number]]


def test_recorded_model_is_sure_of_the_grammar_and_not_of_digits() -> None:
    assert min(recorded_gaps(0, word)[0][word] for word in ("thousand,", "hundred", "and")) > 0.9
    assert max(max(recorded_gaps(0, word)[0].values()) for word in ("seventeen", "four", "thirty")) < 0.3


def test_recorded_model_is_out_of_its_depth_where_all_is_hidden() -> None:
    _, shares = NAMES.fitting([NAMES.mask] * 6)
    assert 0.045 < shares[-1].max() <= 0.05, "no more than 5%"
    guesses = recorded_gaps(0)[-1]
    best = sorted(guesses, key=lambda word: -guesses[word])[:4]
    assert [shares[-1][IDS[word]].item() for word in best] == [0] * 4, "its four favourites end none"
    assert 0.5 < shares[3][IDS["hundred"]] < 0.52, "about half"
    assert 0.43 < shares[3][IDS["and"]] < 0.49, "nearly half"


# ------------------------------------------------------------------------------------------ its drawings


def test_drawn_gap_has_one_answer_for_both_sides_and_another_for_the_left(values: dict[str, Any]) -> None:
    total, shares = NAMES.fitting([IDS[word] for word in drawings.GAPPED])
    assert (total, shares[1][IDS[drawings.BOTH_SIDES[0]]].item()) == (1, drawings.BOTH_SIDES[1])
    assert ("hundred", round(values["left_only"], 2)) == drawings.LEFT_ONLY
    hundreds = 100 + 100 * 1000  # each name of n thousand is followed by 1,000 rests
    assert values["left_only"] == pytest.approx(hundreds / (hundreds + 1000), abs=1e-4)


def test_drawn_names_are_names_and_drawn_labels_are_what_was_hidden() -> None:
    whole = [
        word if label.startswith("−") else label for word, label in zip(drawings.READ, drawings.LABELS, strict=True)
    ]
    for row in (drawings.NAME, drawings.FILLED, whole[1:-1]):
        assert NAMES.is_name([IDS[word] for word in row])
    for word, label, how in zip(drawings.READ, drawings.LABELS, drawings.HOW, strict=True):
        assert bool(how) == (label in IDS), "what is chosen has a label"
        assert how in ("", {drawings.MASK: "masked", label: "unchanged"}.get(word, "random"))
    different = [one != other for one, other in zip(drawings.NAME, drawings.FILLED, strict=True)]
    assert different == [bool(mark) for mark in drawings.REPLACED]


def test_drawn_texts_fit_as_many_names_as_drawn() -> None:
    for rows, counts in ((drawings.GROWN, drawings.GROWN_FITS), (drawings.IN_TURN, drawings.IN_TURN_FITS)):
        assert tuple(NAMES.fitting([IDS[word] for word in row])[0] for row in rows) == counts
    _, shares = NAMES.fitting([IDS[word] for word in drawings.GROWN[1]])
    assert set(shares[-1].nonzero().flatten().tolist()) == {IDS["thousand"], IDS["hundred"]}


# ------------------------------------------------------------------------------------------- its numbers


def test_fifteen_per_cent_are_chosen_and_eighty_of_these_hidden(values: dict[str, Any]) -> None:
    assert values["fates"] == pytest.approx([0.15, 0.8, 0.1 + 0.1 / 54], abs=0.01)


def test_dynamic_masks_are_more_than_twice_as_many(values: dict[str, Any]) -> None:
    different, without = values["masks"]
    assert 20 < different <= 40
    assert pytest.approx(1 / 6, abs=0.01) == 0.85**11, "about one mask out of six"
    assert 0 <= without < 0.5


def test_padding_changes_nothing(values: dict[str, Any]) -> None:
    assert values["padding"] < 1e-5


def test_model_comes_near_the_best_that_there_is(values: dict[str, Any]) -> None:
    ceiling, ours, least, beyond = values["gaps"]
    assert ceiling - 0.02 < ours <= ceiling, "within two hundredths"
    assert 0 < beyond < 0.1, "less than a tenth of a nat"
    assert mean(values["losses"][:5]) > 3.3
    assert mean(values["losses"][-50:]) < 1.6
    first, *_, last = values["held_out"]
    assert first > 3.5 > last == min(values["held_out"]) > least


def test_half_of_the_gaps_are_grammar_and_after_a_ten_nobody_knows(values: dict[str, Any]) -> None:
    by_kind = values["by_kind"]
    share, perfect, ours = by_kind["grammar"]
    assert 0.4 < share < 0.5, "a little less than half"
    assert perfect > 0.99
    assert ours > 0.97
    assert by_kind["digit after a ten"][1:] == pytest.approx([1 / 9] * 2, abs=0.001)
    assert all(ours <= perfect + 1e-6 for _, perfect, ours in by_kind.values())
    assert share + (1 - share) / 9 == pytest.approx(values["gaps"][0], abs=0.02), "close to"


def test_best_span_of_the_small_example_is_no_pair_of_best_ends(values: dict[str, Any]) -> None:
    assert values["span"] == [0, 1]


def test_parameters_are_counted_as_the_text_says() -> None:
    base = bert_parameters(30_522, 768, 12, 3072)
    assert base.layers == 12 * (12 * 768**2 + 13 * 768)
    assert base.embeddings / base.total > 0.2, "more than a fifth"
    table = 30_000 * 128 + (512 + 2 + 2) * 128
    albert = table + 128 * 768 + 768 + 12 * 768**2 + 13 * 768 + 768**2 + 768
    assert albert == 11_683_584
    assert base.total / albert == pytest.approx(9, abs=0.5), "a ninth"
    assert PUBLISHED["source"]["parameters"] == bert_parameters(30_522, 384, 6, 1536).total


def test_share_of_replaced_tokens_is_about_seven_per_cent(values: dict[str, Any]) -> None:
    assert values["replaced"] == pytest.approx(0.07, abs=0.015)


def test_live_fine_tuning_shows_what_pre_training_is_worth(values: dict[str, Any]) -> None:
    right = values["right"]
    assert values["new"] == RECORD["test_sentences"]
    assert right["all weights"] > max(right["from scratch"] + 0.05, right["frozen"], 0.85)
    assert right["from scratch"] < 0.75


def test_a_probe_of_the_largest_values_finds_what_the_pooled_state_hides(values: dict[str, Any]) -> None:
    pooled, largest, *untrained = values["probed"]
    assert pooled > values["right"]["frozen"] + 0.1, "the training alone"
    assert pooled + 0.05 < largest < values["right"]["all weights"], "about another tenth, and below fine-tuning"
    assert max(untrained) < min(pooled, largest) - 0.1, "without pre-training neither helps much"


def test_one_word_has_four_states_in_four_positions(values: dict[str, Any]) -> None:
    assert torch.tensor(values["similar"]).triu(1).max() < 0.99


def test_few_texts_have_more_than_four_gaps_and_with_more_of_them_the_model_does_not_fail() -> None:
    at_most = sum(math.comb(11, k) * 0.15**k * 0.85 ** (11 - k) for k in range(5))
    assert 1 - at_most < 0.02
    file = LESSON.path.parents[2] / "experiments" / "results" / "gaps.json"
    few, any_share = json.loads(file.read_text("utf-8"))["runs"].values()
    means = [[mean(runs["distance"]), mean(runs["in turn"])] for runs in (any_share, few)]
    assert means == [pytest.approx([0.2, 0.81], abs=0.05), pytest.approx([1.6, 0.69], abs=0.05)]
    assert max(any_share["distance"]) < min(few["distance"]), "all below all"
    worse = [after < before for before, after in zip(few["in turn"], any_share["in turn"], strict=True)]
    assert sum(worse) == 1, "one of which gets slightly worse"


def test_perfect_reader_writes_in_turn_and_fails_as_the_model_does(values: dict[str, Any]) -> None:
    perfectly = values["perfectly"]
    assert perfectly["in turn"] == 1
    assert perfectly["all at once"] < 0.65, "it mixes hundred and and"
    assert perfectly["at the end"] < 0.1, "no model can repair that"


def test_factor_of_tau_squared_steadies_the_gradient_at_high_temperatures() -> None:
    teacher = torch.tensor([[4.0, 2, 0, -2]])

    def size(tau: float) -> float:
        student = torch.tensor([[4.0, 0, 2, -2]], requires_grad=True)
        distillation_loss(student, teacher, tau).backward()  # type: ignore[no-untyped-call]
        return float(student.grad.norm())  # type: ignore[union-attr]

    assert size(40.0) == pytest.approx(size(20.0), rel=0.05)
    assert size(1.0) < 0.8 * size(20.0), "at high temperatures only"


def test_recorded_fine_tuning_is_told_as_it_was() -> None:
    few = [RECORD["finetuning"][labels] for labels in ("32", "64", "128")]
    apart = [max(row["from scratch"]) < min(row["frozen"]) for row in few]
    assert apart == [True, True, False], "with 32 and 64 each run beats each; with 128 the ranges overlap"
    assert all(max(row["frozen"]) < min(row["all weights"]) - 0.05 for row in few), "far below"


def test_recorded_comparison_with_electra_is_told_as_it_was() -> None:
    both = {
        labels: (row["all weights"], row["after replaced-token detection"])
        for labels, row in RECORD["finetuning"].items()
    }
    ahead = [labels for labels, (gaps, replaced) in both.items() if mean(replaced) > mean(gaps)]
    assert ahead == ["32", "64", "512"]
    assert all(max(map(min, pair)) <= min(map(max, pair)) for pair in both.values()), "the ranges overlap"


def test_tags_and_spans_are_learnt(values: dict[str, Any]) -> None:
    assert values["of_sixes"] == [1, 3, 4, 6], "four different tags"
    assert min(values["heads"]) > 0.9


def test_sharing_saves_half_of_a_model_of_two_layers(values: dict[str, Any]) -> None:
    whole, shared = values["sizes"]
    assert shared < 0.55 * whole


def test_distillation_notices_the_second_best_at_high_temperatures(values: dict[str, Any]) -> None:
    teacher, student = torch.tensor([4.0, 2, 0, -2]), torch.tensor([4.0, 0, 2, -2])
    losses = {float(t): loss for t, loss in values["distilled"].items()}
    for t, loss in losses.items():
        p, q = (teacher / t).softmax(0), (student / t).softmax(0)
        assert loss == pytest.approx(t * t * (p * (p / q).log()).sum().item(), rel=1e-4)
    assert list(losses.values()) == sorted(losses.values())


def test_a_decoder_writes_names_and_gaps_at_the_end_do_not(values: dict[str, Any]) -> None:
    valid = values["valid"]
    assert valid["a decoder"] > 0.8, "in most of its texts"
    assert valid["at the end"] < 0.1, "practically nothing"
    assert valid["all at once"] < 0.5, "fails in most of its texts"
    assert all(0.55 < valid[way] < 0.85 for way in ("in turn", "in any order")), "fewer than chapter 09's decoder"


# -------------------------------------------------------------------------------------- the published model


def test_outputs_of_the_published_model_are_those_of_hugging_face() -> None:
    assert 0 < PUBLISHED["largest_difference"] < 1e-5


def test_each_word_with_two_senses_has_eight_sentences_and_no_mean_cosine_is_low() -> None:
    assert [len(word["texts"]) for word in PUBLISHED["senses"].values()] == [8] * 5
    assert pytest.approx(17, abs=0.5) == 40 * 3 / 7, "by chance"
    last = [word["word"][6] for word in PUBLISHED["senses"].values()]
    assert min(min(cosines["within"], cosines["between"]) for cosines in last) > 0.7


def test_a_lit_match_lies_nearest_to_a_game() -> None:
    match = PUBLISHED["senses"]["match"]
    row = match["last"][match["texts"].index("She blew out the match and dropped it.")]
    nearest = max((cosine, text) for cosine, text in zip(row, match["texts"], strict=True) if cosine < 1)[1]
    assert nearest == "The crowd cheered until the match ended."


def test_search_finds_one_entry_first_and_another_last() -> None:
    questions = PUBLISHED["search"]["questions"]
    ranks = {one["question"]: (one["answer"], one["rank"]["encoder"]) for one in questions}
    assert len(ranks) == 10
    assert ranks["How many points did I get?"] == ("verdict", 1)
    assert ranks["What do students get instead of the solution?"] == ("stub", PUBLISHED["search"]["entries"])
