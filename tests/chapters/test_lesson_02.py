"""The lesson of chapter 02 runs, shows figures that everybody can read, and states no number that is not true."""

from __future__ import annotations

import json
import math
import re
import statistics
from itertools import pairwise
from typing import Any, cast

import pytest
import torch

from tfcourse import data
from tfcourse.alignment import SCORES, AttentionSeq2Seq, additive_score, content_score, dot_score, ibm_model_1

from .form import LessonForm
from .lesson import CHAPTERS, Lesson

# What the finished kernel is asked for: a name, and the expression that the lesson's own variables answer.
ASKED = {
    "english": "english",
    "german": "german",
    "ibm": "ibm",
    "courses": "courses",
    "compared": "{name: scores[0, 0].tolist() for name, scores in compared.items()}",
    "attended": "[part[0, 0].tolist() for part in attend(e[None], annotations, may)[::-1]]",
    "slopes": "[slopes['soft'].tolist(), slopes['hard'].tolist()]",
    "moved": "list(moved.values())",
    "steps": "[len(losses), len(plain_losses)]",
    "overlap": "len({pair.source for pair in training} & {pair.source for pair in [*exam_pairs, ours]})",
    "right": "right.double().mean().item()",
    "agreement": "agreement",
    "misses": "[[p, w, data.tokenize(exam_pairs[i].source)] for i in range(len(exam_pairs))"
    " for p, w in zip(by_table[i], truth[i], strict=True) if w is not None and p != w]",
    "without_und": "['##und' not in data.tokenize(pair.target) for pair in exam_pairs[:100]]",
    "truth": "true_links(english, german)",
    "crossings": "crossings",
    "short": "((lengths <= 4).double().mean().item())",
    "by_length": "by_length",
    "counts": "counts_of",
    "by_token": "by_token",
    "spread": "[spread['without'], spread['with']]",
}
# Numbers of the prose that are settings of the code.
GIVEN = "777,777 54,321"


LESSON = Lesson("02_alignment", ASKED, GIVEN)


class TestForm(LessonForm):
    """The lesson has the form of all lessons."""


# ------------------------------------------------------------------------------------------- by hand


def test_number_of_the_chapter_is_for_testing_and_in_no_training(values: dict[str, Any]) -> None:
    assert data.number_split(241_735) == data.number_split(54_321) == "test"
    assert {data.number_split(n) for n in range(100)} == {"train"}
    assert values["overlap"] == 0


def test_em_never_lowers_the_likelihood() -> None:
    pairs = data.number_pairs("en", "de", split="train", count=60)
    source, target = (
        data.Vocabulary.from_texts(getattr(pair, side) for pair in pairs) for side in ("source", "target")
    )
    encoded = [(source.encode(pair.source), target.encode(pair.target)) for pair in pairs]
    likelihoods = []
    for n in range(9):
        table = ibm_model_1(encoded, len(source), len(target), n).double()
        likelihoods.append(
            sum(table[[0, *words]][:, written].mean(dim=0).log().sum().item() for words, written in encoded)
        )
    assert all(after >= before - 1e-9 for before, after in pairwise(likelihoods))
    assert likelihoods[-1] > likelihoods[0] + 10


def test_table_of_words_crosses_where_german_does_and_cannot_tell_two_hundreds_apart(values: dict[str, Any]) -> None:
    links = values["ibm"]
    assert (links[2], links[4]) == (4, 3), "##ein and ##vierzig cross"
    assert (links[1], links[7]) == (1, 1), "both ##hundert"
    assert values["truth"] == [0, 1, 4, None, 3, 5, 6, 7, 10, None, 9]


def test_em_leads_through_what_is_frequent_to_what_is_right(values: dict[str, Any]) -> None:
    courses = values["courses"]
    after_one = {word: course[1] for word, course in courses.items()}
    assert max(after_one, key=after_one.__getitem__) == "##und"
    assert courses["##vierzig"][10] > 0.9
    assert all(courses[word][10] < 0.1 for word in courses if word != "##vierzig")


