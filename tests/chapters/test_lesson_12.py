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
    "agree": "[(terms - literal).abs().max().item(), (early - late).abs().max().item(), (rotated - ours).abs().max().item(),"
    " max(scores) - min(scores), abs(direct - min(scores)), complex_gap, converted / 10, shift / 10, float((by_hand - scaled).abs().max()),"
    " (stretches.mean(dim=(0, 2)) - loss_by_position(logits, targets, bins=4)).abs().max().item()]",
    "by_hand": "[rotary_embedding(pair, torch.tensor([m, n]), math.pi / 6 * torch.ones(1)).tolist()"
    " for m, n in ((0, 0), (3, 1), (7, 5), (1, 3))]",
    "state": "list(layer.state_dict())",
    "quarter": "[rotary_embedding(torch.arange(1.0, 5)[None], torch.tensor([1]), torch.tensor([math.pi / 2, 0]), interleaved=way)"
    "[0].tolist() for way in (True, False)]",
    "pairings": "[forgotten, torch.equal(w_half, convert_rotary_weight(w, 2, to='half'))]",
    "waves": "(2 * math.pi / rotary_frequencies(16)).tolist()",
    "ramp": "[kept, slowed, int((2 * math.pi / rotary_frequencies(128, 500_000.0) <= 8192).sum())]",
    "ratios": "{name: ratio.tolist() for name, ratio in methods.items()}",
    "off": "[off['bfloat16'][8].item(), off['float16'][12].item(), off['float32'][-1].item(), error]",
}
# Numbers of the prose that come from the papers it cites, are settings of the code, or are worked out by hand.
GIVEN = """
1,024 0.2 3.1 10,000 0.25 2,048 32,768 1,000 2,560 8,192 500,000 8,191 131,071 4,096 1,000,000 16,384 4,097 0.1 0.01
0.866 0.5 1.232 1.866 1.732 2.232 0.134 3.732 3.866
1.84 1.96 2.13 2.54 1.79 2.36 0.05
"""

LESSON = Lesson("12_rotary", ASKED, GIVEN)
RECORD = recorded_positions()
CONTROLS = json.loads((ROOT / "experiments" / "results" / "rotary_controls.json").read_text(encoding="utf-8"))


def means(runs: list[list[float]]) -> list[float]:
    """Mean of the seeds, by length."""
    return [sum(points) / len(points) for points in zip(*runs, strict=True)]


CURVES = {kind: means(runs) for kind, runs in RECORD["curves"].items()}


class TestForm(LessonForm):
    """The lesson has the form of all lessons."""


def test_slopes_halve_the_weights(values: dict[str, Any]) -> None:
    slopes, near, far, six = values["slopes"]
    assert slopes == [2.0**-n for n in range(1, 9)]
    assert near[-27] < 1e-6 < near[-26], "a millionth 26 positions back"
    assert max(far) / min(far) < 1.4, "nearly even"
    assert [1 / slope for slope in six] == [4, 16, 64, 256, 2, 8]


def test_what_the_page_computes_in_two_ways_agrees(values: dict[str, Any]) -> None:
    assert max(values["agree"]) < 1e-5


def test_rotation_by_hand_is_right(values: dict[str, Any]) -> None:
    assert values["by_hand"] == [
        [pytest.approx(row, abs=5e-4) for row in rows]
        for rows in (
            ([2, 0], [2, 1]),
            ([0, 2], [1.232, 1.866]),
            ([-1.732, -1], [-2.232, 0.134]),
            ([1.732, 1], [-1, 2]),
        )
    ]
    scores = [sum(a * b for a, b in zip(*pair, strict=True)) for pair in values["by_hand"]]
    assert scores == pytest.approx([4, 3.732, 3.732, 0.268], abs=5e-4)
    angle = math.atan2(2, 0) - math.atan2(1.866, 1.232)
    assert round(math.degrees(angle)) == 33, "as Figure 12.1 says"


def test_a_layer_has_no_parameters_for_positions(values: dict[str, Any]) -> None:
    assert values["state"] == [f"{name}_proj.weight" for name in "qkvo"]


def test_pairings_differ_until_the_rows_are_reordered(values: dict[str, Any]) -> None:
    assert [[round(number) for number in row] for row in values["quarter"]] == [[-2, 1, 3, 4], [-3, 2, 1, 4]]
    forgotten, reordered = values["pairings"]
    assert forgotten > 1
    assert reordered


def test_the_other_pairing_costs_about_a_nat() -> None:
    own, other = (sum(means([run[name] for run in RECORD["pairings"]])) / 8 for name in ("trained", "other"))
    assert own + 1 < other < own + 1.2
    assert other > CURVES["none"][0], "worse than no positions"
    assert all(run["other"][0] > run["trained"][0] + 0.3 for run in RECORD["pairings"]), "from the first characters"


def test_only_the_first_three_pairs_show_all_their_angles(values: dict[str, Any]) -> None:
    """Their 64 angles leave gaps of at most 13 degrees, so the middle of a gap is less than 7 from its ends."""
    assert [round(wave) for wave in values["waves"][:4]] == [6, 20, 63, 199]
    gaps = []
    for pair in range(3):
        shown = sorted(math.degrees(offset * 10_000 ** (-2 * pair / 16)) % 360 for offset in range(64))
        gaps += [after - before for before, after in zip(shown, [*shown[1:], shown[0] + 360], strict=True)]
    assert 12.5 < max(gaps) < 13.5


