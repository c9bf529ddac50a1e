"""The lesson of chapter 08 runs, shows figures that everybody can read, and states no number that is not true."""

from __future__ import annotations

import json
import math
import re
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
    "V": "V",
    "left_only": "left_only[HUNDRED]",
    "fates": "[float(share) for share in fates.values()]",
    "masks": "[len(masks), without]",
    "padding": "padding",
    "losses": "losses",
    "held_out": "{str(step): loss for step, loss in held_out.items()}",
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
# Numbers of the prose that come from the papers it cites, or are settings of the code next to them.
GIVEN = {
    "the numbers from 0 to 999,999.",
    "carpenter (0.097), waiter (0.052) and barber (0.050);",
    "nurse (0.220), waitress (0.160) and maid (0.115).",
    "a vocabulary of 30,522 WordPieces,",
    "($\\beta_1 = 0.9$, $\\beta_2 = 0.999$, weight decay 0.01, dropout 0.1).",
    "over 10,000 steps",
    "a corpus of 3,300 million words.",
    "the paper reports 5.6 times the speed of BERT-Large, against 4.7 for BERT-Base.",
    "Chance is 0.50.",
    "batches of 8,000, dynamic masks,",
    "a byte-level BPE of 50,265 tokens.",
}

LESSON = Lesson("08_bert", ASKED, GIVEN)
SOURCE, PROSE, check = LESSON.source, LESSON.prose, LESSON.check
RECORD = recorded_bert()
PUBLISHED = recorded_sentence_vectors()
NAMES = NumberNames()


@pytest.fixture(scope="module")
def names() -> NumberNames:
    return NAMES


# ---------------------------------------------------------------------------------------------- the page


class TestForm(LessonForm):
    """The lesson has the form of all lessons."""


# ------------------------------------------------------------------------------- the figure to play with


def test_explorer_shows_the_names_of_the_record(pages: list[str]) -> None:
    (page,) = [page for page in pages if page.startswith("<gap-explorer")]
    data = json.loads(re.search(r"<script[^>]*>(.*?)</script>", page)[1])  # type: ignore[index]
    assert [len(sets) for sets in data["guesses"]] == [2 ** len(words) for words in data["sentences"]]
    first = " ".join(data["vocabulary"][word] for word in data["sentences"][0])
    assert first == "seventeen thousand, four hundred and thirty"


def recorded_gaps(name: int, *hidden: str) -> list[dict[str, float]]:
    """What the recorded model says where some words are hidden, all if none are named."""
    words = RECORD["vocabulary"]
    tokens = [words[token] for token in RECORD["gaps"][name]["tokens"]]
    number = sum(1 << place for place, word in enumerate(tokens) if word in hidden or not hidden)
    return [{words[token]: share for token, share in guess} for guess in RECORD["gaps"][name]["guesses"][number]]


def test_recorded_model_is_sure_of_the_grammar_and_not_of_digits() -> None:
    for word in ("thousand,", "hundred", "and"):
        assert recorded_gaps(0, word)[0][word] > 0.9
    for word in ("seventeen", "four", "thirty"):
        assert max(recorded_gaps(0, word)[0].values()) < 0.3


def test_recorded_model_is_out_of_its_depth_where_all_is_hidden(names: NumberNames) -> None:
    total, shares = names.fitting([names.mask] * 6)
    check("Of the 13,041 names of six tokens, no more than 5% end in the same token,", total, form=",d")
    assert 0.045 < shares[-1].max() <= 0.05, "no more than 5%"
    guesses = recorded_gaps(0)[-1]
    best = sorted(guesses, key=lambda word: -guesses[word])[:4]
    assert "the model's four favourites for that position end none" in PROSE
    assert [shares[-1][names.vocabulary.tokens.index(word)].item() for word in best] == [0, 0, 0, 0]
    of = {word: names.vocabulary.tokens.index(word) for word in ("hundred", "and")}
    assert 0.5 < shares[3][of["hundred"]] < 0.52, "about half"
    assert 0.43 < shares[3][of["and"]] < 0.49, "nearly half"


# ------------------------------------------------------------------------------------------ its drawings


