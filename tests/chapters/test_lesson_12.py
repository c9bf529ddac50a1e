"""The lesson of chapter 12 runs, shows figures that everybody can read, and states no number that is not true."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from tfcourse.data import recorded_positions

from .form import LessonForm
from .lesson import ROOT, Lesson

# What the finished kernel is asked for: a name, and the expression that the lesson's own variables answer.
ASKED = {
    "slopes": "[alibi_slopes(8).tolist(), share[0].tolist(), share[7].tolist(), alibi_slopes(6).tolist()]",
    "gathered": "(terms - literal).abs().max().item()",
    "moved": "(early - late).abs().max().item()",
    "by_hand": "[rotary_embedding(pair, torch.tensor([m, n]), math.pi / 6 * torch.ones(1)).tolist()"
    " for m, n in ((0, 0), (3, 1), (7, 5), (1, 3))]",
    "six_lines": "(rotated - ours).abs().max().item()",
    "scores": "[min(scores), max(scores), direct]",
    "state": "[list(layer.state_dict()), shift]",
    "quarter": "[rotary_embedding(torch.arange(1.0, 5)[None], torch.tensor([1]), torch.tensor([math.pi / 2, 0]), interleaved=way)"
    "[0].tolist() for way in (True, False)]",
    "pairings": "[converted, forgotten, complex_gap]",
    "reordered": "[torch.equal(w_half, convert_rotary_weight(w, 2, to='half')), list(w_half.shape)]",
    "waves": "[(2 * math.pi / rotary_frequencies(16)).tolist(), slowest]",
    "clocks": "[kept, slowed, float(turns[32]), float(ramp[32]), float(scaled[32] / plain[32]), float((by_hand - scaled).abs().max())]",
    "ratios": "{name: ratio.tolist() for name, ratio in methods.items()}",
    "rough": "[rough, error]",
    "nearby": "[nearby[1.0], nearby[0.25]]",
    "off": "{name: [errors[8].item(), errors[12].item(), errors[-1].item()] for name, errors in off.items()}",
    "turning": "int((2 * math.pi / rotary_frequencies(128, 500_000.0) <= 8192).sum())",
    "loss": "(stretches.mean(dim=(0, 2)) - loss_by_position(logits, targets, bins=4)).abs().max().item()",
}
# Numbers of the prose that come from the papers it cites, or are settings of the code next to them.
GIVEN: set[str] = {
    "a text of 1,024. Does it still work?",
    "loses less than 0.2 nats",
    "| loss at length | 64 | 96 | 1,024 |",
    "and at 1,024 it is far above",
    "and at 1,024 it is the worst of all",
    "256, 512 and 1,024 characters.",
    "is 10,000 in the paper",
    "$10{,}000 \\cdot 4^{16/14} = 48{,}761$",
    "read up to 1,024:",
    "| loss at length | 64 | 128 | 256 | 1,024 |",
    "RoPE with base 10,000, and no positions",
    "multiplies all positions by $1/c$, here 0.25:",
    "from 2,048 positions to up to 32,768 in this way, with at most 1,000 steps",
    "for more than 10,000 steps extended the window only from 2,048 to 2,560,",
    "while interpolated models read up to 32,768 after 1,000 steps",
    "Llama 3.1 decides pair by pair.",
    "Llama 3.1 has $c = 8$, $N$ = 8,192, base 500,000 and heads of width 128.",
    "by Llama 3.1's frequencies",
    "as Llama 3.1 does:",
    "An angle of 8,191 radians",
    "the position 8,191 does not exist. It is stored as 8,192,",
    "at position 131,071 are off",
    "Llama 3 takes $\\theta$ = 500,000",
    "with base 10,000, at differences",
    "base 500,000, factor 8.",
    "| GPT-NeoX-20B | 10,000 | 2,048 |",
    "| Llama 2 | 10,000 | 4,096 |",
    "| Code Llama | 1,000,000 | 16,384 |",
    "| Llama 3 | 500,000 | 8,192 |",
    "within its 8,192 positions?",
    "is at most 8,192. With base 500,000 and width 128",
    "at position 4,097 your program changes the base",
    "where $\\theta$ = 10,000 gives 54,410.",
}

LESSON = Lesson("12_rotary", ASKED, GIVEN)
SOURCE, PROSE, check = LESSON.source, LESSON.prose, LESSON.check
RECORD = recorded_positions()
CONTROLS = json.loads((ROOT / "experiments" / "results" / "rotary_controls.json").read_text(encoding="utf-8"))


def curve(kind: str) -> list[float]:
    """Mean of the seeds, by length."""
    return [sum(points) / len(points) for points in zip(*RECORD["curves"][kind], strict=True)]


def way(name: str) -> list[float]:
    """Mean of the seeds, by length, of a way to stretch."""
    return [sum(points) / len(points) for points in zip(*(run[name] for run in RECORD["stretched"]), strict=True)]


# ---------------------------------------------------------------------------------------------- the page


class TestForm(LessonForm):
    """The lesson has the form of all lessons."""


# ------------------------------------------------------------------------------------------- its numbers


def test_sinusoids_jump_beyond_the_training_length() -> None:
    sines, none = curve("sinusoidal"), curve("none")
    check("| sinusoids | 2.06 | 2.30 | 2.87 |", sines[0], sines[1], sines[-1])
    check("| no positions | 2.29 | 2.32 | 2.46 |", none[0], none[1], none[-1])
    assert sines[-1] > none[-1] + 0.2
    assert none[-1] - none[0] < 0.2, "less than 0.2 nats"
    assert none[0] > max(curve(kind)[0] for kind in RECORD["curves"] if kind != "none"), "high from the start"


def test_slopes_halve_the_weights(values: dict[str, Any]) -> None:
    slopes, near, far, six = values["slopes"]
    assert slopes == [2.0**-n for n in range(1, 9)]
    check(
        "That is every 1.4 positions for slope 1/2, and every 177 for slope 1/256.", math.log(2) / slopes[0], form=".1f"
    )
    check(
        "That is every 1.4 positions for slope 1/2, and every 177 for slope 1/256.",
        math.log(2) / slopes[-1],
        form=".0f",
    )
    assert near[-27] < 1e-6 < near[-26], "a millionth 26 positions back"
    assert max(far) / min(far) < 1.4, "nearly even"
    assert [1 / slope for slope in six] == [4, 16, 64, 256, 2, 8]


def test_gathered_terms_and_a_shifted_text_agree(values: dict[str, Any]) -> None:
    assert values["gathered"] < 1e-5
    assert values["moved"] < 1e-5


def test_rotation_by_hand_is_right(values: dict[str, Any]) -> None:
    plain, near, far, swapped = values["by_hand"]
    score = lambda pair: pair[0][0] * pair[1][0] + pair[0][1] * pair[1][1]  # noqa: E731
    assert [round(score(pair), 3) for pair in (plain, near, far, swapped)] == [4, 3.732, 3.732, 0.268]
    assert near[0] == pytest.approx([0, 2], abs=1e-6)
    check("$(1.232, 1.866)$ | 150°", *near[1], form=".3f")
    check("210° | $(-1.732, -1)$ |", far[0][0], form=".3f")
    check("$(-2.232, 0.134)$ |", *far[1], form=".3f")
    check("$2 \\cdot 1.866 = 3.732$", near[1][1], score(near), form=".3f")
    check("$3.866 - 0.134 = 3.732$", far[0][0] * far[1][0], far[1][1], score(far), form=".3f")
    cosine, sine = math.cos(math.pi / 6), math.sin(math.pi / 6)
    check("with cosine 0.866 and sine 0.5", cosine, form=".3f")
    check("with cosine 0.866 and sine 0.5", sine, form=".1f")
    check("$(2 \\cdot 0.866 - 1 \\cdot 0.5,\\; 1 \\cdot 0.866 + 2 \\cdot 0.5) = (1.232, 1.866)$", *near[1], form=".3f")
    turned = (2 * (2 - 1j)) * (cosine_of := complex(math.cos(math.pi / 3), math.sin(math.pi / 3)))
    check("= 0.5 + 0.866\\,\\mathrm i$", cosine_of.imag, form=".3f")
    check("is $4 \\cdot 0.5 + 2 \\cdot 0.866 = 3.732$ once more", turned.real, form=".3f")
    angle = math.degrees(math.atan2(2, 0) - math.atan2(near[1][1], near[1][0]))
    assert round(angle) == 33, "as Figure 12.1 says"


def test_absolute_positions_cancel(values: dict[str, Any]) -> None:
    assert values["six_lines"] < 1e-5
    least, most, direct = values["scores"]
    assert most - least < 1e-6
    assert abs(direct - least) < 1e-6
    assert values["state"][0] == [f"{name}_proj.weight" for name in "qkvo"]
    assert values["state"][1] < 1e-4


def test_a_quarter_turn_is_that_of_the_table_in_both_pairings(values: dict[str, Any]) -> None:
    assert [[round(number) for number in row] for row in values["quarter"]] == [[-2, 1, 3, 4], [-3, 2, 1, 4]]
    for row in ("$(-2, 1, 3, 4)$", "$(-3, 2, 1, 4)$"):
        assert row in PROSE


def test_pairings_differ_until_the_rows_are_reordered(values: dict[str, Any]) -> None:
    converted, forgotten, complex_gap = values["pairings"]
    assert complex_gap < 1e-5, "the complex form is the rotation of halves, reordered"
    assert values["reordered"] == [True, [16, 12]]
    assert converted < 1e-4
    assert forgotten > 1


def test_the_other_pairing_costs_about_a_nat() -> None:
    own, other = (
        [sum(losses) / len(losses) for losses in zip(*(run[name] for run in RECORD["pairings"]), strict=True)]
        for name in ("trained", "other")
    )
    assert sum(other) / 8 > sum(own) / 8 + 1, "rises by more than a nat"
    assert sum(other) / 8 > curve("none")[0], "worse than no positions"
    assert sum(other) / 8 == pytest.approx(sum(own) / 8 + 1, abs=0.2), "about a nat higher"
    assert all(run["other"][0] > run["trained"][0] + 0.3 for run in RECORD["pairings"]), "from the first characters"


def test_wavelengths_are_those_of_the_text(values: dict[str, Any]) -> None:
    waves, slowest = values["waves"]
    assert [round(wave) for wave in waves[:4]] == [6, 20, 63, 199]
    check("up to 19,869 positions", waves[-1], form=",.0f")
    check("needs 2,559,196 positions for a turn", slowest, form=",.0f")
    assert round(2 * math.pi * 10_000 ** (126 / 128)) == 54_410
    assert sum(wave <= 63 for wave in waves) == 3, "pairs 0 to 2 have gone all the way round"


def test_no_difference_brings_a_fast_pair_far_from_a_shown_angle() -> None:
    """The three pairs leave gaps of at most 13 degrees, so the middle of a gap is less than 7 from its ends."""
    gaps = []
    for pair in range(3):
        shown = sorted(math.degrees(offset * 10_000 ** (-2 * pair / 16)) % 360 for offset in range(64))
        gaps += [after - before for before, after in zip(shown, [*shown[1:], shown[0] + 360], strict=True)]
    check("gaps of at most 13° on their circles", round(max(gaps)), form="d")
    assert max(gaps) / 2 < 7
    assert "further than 7° from an angle that training has shown" in PROSE


def test_first_unused_bucket_of_t5_begins_at_67() -> None:
    bucket = lambda d: min(31, 16 + int(math.log(d / 16) / math.log(128 / 16) * 16))  # noqa: E731
    assert bucket(66) == bucket(63) < bucket(67)
    assert "distances from 67 on fall into buckets that training never used" in PROSE


def test_recorded_curves_are_told_as_they_were() -> None:
    rotary, shaw, alibi, t5, sines, none = map(curve, ("rotary", "shaw", "alibi", "t5", "sinusoidal", "none"))
    assert max(shaw[0], rotary[0]) < min(losses[0] for losses in (alibi, t5, sines, none)), "the lowest loss at 64"
    assert rotary[3] - rotary[0] == pytest.approx(0.5, abs=0.05), "half a nat at 256"
    assert rotary[-1] > max(other[-1] for other in (shaw, alibi, t5, sines, none))
    assert t5[-1] > t5[0] + 0.3, "T5's buckets climb too"
    check("stays level, within 0.01 of its loss at 64", max(abs(loss - alibi[0]) for loss in alibi))
    others = (rotary, alibi, t5, sines, none)
    assert all(shaw[place] < min(other[place] for other in others) for place in range(6)), (
        "the lowest mean at every length"
    )


def test_recorded_stretches_of_a_text_are_told_as_they_were() -> None:
    by_place = RECORD["by place"]
    sines, rotary = by_place["sinusoidal"], by_place["rotary"]
    assert [round(loss, 1) for loss in sines[1:3]] == [2.1, 2.8]
    assert max(rotary[:3]) < 1.9
    assert min(rotary[4:]) > 2.7
    assert max(by_place["alibi"]) - min(by_place["alibi"]) < 0.1
    assert max(by_place["shaw"]) - min(by_place["shaw"]) < 0.1


def test_stretches_of_the_page_are_those_of_the_function(values: dict[str, Any]) -> None:
    assert values["loss"] < 1e-5


def test_recorded_ways_to_stretch_are_told_as_they_were() -> None:
    plain, squeezed = way("as it is"), way("squeezed to a quarter")
    check("| as it is | 1.82 | 2.33 |", plain[0], plain[3])
    check("| interpolated | 2.84 | 2.87 |", squeezed[0], squeezed[3])
    four, eight = way("base for factor 4"), way("base for factor 8")
    check("| larger base, $c = 4$ | 1.85 | 1.98 |", four[0], four[3])
    check("| larger base, $c = 8$ | 1.89 | 1.93 |", eight[0], eight[3])
    assert max(four[0], eight[0]) < plain[0] + 0.1, "it loses little at 64"
    check("| 40 | 40% | 1.88 | 2.09 |", way("tuned")[3], way("squeezed, tuned")[3])
    check("| 200 | 200% | 1.74 | 1.82 |", way("tuned longer")[3], way("squeezed, tuned longer")[3])
    assert all(a > b + 0.3 for a, b in zip(squeezed[:4], plain[:4], strict=True)), "worse at every length up to 256"
    for run in RECORD["stretched"]:
        for longer in ("", " longer"):
            assert run["squeezed, tuned" + longer][3] > run["tuned" + longer][3], "in each run"
    assert [round(100 * n * 256 / (RECORD["steps"] * RECORD["trained"])) for n in RECORD["tuning"]] == [40, 200]


def test_slow_pairs_explain_a_part_of_the_failure_and_length_the_gain_of_tuning() -> None:
    every, fast, longer = (CONTROLS[name] for name in ("all pairs", "fast pairs", "continued at 64"))
    check("| all pairs rotated | 1.84 | 1.88 | 2.35 | 2.97 |", every[0], every[3], every[5])
    check("| pairs 0 to 2 only | 1.84 | 1.96 | 2.13 | 2.54 |", *(fast[n] for n in (0, 2, 3, 5)))
    for place in (3, 5):
        share = (fast[place] - fast[0]) / (every[place] - every[0])
        assert 0.5 < share < 0.65, "little more than half as much"
    check("| none | 1.84 | 2.35 |", every[0], every[3])
    check("| 40 steps at length 256 | 1.86 | 1.86 |", *(RECORD["stretched"][0]["tuned"][n] for n in (0, 3)))
    check("| as many characters at length 64 | 1.79 | 2.36 |", longer[0], longer[3])
    assert every == RECORD["curves"]["rotary"][0], "the control starts from the recorded model"


def test_ramp_of_llama_is_that_of_the_text(values: dict[str, Any]) -> None:
    kept, slowed, turns, gamma, ratio, difference = values["clocks"]
    assert (kept, slowed) == (29, 29)
    assert difference < 1e-12
    check("$500{,}000^{-1/2} = 0.001414$", 500_000**-0.5, form=".6f")
    check("$\\rho_{32} = 8{,}192 \\cdot 0.001414 / 6.283 = 1.84$ turns", turns)
    check("$\\gamma_{32} = 0.84 / 3 = 0.28$", gamma)
    check("$0.28 + 0.72/8 = 0.37$ times the old one", ratio)
    ratios = values["ratios"]["Llama 3.1"]
    assert ratios[28] == 1 > ratios[29]
    assert ratios[35] == pytest.approx(1 / 8)
    assert ratios[34] > 0.13
    assert values["ratios"]["NTK-aware"][-1] == pytest.approx(1 / 8)


def test_larger_base_is_that_of_the_formula() -> None:
    assert f"{10_000 * 4 ** (16 / 14):,.0f}" == "48,761"
    assert "$10{,}000 \\cdot 4^{16/14} = 48{,}761$" in PROSE


def test_last_position_of_an_interpolated_text_is_inside() -> None:
    check("The last position of a text of 256 becomes 63.75,", 255 / 4)


def test_published_bases_have_the_slowest_pairs_of_the_table() -> None:
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


def test_pairs_of_llama_3_that_make_a_turn_are_counted(values: dict[str, Any]) -> None:
    assert values["turning"] == 35
    assert "these are the pairs 0 to 34, 35 of 64. The other 29" in PROSE


def test_interpolated_neighbours_are_hardly_told_apart(values: dict[str, Any]) -> None:
    plain, squeezed = values["nearby"]
    assert round(100 * (1 - plain[1])) == 6
    check("interpolated, it loses 0.4%.", 100 * (1 - squeezed[1]), form=".1f")


def test_sharpening_of_yarn_is_its_formula() -> None:
    check("by $0.1 \\ln c + 1$, which is 1.14 for $c = 4$", 0.1 * math.log(4) + 1)


def test_angles_in_half_precision_are_nonsense(values: dict[str, Any]) -> None:
    rough, error = values["rough"]
    check("the cosine of pair 0 is wrong by 0.94.", abs(rough - math.cos(8_191)))
    assert 1e-4 < error < 0.01, "some thousandths"
    off = values["off"]
    check("the largest error of a cosine is 1.88,", off["bfloat16"][1])
    assert off["bfloat16"][0] == pytest.approx(1, abs=0.1), "about 1 at position 511"
    assert off["float16"][1] == pytest.approx(1, abs=0.1), "about 1 at position 8,191"
    assert 1e-4 < off["float32"][2] < 0.01


@pytest.mark.parametrize("kind", ["none", "sinusoidal", "t5", "rotary", "alibi", "shaw"])
def test_the_record_has_a_loss_for_every_length_and_seed(kind: str) -> None:
    assert [len(losses) for losses in RECORD["curves"][kind]] == [len(RECORD["lengths"])] * len(RECORD["seeds"])
