"""The lesson of chapter 02 runs, shows figures that everybody can read, and states no number that is not true."""

from __future__ import annotations

import ast
import json
import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import torch

from autograder.checks.sections import HEADINGS
from tfcourse import data
from tfcourse.alignment import AttentionSeq2Seq, additive_score, content_score, dot_score, ibm_model_1
from tfcourse.seq2seq import Seq2Seq

jupytext = pytest.importorskip("jupytext")
nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

LESSON = Path(__file__).parents[2] / "chapters" / "02_alignment" / "lesson.md"
SOURCE = LESSON.read_text(encoding="utf-8")
LABELS = (
    "why-alignment",
    "ibm-model-1",
    "scores",
    "content-score",
    "additive-score",
    "multiplicative-scores",
    "location-score",
    "masked-softmax",
    "attend",
    "hard-attention",
    "annotations",
    "attention-decoder",
    "alignments-cross",
    "beats-the-bottleneck",
    "alignment-or-reason",
    "shapes-02",
    "what-goes-wrong-02",
)
ALIGNERS = ["IBM model 1", "additive", "general"]

# What the finished kernel is asked for: a name, and the expression that the lesson's own variables answer.
ASKED = {
    "english": "english",
    "german": "german",
    "ibm": "ibm",
    "courses": "courses",
    "sizes": "[len(source_words), len(target_words)]",
    "compared": "{name: scores[0, 0].tolist() for name, scores in compared.items()}",
    "weights": "attend(e[None], annotations, may)[0][0, 0].tolist()",
    "context": "attend(e[None], annotations, may)[1][0, 0].tolist()",
    "slopes": "{name: slope.tolist() for name, slope in slopes.items()}",
    "moved": "moved",
    "steps": "[len(losses), len(plain_losses)]",
    "overlap": "len({pair.source for pair in training} & {pair.source for pair in exam_pairs})",
    "ours_unseen": "ours not in training",
    "right": "right.double().mean().item()",
    "agreement": "agreement",
    "misses": "[[p, w, data.tokenize(exam_pairs[i].source)] for i in range(len(exam_pairs))"
    " for p, w in zip(by_table[i], truth[i], strict=True) if w is not None and p != w]",
    "left": "share(strongest(translator, exam), [[p and p - 1 for p in links] for links in truth], 'units')",
    "without_und": "['##und' not in data.tokenize(pair.target) for pair in exam_pairs[:100]]",
    "truth": "true_links(english, german)",
    "crossings": "crossings",
    "short": "((lengths <= 4).double().mean().item())",
    "by_length": "by_length",
    "contest": "contest",
    "closed": "closed",
    "crisp": "crisp",
    "spread": "spread",
    "shapes": "[list(exam.source.shape), list(exam.target[:, :-1].shape), list(table.shape)]",
    "maps": "[list(w.shape) for w in soft.values()]",
}
# Numbers of the prose that are worked out in the sentence itself; tests of this file work them out again.
GIVEN = {
    r"$e^2 / (e^2 + 11) \approx 0.40$ of the weight",
    r"$e^{1}$ is only $e^2 \approx 7.4$ times",
    r"$48 / (5 \cdot 10) = 0.96$",
    r"has become $\tfrac9{14} \approx 0.64$",
    "241,735",
    "777,777",
    "54,321",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Any], dict[str, Any]]:
    """The lesson, executed in a fresh kernel: its code cells, and the answers to `ASKED`."""
    notebook = jupytext.reads(SOURCE, fmt="md:myst")
    questions = ", ".join(f"{name!r}: {expression}" for name, expression in ASKED.items())
    notebook.cells.append(nbformat.v4.new_code_cell(f"import json\nprint(json.dumps({{{questions}}}))"))
    folder = tmp_path_factory.mktemp("lesson")
    nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return cells[:-1], json.loads("".join(output.text for output in cells[-1].outputs))


@pytest.fixture(scope="module")
def cells(run: tuple[list[Any], dict[str, Any]]) -> list[Any]:
    return run[0]