def test_drawn_gap_has_one_answer_for_both_sides_and_another_for_the_left(
    names: NumberNames, values: dict[str, Any]
) -> None:
    ids = {token: number for number, token in enumerate(names.vocabulary.tokens)}
    total, shares = names.fitting([ids[word] for word in drawings.GAPPED])
    assert (total, shares[1][ids[drawings.BOTH_SIDES[0]]].item()) == (1, drawings.BOTH_SIDES[1])
    share = values["left_only"]
    assert (drawings.LEFT_ONLY[0], round(share, 2)) == ("hundred", drawings.LEFT_ONLY[1])
    after_six = [names.vocabulary.tokens[names.encode(n)[2]] for n in range(600, 700)]
    after_six += [names.vocabulary.tokens[names.encode(1000 * n)[2]] for n in (6, *range(600, 700))]
    one, thousands = 100, 1000  # each name of n thousand is followed by 1,000 rests
    hundreds = one + thousands * 100
    assert after_six.count("hundred") == 200
    assert share == pytest.approx(hundreds / (hundreds + thousands), abs=1e-4)
    check("Given the left side alone, hundred has probability 0.99: 100,100 names", share)
    check("Given the left side alone, hundred has probability 0.99: 100,100 names", hundreds, form=",.0f")


def test_drawn_names_are_names_and_drawn_labels_are_what_was_hidden(names: NumberNames) -> None:
    ids = {token: number for number, token in enumerate(names.vocabulary.tokens)}
    whole = [
        word if label.startswith("−") else label for word, label in zip(drawings.READ, drawings.LABELS, strict=True)
    ]
    for row in (drawings.NAME, drawings.FILLED, whole[1:-1]):
        assert names.is_name([ids[word] for word in row])
    for word, label, how in zip(drawings.READ, drawings.LABELS, drawings.HOW, strict=True):
        assert bool(how) == (label in ids), "what is chosen has a label"
        assert how in ("", {drawings.MASK: "masked", label: "unchanged"}.get(word, "random"))
    assert set(drawings.HOW) == {"", "masked", "unchanged", "random"}
    different = [one != other for one, other in zip(drawings.NAME, drawings.FILLED, strict=True)]
    assert different == [bool(mark) for mark in drawings.REPLACED]
    assert sum(float(share.split()[0]) for share, _ in drawings.FATES) == 100
    assert all(word in names.vocabulary.tokens for _, word in drawings.FATES)


def test_drawn_texts_fit_as_many_names_as_drawn(names: NumberNames) -> None:
    ids = {token: number for number, token in enumerate(names.vocabulary.tokens)}
    for rows, counts in ((drawings.GROWN, drawings.GROWN_FITS), (drawings.IN_TURN, drawings.IN_TURN_FITS)):
        assert tuple(names.fitting([ids[word] for word in row])[0] for row in rows) == counts
    assert drawings.GROWN_FITS[-1] == 0 < min(drawings.IN_TURN_FITS)
    _, shares = names.fitting([ids[word] for word in drawings.GROWN[1]])
    possible = {names.vocabulary.tokens[i] for i in shares[-1].nonzero().flatten().tolist()}
    assert possible == {"thousand", "hundred"}


# ------------------------------------------------------------------------------------------- its numbers


def test_fifteen_per_cent_are_chosen_and_eighty_of_these_hidden(values: dict[str, Any]) -> None:
    assert values["fates"] == pytest.approx([0.15, 0.8, 0.1 + 0.1 / 54], abs=0.01)
    assert values["V"] == 54
    assert "once in 54 times" in PROSE


def test_dynamic_masks_are_more_than_twice_as_many(values: dict[str, Any]) -> None:
    different, without = values["masks"]
    assert 20 < different <= 40
    assert pytest.approx(1 / 6, abs=0.01) == 0.85**11, "about one mask out of six"
    assert 0 <= without < 0.5
    assert len(NAMES.encode(372_681)) - 2 == 11


def test_padding_changes_nothing_and_shapes_are_those_of_the_text(values: dict[str, Any]) -> None:
    assert values["padding"] < 1e-5


def test_small_loss_is_two_logarithms_of_two() -> None:
    assert (math.log(2) + math.log(8)) / 2 == pytest.approx(2 * math.log(2))


