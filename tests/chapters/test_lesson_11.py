"""The lesson of chapter 11 runs, shows figures that everybody can read, and states no number that is not true."""

from __future__ import annotations

import re
from typing import Any

import jupytext
import pytest

from tfcourse.data import recorded_vision
from tfcourse.explorers.reaches import layers_until_all_met
from tfcourse.figures.scenes import ch11_vision as drawings
from tfcourse.vit import vit_parameters

from .lesson import Lesson, described

# Labels that known mistakes name, and what a student is then told to read.
HEADINGS = {
    "takeover": "The takeover, in a dozen years",
    "pixels-as-words": "Every pixel a word",
    "look-near": "Look near, but look differently everywhere",
    "look-late": "Let convolutions look first",
    "bigger-words": "Bigger words",
    "order-of-patches": "What a sequence of patches cannot say",
    "another-size": "Another size",
    "sets-not-sequences": "Answers that are sets",
    "tables-as-tokens": "A table's columns as tokens",
    "two-streams": "Two streams",
    "graph-is-a-mask": "A graph is a mask",
    "what-goes-wrong-11": "What goes wrong",
}

# What the finished kernel is asked for: a name, and the expression that the lesson's own variables answer.
ASKED = {
    "tokens": "[tokens, scores]",
    "edge": "[alike.tolist(), blurred.tolist()]",
    "reached": "[int(grid.sum()) for grid in (once, twice, thrice)]",
    "gamma": "[float(layer.gamma.grad.abs()), float(layer.q_proj.weight.grad.abs().sum())]",
    "patches": "[list(words.shape), torch.allclose(linear(words), as_map, atol=1e-5)]",
    "right": "float(right)",
    "larger": "list(larger.shape)",
    "iou": "generalized_iou(moved, target)[:, 0].tolist()",
    "assigned": "assign(cost).tolist()",
    "row": "list(tokenizer(numbers, categories).shape)",
    "graph": "[(first[0] > 0).int().tolist(), (second[0] > 0).int().tolist()]",
}
# Numbers of the prose that come from the papers it cites, or are settings of the code next to them.
GIVEN: set[str] = {
    "| ResNet-50 | 25.5 million | 4.3 · 10⁹ |",
    "| 23.3 million | 4.3 · 10⁹ |",
    "pictures of 1,000 kinds",
    "| AC-GAN | 28.5 | 260.0 | – |",
    "| SNGAN, projection | 36.8 | 92.4 | 27.62 |",
    "| SAGAN | 52.52 | 83.7 | 18.65 |",
    "with 0.1 added against rounding, `scale_factor=(w + 0.1) / sqrt(N)`",
    "1,297 small pictures of digits",
    "With 1,297 digits hardly a trace of it",
}

LESSON = Lesson("11_vision", ASKED, GIVEN)
SOURCE, PROSE, check = LESSON.source, LESSON.prose, LESSON.check
RECORD = recorded_vision()


def mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)


def percent(phrase: str, *shares: float) -> None:
    """The prose has the phrase, and its percentages are these shares, rounded."""
    assert phrase in PROSE, f"the lesson no longer says {phrase!r}"
    assert [int(number) for number in re.findall(r"(\d+)%", phrase)] == [round(100 * share) for share in shares]


def cell_sources() -> list[tuple[list[str], str]]:
    notebook = jupytext.reads(SOURCE, fmt="md:myst")
    return [(cell.metadata.get("tags", []), cell.source) for cell in notebook.cells if cell.cell_type == "code"]


def test_every_label_that_others_point_at_exists_and_has_the_heading_that_students_are_told() -> None:
    for label, heading in HEADINGS.items():
        assert LESSON.headings(label) == [heading], label


def test_lesson_has_at_most_6000_words_of_paragraphs() -> None:
    without_folds = re.sub(r"```.*?\n```", "", SOURCE, flags=re.S)
    assert 2500 <= len(without_folds.split()) <= 6000


def test_lesson_carries_the_header_that_myst_needs() -> None:
    assert LESSON.has_header()