def test_cosine_and_dot_product_prefer_different_keys() -> None:
    q, keys = torch.tensor([[[3.0, 4.0]]]), torch.tensor([[[3.0, 4.0], [8.0, 6.0]]])
    torch.testing.assert_close(dot_score(q, keys)[0, 0], torch.tensor([25.0, 48.0]))
    torch.testing.assert_close(content_score(q, keys)[0, 0], torch.tensor([1.0, 0.96]))


def test_additive_score_compares_and_forgets_the_query_without_its_tanh(values: dict[str, Any]) -> None:
    expected = [-math.tanh(3 - first) - math.tanh(4 - second) for first, second in ((3, 4), (8, 6), (0, 0))]
    assert values["compared"]["additive"] == pytest.approx(expected)
    assert values["compared"]["general"] == values["compared"]["dot"]
    without, with_tanh = values["spread"]
    assert without < 1e-12 < 0.1 < with_tanh


def test_masked_softmax_context_and_slopes_are_those_worked_out_by_hand(values: dict[str, Any]) -> None:
    context, weights = values["attended"]
    assert weights == pytest.approx([0.1, 0.8, 0.1, 0, 0])
    assert context == pytest.approx([1, 8])
    soft, hard = values["slopes"]
    assert soft == pytest.approx([-0.8, 1.6, -0.8, 0, 0])
    assert hard == [0] * 5
    plain = torch.softmax(torch.tensor([0.0, math.log(8), 0.0, 0.0, 0.0]), dim=0)
    torch.testing.assert_close(plain * 12, torch.tensor([1.0, 8.0, 1.0, 1.0, 1.0]))
    assert values["moved"] == [[6, 7, 8, 9, 10, 11, 12], [1, 2, 3, 4, 5, 6]], "each half knows its own side"


# ------------------------------------------------------------------------------------------- what was trained


def test_misses_of_the_table_are_words_that_occur_twice_and_those_of_the_network_are_units(
    values: dict[str, Any],
) -> None:
    assert values["misses"]
    for chosen, wanted, words in values["misses"]:
        assert words[chosen].strip("#-,") == words[wanted].strip("#-,")
    _, digits, units = values["agreement"]["additive"]
    assert digits > 0.98
    assert units < 0.4


def test_german_crosses_and_french_does_not(values: dict[str, Any]) -> None:
    german, french = values["crossings"]["German"], values["crossings"]["French"]
    straight = [und for und, count in zip(values["without_und"], german, strict=True) if count == 0]
    assert statistics.mean(straight) > 0.8
    assert statistics.mean(french) < 0.1 < 1.5 < statistics.mean(german)


def test_plain_model_loses_with_length_and_the_one_that_looks_back_does_not(values: dict[str, Any]) -> None:
    plain, back = values["by_length"]["plain"], values["by_length"]["looks back"]
    # Where a training ends depends a little on the processor: of the shortest, on one ten were right, on another eleven.
    assert 0.5 < plain[0] < 0.6
    assert plain[-1] == 0
    assert plain == sorted(plain, reverse=True)
    assert sum(values["counts"]) == 300, "every number of the exam is in a point of the figure"
    assert (min(back), back[-1]) == (back[0], 1), (
        "translates all of the longest numbers, and is weakest on the shortest"
    )
    assert values["by_token"]["looks back"] > values["by_token"]["plain"] > 0.5, "more than half of the tokens"
    assert values["short"] < 0.1
    assert values["steps"] == [100, 500]
    chapter_05 = (CHAPTERS / "05_transformer" / "lesson.md").read_text("utf-8")
    assert re.search(r"\*Figure 5\.20\.[^*]*long\s+numbers", chapter_05), "where the text sends its readers"


def recorded() -> dict[str, dict[str, list[float]]]:
    """What five seeds of each score have reached, by `experiments/scores.py`."""
    path = CHAPTERS.parent / "experiments" / "results" / "scores.json"
    return cast("dict[str, dict[str, list[float]]]", json.loads(path.read_text("utf-8"))["scores"])


def interval(better: list[float], worse: list[float]) -> tuple[float, float]:
    """The 95% interval of the mean difference of five pairs: Student's t with four degrees of freedom."""
    gaps = [a - b for a, b in zip(better, worse, strict=True)]
    half = 2.78 * statistics.stdev(gaps) / math.sqrt(len(gaps))
    return statistics.mean(gaps) - half, statistics.mean(gaps) + half