@pytest.fixture(scope="module")
def values(run: tuple[list[Any], dict[str, Any]]) -> dict[str, Any]:
    return run[1]


@pytest.fixture(scope="module")
def pages(cells: list[Any]) -> list[str]:
    outputs = [output for cell in cells for output in cell.outputs]
    return [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]


def prose() -> str:
    """The lesson without code and front matter, on one line, without emphasis."""
    text = re.sub(r"\A---.*?\n---\n", "", SOURCE, flags=re.S)
    text = re.sub(r"```\{code-cell\}.*?\n```", "", text, flags=re.S)
    return re.sub(r"\s+", " ", text.replace("*", ""))


PROSE = prose()


def check(phrase: str, *values: float, form: str = ".2f") -> None:
    """The prose contains the phrase, and the phrase's numbers are these values, printed as the phrase prints them."""
    assert phrase in PROSE, f"the lesson no longer says {phrase!r}"
    for value in values:
        assert format(value, form) in phrase, f"{value} is stated as {phrase!r}"


def checked_phrases() -> set[str]:
    """The phrases that the tests of this file give to `check`."""
    tree = ast.parse(Path(__file__).read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    firsts = [call.args[0] for call in calls if call.func.id == "check"]  # type: ignore[attr-defined]
    return {first.value for first in firsts if isinstance(first, ast.Constant) and isinstance(first.value, str)}


# ---------------------------------------------------------------------------------------------- the page


def test_every_label_that_others_point_at_exists_with_the_heading_that_the_checks_know() -> None:
    for label in LABELS:
        assert len(re.findall(rf"\n\({label}\)=\n##+ {re.escape(HEADINGS[label])}\n", SOURCE)) == 1, label


def test_lesson_is_a_lecture_long() -> None:
    assert 4000 <= len(PROSE.split()) <= 7500


def test_lesson_carries_the_header_that_myst_needs() -> None:
    metadata = jupytext.reads(SOURCE, fmt="md:myst").metadata
    assert metadata["kernelspec"]["name"] == "python3"
    assert metadata["jupytext"]["text_representation"]["format_name"] == "myst"


def test_nothing_is_written_to_stderr(cells: list[Any]) -> None:
    assert not [output.text for cell in cells for output in cell.outputs if output.get("name") == "stderr"]


def test_every_figure_has_a_description_and_a_caption(pages: list[str]) -> None:
    pictures = [page for page in pages if page.startswith("<svg")]
    assert len(pictures) == 5
    for picture in pictures:
        alt = re.search(r'aria-label="([^"]*)"', picture)
        assert alt is not None
        assert len(alt[1]) > 60
    captions = [int(number) for number in re.findall(r"(?:\*|\")Figure 2\.(\d)\. [A-Z][^.?]*\?", SOURCE)]
    assert captions == [1, 2, 3, 4, 5, 6]


def test_explorer_shows_real_output_of_three_aligners_for_five_numbers(pages: list[str]) -> None:
    (explorer,) = (page for page in pages if page.startswith("<alignment-explorer"))
    outer, *pairs = [json.loads(text) for text in re.findall(r"<script[^>]*>(.*?)</script>", explorer)]
    assert len(outer["titles"]) == len(pairs) == 5
    for pair in pairs:
        assert pair["names"] == ALIGNERS
        ibm, *learnt = torch.tensor(pair["weights"][0])
        assert set(ibm.flatten().tolist()) == {0.0, 1.0}
        for weights in learnt:
            torch.testing.assert_close(weights.sum(dim=-1), torch.ones(len(pair["queries"])), atol=1e-3, rtol=0)
    assert " ".join(pairs[0]["queries"]) == "fünf ##und ##vierzig"


# ------------------------------------------------------------------------------------------- by hand


def test_number_of_the_chapter_is_for_testing_and_in_no_training(values: dict[str, Any]) -> None:
    assert data.number_split(241_735) == data.number_split(54_321) == "test"
    assert {data.number_split(n) for n in range(100)} == {"train"}
    assert values["ours_unseen"]
    assert values["overlap"] == 0
    assert " ".join(values["english"]) == "two hundred and forty- ##one thousand, seven hundred and thirty- ##five"
    assert " ".join(values["german"]).startswith("zwei ##hundert ##ein ##und ##vierzig ##tausend")


def test_two_rounds_of_em_by_hand_are_those_of_the_function() -> None:
    pairs = [([1], [1]), ([2, 1], [1, 2])]
    first, second = (ibm_model_1(pairs, 3, 3, n) for n in (1, 2))
    for table, place, fraction in (
        (first, (1, 1), Fraction(5, 7)),
        (first, (1, 2), Fraction(2, 7)),
        (first, (2, 1), Fraction(1, 2)),
        (first, (2, 2), Fraction(1, 2)),
        (second, (2, 2), Fraction(9, 14)),
    ):
        torch.testing.assert_close(table[place].item(), float(fraction))
    assert Fraction(1, 2) / (Fraction(2, 7) + Fraction(1, 2) + Fraction(2, 7)) == Fraction(7, 15)
    assert Fraction(1, 2) / (Fraction(5, 7) + Fraction(1, 2) + Fraction(5, 7)) == Fraction(7, 27)
    assert Fraction(7, 15) / (Fraction(7, 15) + Fraction(7, 27)) == Fraction(9, 14)
    assert f"{9 / 14:.2f}" == "0.64"


def test_table_of_words_crosses_where_german_does_and_cannot_tell_two_hundreds_apart(values: dict[str, Any]) -> None:
    links = dict(zip(enumerate(values["german"]), values["ibm"], strict=True))
    assert links[2, "##ein"] == 4
    assert links[4, "##vierzig"] == 3
    assert links[1, "##hundert"] == links[7, "##hundert"] == 1
    assert links[3, "##und"] is None
    assert values["truth"] == [0, 1, 4, None, 3, 5, 6, 7, 10, None, 9]


def test_em_leads_through_what_is_frequent_to_what_is_right(values: dict[str, Any]) -> None:
    courses = values["courses"]
    after_one = {word: course[1] for word, course in courses.items()}
    assert max(after_one, key=after_one.__getitem__) == "##und"
    assert courses["##vierzig"][10] > 0.9
    assert all(courses[word][10] < 0.1 for word in courses if word != "##vierzig")


def test_cosine_and_dot_product_prefer_different_keys() -> None:
    q = torch.tensor([[[3.0, 4.0]]])
    keys = torch.tensor([[[3.0, 4.0], [8.0, 6.0]]])
    torch.testing.assert_close(dot_score(q, keys)[0, 0], torch.tensor([25.0, 48.0]))
    torch.testing.assert_close(content_score(q, keys)[0, 0], torch.tensor([1.0, 0.96]))
    assert f"{math.e**2:.1f}" == "7.4"
    best = torch.softmax(torch.tensor([1.0] + 11 * [-1.0]), dim=0)[0].item()
    assert f"{best:.2f}" == f"{math.e**2 / (math.e**2 + 11):.2f}" == "0.40"


def test_additive_score_compares_as_told(values: dict[str, Any]) -> None:
    first, second, third = values["compared"]["additive"]
    assert first == 0
    assert second == pytest.approx(-math.tanh(-5) - math.tanh(-2))
    assert third == pytest.approx(-math.tanh(3) - math.tanh(4))
    assert -2 < third < -1.99
    assert values["compared"]["general"] == values["compared"]["dot"]


def test_masked_softmax_and_context_are_those_worked_out_by_hand(values: dict[str, Any]) -> None:
    assert values["weights"] == pytest.approx([0.1, 0.8, 0.1, 0, 0])
    assert values["context"] == pytest.approx([1, 8])
    plain = torch.softmax(torch.tensor([0.0, math.log(8), 0.0, 0.0, 0.0]), dim=0)
    torch.testing.assert_close(plain * 12, torch.tensor([1.0, 8.0, 1.0, 1.0, 1.0]))
    torch.testing.assert_close(plain[:3].sum(), torch.tensor(10 / 12))


def test_soft_attention_has_a_slope_and_hard_attention_none(values: dict[str, Any]) -> None:
    soft, hard = values["slopes"]["soft"], values["slopes"]["hard"]
    assert soft == pytest.approx([-0.8, 1.6, -0.8, 0, 0])
    assert hard == [0] * 5


def test_each_half_of_the_annotations_hears_of_its_own_side(values: dict[str, Any]) -> None:
    assert values["moved"] == {"forward half": [6, 7, 8, 9, 10, 11, 12], "backward half": [1, 2, 3, 4, 5, 6]}


# ------------------------------------------------------------------------------------------- what was trained


def test_parameters_are_those_of_the_table(values: dict[str, Any]) -> None:
    contest = values["contest"]
    without = contest["dot"]["parameters"]
    assert contest["content"]["parameters"] == contest["scaled_dot"]["parameters"] == without
    assert contest["additive"]["parameters"] - without == 2 * 64 * 64 + 64
    assert contest["general"]["parameters"] - without == 64 * 64
    assert contest["location"]["parameters"] - without == 64 * 64  # 64 is the longest source, too


def test_shapes_are_those_of_the_shapes_table(values: dict[str, Any]) -> None:
    exam_source, exam_target, table = values["shapes"]
    assert f"({exam_source[0]}, {exam_source[1]}) in the exam" in PROSE
    assert f"`(B, T)` | ({exam_target[0]}, {exam_target[1]})" in PROSE
    assert table == values["sizes"]
    assert f"`(source vocabulary, target vocabulary)` | ({table[0]}, {table[1]})" in PROSE
    assert values["maps"] == [[12, 12], [12, 12]]


def test_shares_of_right_links_are_those_of_the_text(values: dict[str, Any]) -> None:
    ibm, additive, general = (values["agreement"][name] for name in ALIGNERS)
    check("is right in 91.3% of the links;", ibm[0], form=".1%")
    check("The general score finds 98.2%.", general[0], form=".1%")
    check("as well as the general one, finds 68.4%?", additive[0], form=".1%")
    assert values["misses"]
    for chosen, wanted, words in values["misses"]:
        assert words[chosen].strip("#-,") == words[wanted].strip("#-,")
    check("and so it does in 75.5% of all such cases:", values["left"], form=".1%")
    check("it is right in 99.9%, and for hundert and tausend in 3.8%.", additive[1], additive[2], form=".1%")


def test_german_crosses_and_french_does_not(values: dict[str, Any]) -> None:
    german, french = values["crossings"]["German"], values["crossings"]["French"]
    check("Into German, 1.90 pairs of links cross in an average number,", sum(german) / len(german))
    check("and 19% of the numbers have no crossing,", german.count(0) / len(german), form=".0%")
    straight = [und for und, count in zip(values["without_und"], german, strict=True) if count == 0]
    assert sum(straight) / len(straight) > 0.8
    check("Into French it is 0.10,", sum(french) / len(french))
    check("and in 95% of the numbers no link crosses at all.", french.count(0) / len(french), form=".0%")


def test_plain_model_loses_with_length_and_the_one_that_looks_back_does_not(values: dict[str, Any]) -> None:
    plain, back = values["by_length"]["plain"], values["by_length"]["looks back"]
    check("from 0.37 for the shortest numbers to 0.01 for the longest;", plain[0], plain[-1])
    assert plain == sorted(plain, reverse=True)
    check("is at 0.99 where the other is nearly lost.", back[-1])
    check("It is weakest, with 0.84, on the shortest ones,", back[0])
    assert min(back) == back[0]
    assert values["short"] < 0.1
    few, many = values["steps"]
    assert few == 96
    assert many > 5 * few


def test_six_scores_do_as_told(values: dict[str, Any]) -> None:
    contest = values["contest"]
    best = max(one["exact"] for one in contest.values())
    near = [name for name, one in contest.items() if best - one["exact"] <= 0.02]
    assert sorted(near) == ["additive", "dot", "general", "location"]
    check("Four scores are within two percent of each other,")
    check(
        "Its largest weight is 0.15 on average, where twelve equal ones would be 0.08;",
        contest["content"]["peak"],
        1 / 12,
    )
    check(
        "lags behind plain dot, 90.3% against 97.0%.",
        contest["scaled_dot"]["exact"],
        contest["dot"]["exact"],
        form=".1%",
    )
    check("Location translates 96.7% of the exam,", contest["location"]["exact"], form=".1%")
    check(
        "it gets 3.0% right; additive gets 66.3%, dot 63.7%, general 52.3%.",
        *(contest[name]["shifted"] for name in ("location", "additive", "dot", "general")),
        form=".1%",
    )


def test_closed_places_hurt_digits_and_not_what_was_known(values: dict[str, Any]) -> None:
    digits, units, und = values["closed"]["additive"]
    check("the additive model gets 31.0% of them right.", digits, form=".1%")
    check("it gets 99.3% without it, and 97.0% for und.", units, und, form=".1%")
    assert values["closed"]["general"][0] < 0.5 < values["closed"]["general"][1]


def test_crisp_models_can_be_made_to_choose_and_blending_ones_cannot(values: dict[str, Any]) -> None:
    contest, crisp = values["contest"], values["crisp"]
    check("97.3% become 96.7% with the additive score,", contest["additive"]["exact"], crisp["additive"], form=".1%")
    assert crisp["dot"] == contest["dot"]["exact"]
    check("Scaled dot falls from 90.3% to 60.0%:", contest["scaled_dot"]["exact"], crisp["scaled_dot"], form=".1%")
    check("its largest weight was 0.47 on average,", contest["scaled_dot"]["peak"])
    assert values["right"] == contest["additive"]["exact"]


def test_forgotten_tanh_makes_all_rows_alike(values: dict[str, Any]) -> None:
    assert values["spread"]["without"] < 1e-12
    assert values["spread"]["with"] > 0.1


def test_prose_has_no_number_that_is_not_checked() -> None:
    """Every decimal, and every number with grouped digits, stands in a phrase that is checked or is given."""
    remaining = PROSE
    for phrase in checked_phrases() | GIVEN | {"on 4,000 numbers"}:
        assert phrase in PROSE, f"the lesson no longer says {phrase!r}"
        remaining = remaining.replace(phrase, "")
    remaining = re.sub(r"Figure 2\.\d|figure 2\.\d", "", remaining)
    assert re.findall(r"(?<![\w.])\d+\.\d+|\d{1,3}(?:,\d{3})+", remaining) == []


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


def test_zeroing_weights_afterwards_makes_the_context_too_small_by_a_sixth() -> None:
    weights = torch.softmax(torch.tensor([0.0, math.log(8), 0.0, 0.0, 0.0]), dim=0)
    weights[3:] = 0
    torch.testing.assert_close(1 - weights.sum(), torch.tensor(1 / 6))


def test_nothing_keeps_the_plain_translator_from_the_face_of_the_others() -> None:
    source, target = torch.tensor([[4, 5, 2]]), torch.tensor([[1, 6, 7]])
    for model in (Seq2Seq(9, 9, 8, 8), AttentionSeq2Seq(9, 9, 8, 8)):
        assert model(source, target, source != 0).shape == (1, 3, 9)


def test_additive_score_by_halves_is_the_one_matrix_on_the_pair() -> None:
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(1, 2, 3, generator=generator), torch.randn(1, 4, 5, generator=generator)
    w, v = torch.randn(8, 6, generator=generator), torch.randn(6, generator=generator)
    pairs = torch.cat([q[:, :, None].expand(1, 2, 4, 3), k[:, None].expand(1, 2, 4, 5)], dim=-1)
    torch.testing.assert_close(additive_score(q, k, w[:3], w[3:], v), torch.tanh(pairs @ w) @ v)