def test_a_picture_comes_before_the_first_heading_of_a_section_and_objectives_too() -> None:
    top = SOURCE[: SOURCE.index("(takeover)=")]
    assert "figures.show(drawings." in top
    assert len(re.findall(r"^- ", top, flags=re.M)) in range(3, 6)
    assert "**You need**" in top
    assert "**It takes**" in top


def test_readers_are_asked_to_guess_and_the_answers_are_folded() -> None:
    folded = re.findall(r"^```\{admonition\} Guess: [^\n]*[?.]\n:class: dropdown", SOURCE, flags=re.M)
    asked = re.findall(r"^```\{admonition\} Guess first\n:class: guess", SOURCE, flags=re.M)
    assert len(folded) >= 3
    assert len(asked) >= 3
    for cell in re.findall(
        r"Guess first\n:class: guess.*?\n```\n\n```\{code-cell\} ipython3\n(:tags: .*?)\n", SOURCE, re.S
    ):
        assert "hide-output" in cell


def test_code_that_is_shown_fits_the_page() -> None:
    for tags, code in cell_sources():
        if not {"hide-input", "remove-input"} & set(tags) and "explorer(" not in code:
            assert len(code.splitlines()) <= 20, code
            assert max(map(len, code.splitlines())) <= 80, code


def test_nothing_is_written_to_stderr(cells: list[Any]) -> None:
    assert not [output.text for cell in cells for output in cell.outputs if output.get("name") == "stderr"]


def test_every_figure_has_a_description_and_a_caption(pages: list[str]) -> None:
    assert described(pages) == [True] * 15
    assert LESSON.captions() == list(range(1, 17))


def test_drawings_can_be_drawn() -> None:
    for draw in (
        drawings.takeover,
        drawings.patches,
        drawings.windows,
        drawings.local_relation,
        drawings.attention_on_a_map,
        drawings.interpolation,
        drawings.matching,
        drawings.feature_tokens,
        drawings.two_streams,
        drawings.one_stream,
    ):
        assert "<svg" in draw().to_html(alt="A drawing of the chapter that is looked at by nobody but a test.")


def test_pixels_and_pairs_are_counted(values: dict[str, Any]) -> None:
    tokens, scores = values["tokens"]
    check("then has 50,176 tokens", tokens, form=",")
    assert scores == tokens**2 == 224**4
    check("attention of all to all has 9.8 million", 56**4 / 1e6, form=".1f")
    assert round(56**2 * 49 / 1e3) == 154
    assert "about 154 thousand pairs" in PROSE


def test_likeness_keeps_an_edge_and_a_blur_does_not(values: dict[str, Any]) -> None:
    alike, blurred = values["edge"]
    assert max(alike[:4]) < 0.01
    assert min(alike[4:]) > 0.99
    assert 0.2 < blurred[3] < 0.5 < blurred[4] < 0.8


def test_three_layers_of_windows_reach_all_places(values: dict[str, Any]) -> None:
    assert values["reached"][0] == 16
    assert values["reached"][2] == 64
    assert "three reach all 64 places" in PROSE
    assert layers_until_all_met("neighbours", 32) == 11
    assert "11 layers" in PROSE
    shifted = layers_until_all_met("shifted windows", 32)
    assert shifted is not None


def test_gamma_alone_learns_at_first(values: dict[str, Any]) -> None:
    gamma, query = values["gamma"]
    assert gamma > 0
    assert query == 0


def test_patches_lose_nothing_and_are_a_convolution(values: dict[str, Any]) -> None:
    assert values["patches"] == [[1, 196, 768], True]
    assert 16 * 16 * 3 == 768


def test_vit_base_is_counted() -> None:
    check("It is 85,798,656 without", sum(vit_parameters(224, 16, 3, 768, 3072, 12, None)), form=",")
    check("it has 87,455,232 without a head", sum(vit_parameters(224, 32, 3, 768, 3072, 12, None)), form=",")
    check("and 86,567,656 with one", sum(vit_parameters(224, 16, 3, 768, 3072, 12, 1000)), form=",")