def test_first_unused_bucket_of_t5_begins_at_67() -> None:
    def bucket(distance: int) -> int:
        return min(31, 16 + int(math.log(distance / 16) / math.log(128 / 16) * 16))

    assert bucket(66) == bucket(63) < bucket(67)


def test_recorded_curves_are_told_as_they_were() -> None:
    rotary, shaw, alibi, t5, sines, none = (
        CURVES[kind] for kind in ("rotary", "shaw", "alibi", "t5", "sinusoidal", "none")
    )
    assert sines[-1] > none[-1] + 0.2
    assert none[-1] - none[0] < 0.2
    assert none[0] > max(curve[0] for kind, curve in CURVES.items() if kind != "none"), "high from the start"
    assert max(shaw[0], rotary[0]) < min(losses[0] for losses in (alibi, t5, sines, none)), "the lowest loss at 64"
    assert rotary[3] - rotary[0] == pytest.approx(0.5, abs=0.05), "half a nat at 256"
    assert rotary[-1] == max(curve[-1] for curve in CURVES.values())
    assert t5[-1] > t5[0] + 0.3, "T5's buckets climb too"
    assert max(abs(loss - alibi[0]) for loss in alibi) < 0.015, "within 0.01, rounded"
    assert alibi[-1] < alibi[0], "it falls, though hardly"
    assert shaw == list(map(min, zip(*CURVES.values(), strict=True))), "the lowest mean at every length"
    assert all(run[-1] - run[0] == pytest.approx(0.05, abs=0.01) for run in RECORD["curves"]["shaw"]), "in both runs"
    for bare, others in zip(RECORD["curves"]["none"], zip(*RECORD["curves"].values(), strict=True), strict=True):
        assert sum(other[-1] < bare[-1] for other in others) == 2, "at 1,024 behind ALiBi and Shaw's vectors"
    assert max(shaw[-1], alibi[-1]) < none[-1] < min(rotary[-1], t5[-1], sines[-1])


def test_recorded_stretches_of_a_text_are_told_as_they_were() -> None:
    by_place = RECORD["by place"]
    assert [round(loss, 1) for loss in by_place["sinusoidal"][1:3]] == [2.1, 2.8]
    assert max(by_place["rotary"][:3]) < 1.9
    assert min(by_place["rotary"][4:]) > 2.7
    assert all(max(by_place[kind]) - min(by_place[kind]) < 0.1 for kind in ("alibi", "shaw"))


def test_recorded_ways_to_stretch_are_told_as_they_were() -> None:
    ways = {name: means([run[name] for run in RECORD["stretched"]]) for name in RECORD["stretched"][0]}
    plain = ways["as it is"]
    larger_bases = (ways["base for factor 4"], ways["base for factor 8"])
    assert max(base[0] for base in larger_bases) < plain[0] + 0.1, "it loses little at 64"
    assert max(base[3] for base in larger_bases) < plain[3] - 0.3, "and does much better at 256"
    for run in RECORD["stretched"]:
        assert all(a > b for a, b in zip(run["squeezed to a quarter"], run["as it is"], strict=True)), "at every length"
        assert run["squeezed, tuned"][3] > run["tuned"][3], "in each run"
        assert run["squeezed, tuned longer"][3] > run["tuned longer"][3], "in each run"
        assert run["squeezed, tuned"][5] < run["tuned"][5], "at 1,024 lower after 40 steps"
        assert run["squeezed, tuned longer"][5] > run["tuned longer"][5], "and higher after 200"


def test_slow_pairs_explain_a_part_of_the_failure_and_length_the_gain_of_tuning() -> None:
    every, fast, longer = (CONTROLS[name] for name in ("all pairs", "fast pairs", "continued at 64"))
    assert every == RECORD["curves"]["rotary"][0], "the control starts from the recorded model"
    assert [fast[n] for n in (0, 2, 3, 5)] == pytest.approx([1.84, 1.96, 2.13, 2.54], abs=0.005)
    assert [longer[0], longer[3]] == pytest.approx([1.79, 2.36], abs=0.005)
    for place in (3, 5):
        share = (fast[place] - fast[0]) / (every[place] - every[0])
        assert share == pytest.approx(0.6, abs=0.05), "about three fifths as much: two fifths are gone"


def test_ramp_of_llama_is_that_of_the_text(values: dict[str, Any]) -> None:
    assert values["ramp"] == [29, 29, 35]
    ratios = values["ratios"]["Llama 3.1"]
    assert ratios[28] == 1 > ratios[29]
    assert ratios[34] > 0.13 > ratios[35] == pytest.approx(1 / 8)
    assert values["ratios"]["NTK-aware"][-1] == pytest.approx(1 / 8)


def test_angles_in_half_precision_are_nonsense(values: dict[str, Any]) -> None:
    bfloat, half, *single = values["off"]
    assert [bfloat, half] == pytest.approx([1, 1], abs=0.1), "about 1 at positions 511 and 8,191"
    assert max(single) == pytest.approx(0.002, abs=3e-4), "about two thousandths"