def test_model_comes_near_the_best_that_there_is(values: dict[str, Any]) -> None:
    ceiling, ours, least, beyond = values["gaps"]
    check("The best possible model fills 0.51 of these gaps correctly,", ceiling)
    assert ceiling - 0.02 < ours <= ceiling, "within two hundredths"
    assert 0 < beyond < 0.1, "less than a tenth of a nat"
    assert 1.1 < least < 1.35
    losses = values["losses"]
    assert mean(losses[:5]) > 3.3
    assert mean(losses[-50:]) < 1.6


def test_held_out_loss_is_never_below_the_least_possible_one(values: dict[str, Any]) -> None:
    least = values["gaps"][2]
    held_out = list(values["held_out"].values())
    assert list(values["held_out"]) == [str(step) for step in range(0, 501, 50)]
    assert min(held_out) > least
    assert held_out[0] > 3.5
    assert held_out[-1] == min(held_out)


def test_half_of_the_gaps_are_grammar_and_after_a_ten_nobody_knows(values: dict[str, Any]) -> None:
    by_kind = values["by_kind"]
    share, perfect, ours = by_kind["grammar"]
    assert 0.4 < share < 0.5, "a little less than half"
    assert perfect > 0.99
    assert ours > 0.97
    assert by_kind["digit after a ten"][1] == pytest.approx(1 / 9, abs=0.001)
    assert by_kind["digit after a ten"][2] == pytest.approx(1 / 9, abs=0.001)
    assert all(ours <= perfect + 1e-6 for _, perfect, ours in by_kind.values())
    assert share + (1 - share) / 9 == pytest.approx(values["gaps"][0], abs=0.02), "close to"


def test_best_span_of_the_small_example_is_no_pair_of_best_ends(values: dict[str, Any]) -> None:
    assert values["span"] == [0, 1]


def test_parameters_are_counted_as_the_text_says() -> None:
    base, large = bert_parameters(30_522, 768, 12, 3072), bert_parameters(30_522, 1024, 24, 4096)
    heads = [D * D + D + 2 * D + 30_522 + 2 * D + 2 for D in (768, 1024)]
    check(
        "BERT-Base has 109,482,240 parameters, and with both heads 110,106,428:",
        base.total,
        base.total + heads[0],
        form=",d",
    )
    check("BERT-Large has 335,141,888, and with its heads 336.2M;", large.total, form=",d")
    check("BERT-Large has 335,141,888, and with its heads 336.2M;", (large.total + heads[1]) / 1e6, form=".1f")
    layer = 12 * 768**2 + 13 * 768
    check("At $D = 768$ that is 7,087,872, and twelve of them make 85,054,464.", layer, 12 * layer, form=",d")
    assert "".join(PROSE.split()).find("12D^2+13D") > 0
    assert base.layers == 12 * layer
    assert base.embeddings / base.total > 0.2, "more than a fifth"


def test_cost_of_pre_training_is_multiplied_rightly() -> None:
    assert f"{256 * 512:,}".replace(",", "{,}") in PROSE
    check("The paper counts $256 \\cdot 512 = 131{,}072$ tokens per step (rounded to 128,000)")
    tokens = 1e6 * 256 * (0.9 * 128 + 0.1 * 512)
    check("$256 \\cdot (0.9 \\cdot 128 + 0.1 \\cdot 512)$ tokens are 42.6 billion tokens,", tokens / 1e9, form=".1f")
    assert "about 13 passes" in PROSE
    assert tokens / 3.3e9 == pytest.approx(13, abs=0.2)
    check("The 40 epochs (39.7 by the same count) are nominal", 256 * 512 * 1e6 / 3.3e9, form=".1f")


def test_albert_base_has_a_ninth_of_the_parameters() -> None:
    table = 30_000 * 128 + (512 + 2 + 2) * 128
    total = table + 128 * 768 + 768 + 12 * 768**2 + 13 * 768 + 768**2 + 768
    check("ALBERT-Base has 11,683,584 parameters, a ninth of BERT-Base.", total, form=",d")
    assert 109_482_240 / total == pytest.approx(9, abs=0.5)


def test_table_of_the_family_has_rounded_counts() -> None:
    for count, shown in ((124_645_632, "125M"), (355_359_744, "355M"), (13_549_057, "14M"), (66_362_880, "66M")):
        assert f"{count / 1e6:.0f}M" == shown
        assert shown in PROSE


def test_share_of_replaced_tokens_is_about_seven_per_cent(values: dict[str, Any]) -> None:
    assert values["replaced"] == pytest.approx(0.07, abs=0.015)
    assert mean(RECORD["replaced"]) == pytest.approx(0.075, abs=0.015)