def test_recorded_digits_are_told_as_they_were() -> None:
    ways, fewer = RECORD["digits"]["ways"], RECORD["digits"]["fewer"]
    few, many = ({name: mean(found[place]) for name, found in fewer.items()} for place in (0, -1))
    percent("wins with all of them, with 99%;", many["three neighbours"])
    percent(
        "the Vision Transformer have 98%, the linear model 97%",
        many["ViT"],
        many["linear"],
    )
    assert round(100 * many["CNN"]) == 98
    percent("the last, with 76%", few["ViT"])
    assert min(value for name, value in few.items() if name != "ViT") > few["ViT"] + 0.08
    percent("76% against 88% with a hundred digits", few["ViT"], few["three neighbours"])
    moved = {way: [run[1] for run in ways[way]["right"]] for way in ("patches of 2", "CNN")}
    assert min(moved["CNN"]) > 0.6
    assert max(moved["patches of 2"]) < 0.45
    bag = ways["no positions"]["right"]
    percent("73% without positions, 98% with them", mean([run[0] for run in bag]), many["ViT"])
    percent("the bag reads 71% still", mean([run[2] for run in bag]))
    assert max(run[2] for run in ways["patches of 2"]["right"]) < 0.17
    assert max(run[1] for run in bag) < 0.25
    for phrase in ("(69 thousand parameters)", "(19 thousand)"):
        assert phrase in PROSE
    assert [round(ways[way]["parameters"] / 1000) for way in ("patches of 2", "CNN")] == [69, 19]


def test_recorded_scenes_are_told_as_they_were() -> None:
    found = {way: [run["found"] for run in runs] for way, runs in RECORD["scenes"].items()}
    percent(
        "93% with matching, in both runs, and 22% in the given order.", *set(found["matched"]), mean(found["in order"])
    )
    percent("makes it 36%", found["in order, longer"][0])
    percent("22% against 93%", mean(found["in order"]), mean(found["matched"]))
    assert all(0.8 < run["extra"] < 1 for run in RECORD["scenes"]["matched"])
    upper_right, lower_left = (
        [
            query
            for query, centres in enumerate(RECORD["scenes"]["matched"][0]["centres"])
            if (mean([x for x, _ in centres]) > 0.6) == right and (mean([y for _, y in centres]) > 0.6) != right
        ]
        for right in (True, False)
    )
    assert upper_right
    assert lower_left


def test_recorded_tables_are_told_as_they_were() -> None:
    tables = RECORD["tables"]
    for name in ("cancer", "wine"):
        means = [mean(tables[name][way]) for way in ("feature tokens", "boosted trees", "linear")]
        spread = max(
            max(tables[name][way]) - min(tables[name][way]) for way in ("feature tokens", "boosted trees", "linear")
        )
        assert max(means) - min(means) < spread
    diabetes = tables["diabetes"]
    for linear, tokens, trees in zip(
        diabetes["linear"], diabetes["feature tokens"], diabetes["boosted trees"], strict=True
    ):
        assert linear > max(tokens, trees)


def test_a_model_is_trained_and_its_table_is_stretched(values: dict[str, Any]) -> None:
    assert values["right"] > 0.95
    assert values["larger"] == [37, 64]


def test_boxes_and_assignments_are_those_of_the_text(values: dict[str, Any]) -> None:
    first, *others = values["iou"]
    assert first == pytest.approx(1)
    assert others == sorted(others, reverse=True)
    assert others[-1] < 0
    assert values["assigned"] == [1, 0]
    assert values["row"] == [1, 6, 8]


def test_news_goes_one_step_a_layer_along_a_graph(values: dict[str, Any]) -> None:
    assert values["graph"] == [[1, 1, 0, 0, 0], [1, 1, 1, 0, 0]]


def test_every_number_of_the_text_stands_in_a_phrase_that_is_checked_or_given() -> None:
    assert LESSON.unchecked(__file__) == []
