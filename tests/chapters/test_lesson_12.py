"""The lesson of chapter 12 runs, shows figures that everybody can read, and states no number that is not true."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from tfcourse.data import recorded_positions
from tfcourse.figures.scenes import ch12_rotary as drawings

from .lesson import Lesson, described

# Labels that known mistakes name, and what a student is then told to read.
HEADINGS = {
    "train-short-test-long": "Train short, test long",
    "shaw": "A vector for every offset",
    "slopes": "A slope for every head",
    "turn-instead-of-add": "Turn instead of add",
    "two-pairings": "Two ways to pair",
    "wavelengths": "Wavelengths",
    "curve-completed": "The curve, completed",
    "interpolate-positions": "Squeeze, or slow down",
    "numbers-of-angles": "Numbers of angles",
    "what-goes-wrong-12": "What goes wrong",
}

# What the finished kernel is asked for: a name, and the expression that the lesson's own variables answer.
ASKED = {
    "slopes": "[alibi_slopes(8).tolist(), share[0].tolist(), share[7].tolist()]",
    "moved": "(early - late).abs().max().item()",
    "score": "max(abs(score - direct) for score in found)",
    "state": "[list(layer.state_dict()), apart]",
    "pairings": "[same, wrong]",
    "waves": "[(2 * math.pi / rotary_frequencies(16)).tolist(), slowest]",
    "clocks": "[kept, divided]",
    "rough": "[rough, float(error)]",
    "nearby": "[nearby[1.0], nearby[0.25]]",
    "off": "{name: [errors[8].item(), errors[12].item(), errors[-1].item()] for name, errors in off.items()}",
    "turning": "int((2 * math.pi / rotary_frequencies(128, 500_000.0) <= 8192).sum())",
}
# Numbers of the prose that come from the papers it cites, or are settings of the code next to them.
GIVEN: set[str] = {
    "is given 1,024.",
    "96, … 1,024, and we note",
    "with a base $\\theta$ of 10,000 in the paper.",
    "read at up to 1,024:",
    "rotations with base 10,000, none.",
    "2.33 at 256, 2.97 at 1,024, which",
    "1.81 at 256, and 1.86 at 1,024.",
    "Multiply all places by 0.25.",
    "after 10,000 steps, to 2,560 places,",
    "Llama with 2,048 places read 8,192 and more.",
    "from 8,192 places;",
    "nobody notices below 8,192 places",
    "Llama 3.1 does it by cases",
    "in the released code of Llama 3.1,",
    "as Llama 3.1 does after it:",
    "and scale frequencies as Llama 3.1 does,",
    "So an angle of 8,191 radians",
    "the place 8,191 does not exist: it is stored as 8,192,",
    "at place 131,071 are off",
    "Llama 3 took the base 500,000",
    "| GPT-NeoX-20B | 10,000 | 2,048 |",
    "| Llama 2 | 10,000 | 4,096 |",
    "| Code Llama | 1,000,000 | 16,384 |",
    "| Llama 3 | 500,000 | 8,192 |",
    "within its 8,192 places?",
    "is at most 8,192. With 500,000 and 128 columns",
    "at place 4,097 its base is changed",
    "where the base 10,000 gives 54,410.",
}

LESSON = Lesson("12_rotary", ASKED, GIVEN)
SOURCE, PROSE, check = LESSON.source, LESSON.prose, LESSON.check
RECORD = recorded_positions()


def curve(kind: str) -> list[float]:
    """Mean of the seeds, by length."""
    return [sum(points) / len(points) for points in zip(*RECORD["curves"][kind], strict=True)]


def way(name: str) -> list[float]:
    """Mean of the seeds, by length, of a way to stretch."""
    return [sum(points) / len(points) for points in zip(*(run[name] for run in RECORD["stretched"]), strict=True)]


def cell_sources() -> list[tuple[list[str], str]]:
    """The tags and the code of each cell."""
    cells = re.findall(r"```\{code-cell\} ipython3\n(.*?)\n```", SOURCE, flags=re.S)
    tags = [re.findall(r"[\w-]+", "".join(re.findall(r"^:tags: \[(.*)\]$", cell, flags=re.M))) for cell in cells]
    return list(zip(tags, (re.sub(r"^:(?:tags|mystnb):.*\n+", "", cell, flags=re.M) for cell in cells), strict=True))


# ---------------------------------------------------------------------------------------------- the page


def test_every_label_that_others_point_at_exists_and_has_the_heading_that_students_are_told() -> None:
    for label, heading in HEADINGS.items():
        assert LESSON.headings(label) == [heading], label


def test_lesson_has_at_most_6000_words_of_paragraphs() -> None:
    without_folds = re.sub(r"```.*?\n```", "", SOURCE, flags=re.S)
    assert 2000 <= len(without_folds.split()) <= 6000


def test_lesson_carries_the_header_that_myst_needs() -> None:
    assert LESSON.has_header()


def test_a_picture_comes_before_the_first_heading_of_a_section_and_objectives_too() -> None:
    top = SOURCE[: SOURCE.index("(train-short-test-long)=")]
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
    assert described(pages) == [True] * 13
    assert LESSON.captions() == list(range(1, 15))


def test_drawings_can_be_drawn() -> None:
    for draw in (
        drawings.hands,
        drawings.offsets,
        drawings.entrances,
        drawings.layer,
        drawings.pairings,
        drawings.stretches,
    ):
        assert "<svg" in draw().to_html(alt="A drawing of the chapter that is looked at by nobody but a test.")


# ------------------------------------------------------------------------------------------- its numbers


def test_sinusoids_jump_behind_the_trained_length() -> None:
    sines, none = curve("sinusoidal"), curve("none")
    check("With sinusoids the loss is 2.06 where the model was trained, and 2.30 half as far again", *sines[:2])
    check("at 1,024 it is 2.87, far worse", sines[-1])
    check("which stands at 2.46 there", none[-1])
    assert sines[-1] > none[-1]


def test_slopes_are_halves_and_horizons(values: dict[str, Any]) -> None:
    slopes, near, far = values["slopes"]
    assert slopes == [2.0**-n for n in range(1, 9)]
    assert near[-26] < 1e-5 < near[-20]
    assert max(far) / min(far) < 1.4, "nearly even"


def test_places_leave_their_difference(values: dict[str, Any]) -> None:
    assert values["moved"] < 1e-5
    assert values["score"] < 1e-6
    assert values["state"][0] == [f"{name}_proj.weight" for name in "qkvo"]
    assert values["state"][1] < 1e-4


def test_pairings_differ_until_the_rows_are_reordered(values: dict[str, Any]) -> None:
    assert values["pairings"] == [True, False]


def test_wavelengths_are_those_of_the_text(values: dict[str, Any]) -> None:
    waves, slowest = values["waves"]
    assert [round(wave) for wave in waves[:4]] == [6, 20, 63, 199]
    check("up to 19,869", waves[-1], form=",.0f")
    check("needs 2,559,196 places for a turn", slowest, form=",.0f")
    assert round(2 * math.pi * 10_000 ** (126 / 128)) == 54_410


def test_recorded_curves_are_told_as_they_were() -> None:
    rotary, shaw, alibi, t5, sines, none = map(curve, ("rotary", "shaw", "alibi", "t5", "sinusoidal", "none"))
    check("are level, 1.81 and 1.82,", shaw[0], rotary[0])
    check("ALiBi with 1.96, T5's buckets with 2.01, sinusoids with 2.06.", alibi[0], t5[0], sines[0])
    check("still 1.88 at 128, 2.33 at 256, 2.97 at 1,024", rotary[2], rotary[3], rotary[5])
    assert rotary[-1] > none[-1], "worse than no positions at all"
    check("climb slowly to 2.55:", t5[-1])
    check("ALiBi is flat, 1.95 everywhere,", *alibi[1:])
    assert alibi[-1] < alibi[0]
    check("1.81 at 256, and 1.86 at 1,024.", shaw[3], shaw[5])
    others = (rotary, alibi, t5, sines, none)
    assert all(shaw[place] < min(other[place] for other in others) for place in range(6)), "the best at every length"


def test_recorded_stretches_of_a_text_are_told_as_they_were() -> None:
    by_place = RECORD["by place"]
    sines, rotary = by_place["sinusoidal"], by_place["rotary"]
    assert [round(loss, 1) for loss in sines[1:3]] == [2.1, 2.8]
    assert max(rotary[:3]) < 1.9
    assert min(rotary[5:]) > 2.75
    assert max(by_place["alibi"]) - min(by_place["alibi"]) < 0.1
    assert max(by_place["shaw"]) - min(by_place["shaw"]) < 0.1


def test_recorded_ways_to_stretch_are_told_as_they_were() -> None:
    plain, squeezed = way("as it is"), way("squeezed to a quarter")
    check("2.84 at 64 and 2.87 at 256,", squeezed[0], squeezed[3])
    check("where it stood at 1.82 and 2.33.", plain[0], plain[3])
    check("it reads 256 at 1.98, for a factor of 8 at 1.93,", way("base for factor 4")[3], way("base for factor 8")[3])
    check("comes back to 2.09 at 256.", way("squeezed, tuned")[3])
    check("reads 256 at 1.88.", way("tuned")[3])
    longer = way("squeezed, tuned longer"), way("tuned longer")
    check("With 200 steps they stand at 1.82 and 1.74,", longer[0][3], longer[1][3])
    check("they are even, 1.96 each.", longer[0][4], longer[1][4])
    assert all(a > b for a, b in zip(squeezed[:5], plain[:5], strict=True))


def test_llamas_clocks_are_counted(values: dict[str, Any]) -> None:
    assert values["clocks"] == [29, 29]
    assert "Of 64 clocks 29 stay, 29 are divided, 6 are on the ramp." in PROSE


def test_published_bases_have_the_slowest_turns_of_the_table() -> None:
    turn = {
        " 29,164 |": (10_000, 22 / 24),
        " 54,410 |": (10_000, 126 / 128),
        " 5,063,256 |": (1_000_000, 126 / 128),
        " 2,559,196 |": (500_000, 126 / 128),
    }
    for phrase, (base, power) in turn.items():
        assert format(2 * math.pi * base**power, ",.0f") in phrase
    check(" 29,164 |", 2 * math.pi * 10_000 ** (22 / 24), form=",.0f")
    check(" 54,410 |", 2 * math.pi * 10_000 ** (126 / 128), form=",.0f")
    check(" 5,063,256 |", 2 * math.pi * 1_000_000 ** (126 / 128), form=",.0f")
    check(" 2,559,196 |", 2 * math.pi * 500_000 ** (126 / 128), form=",.0f")


def test_pairs_of_llama_3_that_come_round_are_counted(values: dict[str, Any]) -> None:
    assert values["turning"] == 35
    assert "these are the pairs 0 to 34, 35 of 64. The other 29" in PROSE


def test_squeezed_neighbours_are_hardly_told_apart(values: dict[str, Any]) -> None:
    plain, squeezed = values["nearby"]
    assert round(100 * (1 - plain[1])) == 6
    check("squeezed, it costs 0.4%.", 100 * (1 - squeezed[1]), form=".1f")


def test_sharpening_of_yarn_is_its_formula() -> None:
    check("by $0.1 \\ln s + 1$, which is 1.14 for texts", 0.1 * math.log(4) + 1)


def test_angles_in_half_precision_are_nonsense(values: dict[str, Any]) -> None:
    rough, error = values["rough"]
    check("the cosine of the fastest pair is wrong by 0.94.", abs(rough - math.cos(8_191)))
    assert 1e-4 < error < 0.01, "some thousandths"
    off = values["off"]
    check("the largest error is 1.88, and", off["bfloat16"][1])
    assert off["bfloat16"][0] == pytest.approx(1, abs=0.1), "about 1 at place 511"
    assert off["float16"][1] == pytest.approx(1, abs=0.1), "about 1 at place 8,191"
    assert 1e-4 < off["float32"][2] < 0.01


def test_every_number_of_the_text_stands_in_a_phrase_that_is_checked_or_given() -> None:
    assert LESSON.unchecked(__file__) == []


@pytest.mark.parametrize("kind", ["none", "sinusoidal", "t5", "rotary", "alibi", "shaw"])
def test_the_record_has_a_loss_for_every_length_and_seed(kind: str) -> None:
    assert [len(losses) for losses in RECORD["curves"][kind]] == [len(RECORD["lengths"])] * len(RECORD["seeds"])