def test_live_fine_tuning_shows_what_pre_training_is_worth(values: dict[str, Any]) -> None:
    right = values["right"]
    assert values["new"] == RECORD["test_sentences"] == 2000
    check("How many of 2,000 new texts", 2000, form=",d")
    assert right["all weights"] > right["from scratch"] + 0.05
    assert right["all weights"] > right["frozen"]
    assert right["all weights"] > 0.85
    assert right["from scratch"] < 0.75


def test_a_probe_of_the_largest_values_finds_what_the_pooled_state_hides(values: dict[str, Any]) -> None:
    pooled, largest, *untrained = values["probed"]
    assert pooled > values["right"]["frozen"] + 0.1, "the training alone"
    assert pooled + 0.05 < largest < values["right"]["all weights"], "about another tenth, and below fine-tuning"
    assert max(untrained) < min(pooled, largest) - 0.1, "without pre-training neither helps much"


def test_one_word_has_four_states_in_four_positions(values: dict[str, Any]) -> None:
    similar = torch.tensor(values["similar"])
    assert similar.shape == (4, 4)
    torch.testing.assert_close(similar.diagonal(), torch.ones(4))
    assert similar.masked_fill(torch.eye(4).bool(), 0).max() < 0.99


def test_few_texts_have_more_than_four_gaps_and_with_more_of_them_the_model_does_not_fail() -> None:
    at_most = sum(math.comb(11, k) * 0.15**k * 0.85 ** (11 - k) for k in range(5))
    assert 1 - at_most < 0.02
    file = LESSON.path.parents[2] / "experiments" / "results" / "gaps.json"
    few, any_share = json.loads(file.read_text("utf-8"))["runs"].values()
    assert max(any_share["distance"]) < min(few["distance"]), "paired by seed, and all below all"
    check(
        "differ from the true shares by 0.2 nats instead of 1.6",
        mean(any_share["distance"]),
        mean(few["distance"]),
        form=".1f",
    )
    names_of = [f"{100 * mean(runs['in turn']):.0f}%" for runs in (any_share, few)]
    assert (
        "{} of the texts that it fills in turn are names instead of {} (means of three runs".format(*names_of) in PROSE
    )
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
    table = RECORD["finetuning"]

    def ends(labels: int, way: str) -> tuple[float, float]:
        return min(table[str(labels)][way]), max(table[str(labels)][way])

    scratch = [*ends(32, "from scratch"), *ends(64, "from scratch")]
    check(
        "32 or 64 labels teach the network next to nothing: 0.50 to 0.53, and chance is 0.50.",
        min(scratch),
        max(scratch),
    )
    check(
        "gets 0.74 to 0.79 with 32 labels, and 0.93 to 0.98 with 128.",
        *ends(32, "all weights"),
        *ends(128, "all weights"),
    )
    check(
        "What differs is the pre-training: 38,400 readings of unlabelled names, drawn from 20,000.",
        600 * 64,
        20_000,
        form=",d",
    )
    few = [table[labels] for labels in ("32", "64", "128")]
    frozen = [run for row in few for run in row["frozen"]]
    check("reaches 0.58 to 0.64 with 32 to 128 labels.", min(frozen), max(frozen))
    apart = [max(row["from scratch"]) < min(row["frozen"]) for row in few]
    assert apart == [True, True, False], "with 32 and 64 each run beats each; with 128 the ranges overlap"
    for row in few:
        assert max(row["frozen"]) < min(row["all weights"]) - 0.05, "far below"
    check("with 512 labels the three runs end at 0.50, 0.67 and 0.68;", *sorted(table["512"]["from scratch"]))


def test_recorded_comparison_with_electra_is_told_as_it_was() -> None:
    ahead, overlap = [], []
    for labels, row in RECORD["finetuning"].items():
        gaps, replaced = row["all weights"], row["after replaced-token detection"]
        if mean(replaced) > mean(gaps):
            ahead.append(labels)
        overlap.append(min(replaced) <= max(gaps) and min(gaps) <= max(replaced))
    assert ahead == ["32", "64", "512"]
    assert (
        "is ahead with 32, 64 and 512 labels and behind with 128, and in every row the ranges of the two overlap"
        in PROSE
    )
    assert all(overlap)
    seconds = RECORD["seconds"]
    spent = [f"{mean(seconds[way]):.0f}" for way in ("masked", "replaced")]
    assert "the training took {} seconds with gaps and {} with replaced tokens".format(*spent) in PROSE