def test_table_of_scores_is_the_record() -> None:
    for score in SCORES:
        cells = [score.replace("_", " ")]
        for name in ("exact", "with and", "links of digits", "links of units"):
            shares = [round(100 * share) for share in recorded()[score][name]]
            cells.append(f"{round(statistics.mean(shares))} ({min(shares)}–{max(shares)})")
        assert f"| {' | '.join(cells)} |" in LESSON.prose


def test_five_seeds_rank_the_scores_as_told() -> None:
    exact, shifted = ({name: one[kind] for name, one in recorded().items()} for kind in ("exact", "with and"))
    assert [round(100 * end) for end in interval(exact["dot"], exact["scaled_dot"])] == [1, 14]
    ahead = [(exact, "additive", "general", 0.0), (shifted, "general", "additive", 0.0)]
    ahead.append((exact, "content, times 10", "content", 0.3))
    for other in ("additive", "dot", "general", "scaled_dot"):
        ahead += [(exact, other, "content", 0.4), (shifted, other, "location", 0.0)]
    for exam, better, worse, least in ahead:
        assert interval(exam[better], exam[worse])[0] > least, (better, worse)
    for one, other in (("additive", "dot"), ("additive", "location"), ("dot", "location"), ("dot", "general")):
        low, high = interval(exact[one], exact[other])
        assert low < 0 < high, "five seeds cannot tell"
    assert statistics.mean(exact["content, times 10"]) == pytest.approx(0.95, abs=0.005)


def test_masked_positions_hurt_digits_and_hardly_what_the_state_knows() -> None:
    for score in ("additive", "general"):
        for masked in ("strongest", "all"):
            row = [recorded()[score][f"{kind} without {masked}"] for kind in ("digits", "units", "und")]
            cells = [f"{100 * statistics.mean(one):.0f} ({100 * min(one):.0f}–{100 * max(one):.0f})" for one in row]
            assert f"| {score} | {masked} | {' | '.join(cells)} |" in LESSON.prose
    additive, general = recorded()["additive"], recorded()["general"]
    assert max(additive["digits without strongest"]) < 0.5, "loses more than half of the digits"
    assert min(additive["units without strongest"]) > 0.9
    assert sum(share > 0.9 for share in additive["units without all"]) == 4
    pairs = zip(general["units without strongest"], general["units without all"], strict=True)
    assert sum(strongest < none for strongest, none in pairs) == 3


# ------------------------------------------------------------------------------ symptoms that the tables name


def test_translation_depends_on_the_padding_if_the_mask_is_forgotten_and_not_otherwise() -> None:
    torch.manual_seed(0)
    model = AttentionSeq2Seq(9, 9, 8, 8).eval()
    source, target = torch.tensor([[4, 5, 2]]), torch.tensor([[1, 6, 7]])
    longer = torch.tensor([[4, 5, 2, 0, 0]])
    mask = longer != 0
    torch.testing.assert_close(model(longer, target, mask), model(source, target))
    assert (model(longer, target) - model(source, target)).abs().max() > 1e-3


def test_alignment_row_is_about_the_word_that_comes_next() -> None:
    torch.manual_seed(0)
    model = AttentionSeq2Seq(9, 9, 8, 8).eval()
    source, target = torch.tensor([[4, 5, 6, 2]]), torch.tensor([[1, 6, 7, 8]])
    other = target.clone()
    other[0, 2] = 3
    before, after = model.align(source, target)[0], model.align(source, other)[0]
    torch.testing.assert_close(before[:3], after[:3])  # the row at 2 was settled before the word at 2 was given
    assert (before[3] - after[3]).abs().max() > 1e-6


def test_additive_score_by_halves_is_the_one_matrix_on_the_pair() -> None:
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(1, 2, 3, generator=generator), torch.randn(1, 4, 5, generator=generator)
    w, v = torch.randn(8, 6, generator=generator), torch.randn(6, generator=generator)
    pairs = torch.cat([q[:, :, None].expand(1, 2, 4, 3), k[:, None].expand(1, 2, 4, 5)], dim=-1)
    torch.testing.assert_close(additive_score(q, k, w[:3], w[3:], v), torch.tanh(pairs @ w) @ v)