def test_tags_and_spans_are_learnt(values: dict[str, Any]) -> None:
    assert values["of_sixes"] == [1, 3, 4, 6], "four different tags"
    tags, spans = values["heads"]
    assert tags > 0.9
    assert spans > 0.9


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
    for way in ("in turn", "in any order"):
        assert 0.55 < valid[way] < 0.85, "more than half, and fewer than chapter 09's decoder"


# -------------------------------------------------------------------------------------- the published model


def nearest_of_same_sense(of: str) -> list[int]:
    """Of the 40 recorded occurrences, how many have one of the same sense as the nearest other, layer by layer."""
    return [sum(word[of][layer]["nearest"] for word in PUBLISHED["senses"].values()) for layer in range(7)]


def test_published_model_has_the_size_and_the_outputs_that_the_text_says() -> None:
    size = bert_parameters(30_522, 384, 6, 1536).total
    check("and 22,713,216 parameters.", size, form=",d")
    assert PUBLISHED["source"]["parameters"] == size
    assert "outputs differ from Hugging Face's by less than $10^{-5}$" in PROSE
    assert 0 < PUBLISHED["largest_difference"] < 1e-5


def test_senses_of_a_word_separate_in_the_layers_and_the_control_word_stays_near_chance() -> None:
    words, control = nearest_of_same_sense("word"), nearest_of_same_sense("the")
    assert "Bank, bat, spring, match and seal have two senses each" in PROSE
    assert [len(word["texts"]) for word in PUBLISHED["senses"].values()] == [8] * 5
    assert pytest.approx(17, abs=0.5) == 40 * 3 / 7
    check("differ by position alone: 11 of 40.", words[0], form="d")
    check("After three layers it is 36, while the is not far from chance, at 21:", words[3], control[3], form="d")
    check("After the last layer the has 28,", control[6], form="d")
    assert (
        min(min(word["word"][6]["within"], word["word"][6]["between"]) for word in PUBLISHED["senses"].values()) > 0.7
    )


def test_a_lit_match_lies_nearest_to_a_game() -> None:
    match = PUBLISHED["senses"]["match"]
    row = match["last"][match["texts"].index("She blew out the match and dropped it.")]
    nearest = max((cosine, text) for cosine, text in zip(row, match["texts"], strict=True) if cosine < 1)[1]
    assert nearest == "The crowd cheered until the match ended."
    assert f"she blew out the match lies nearest to {nearest[0].lower()}{nearest[1:-1]}" in PROSE


def test_sentence_vectors_part_the_banks_and_miss_who_bit_whom() -> None:
    of = {tuple(pair["texts"]): pair for pair in PUBLISHED["pairs"]}
    banks = of["She works at the bank.", "She sat on the bank."]
    check("moves the two banks apart, from 0.83 to 0.67.", banks["embeddings"], banks["encoder"])
    check("it hardly notices who bit whom (0.98),", of["The dog bit the man.", "The man bit the dog."]["encoder"])
    negated, paraphrase = (
        of["The film was good.", other] for other in ("The film was not good.", "I enjoyed the movie.")
    )
    check("as close to good (0.79) as a paraphrase is (0.78).", negated["encoder"], paraphrase["encoder"])


def test_search_finds_one_entry_first_and_another_last() -> None:
    questions = PUBLISHED["search"]["questions"]
    among_three = {way: sum(one["rank"][way] <= 3 for one in questions) for way in questions[0]["rank"]}
    assert among_three == {"encoder": 6, "embeddings": 4, "shared words": 3}
    assert "For ten such questions" in PROSE
    assert "among the first three 6 times. It is 4 times with the control and 3 times when" in PROSE
    ranks = {one["question"]: (one["answer"], one["rank"]["encoder"]) for one in questions}
    assert len(ranks) == 10
    assert ranks["How many points did I get?"] == ("verdict", 1)
    assert ranks["What do students get instead of the solution?"] == ("stub", PUBLISHED["search"]["entries"])
    assert "the 21 entries of the glossary" in PROSE
