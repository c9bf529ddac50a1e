"""The lesson of chapter 07 runs, shows figures that everybody can read, and states no number that is not true."""

from __future__ import annotations

import itertools
import math
import operator
from typing import Any

import pytest
import torch

from tfcourse import sampling
from tfcourse.data import recorded_sampling, recorded_writing
from tfcourse.lessons.figures.scenes import ch07_decoding
from tfcourse.sampling import locally_typical, min_p, sampler_chain, top_k, top_p

from .form import LessonForm
from .lesson import Lesson

# What the finished kernel is asked for: a name, and the expression that the lesson's own variables answer.
ASKED = {
    "sizes": "[V, unseen_loss, least]",
    "sure": "sure.topk(2).values",
    "open": "open_.topk(12).values",
    "searches": "searches",
    "turning": "turning",
    "plain": "plain",
    "temperatures": "{str(t): run for t, run in by_temperature.items()}",
    "gains": "gains",
    # Nine tenths less for the end token, at the start and after A; the rest goes to the letters in proportion.
    "calibrated": "[ROWS.update({text: {token: p * (1 - row['∎'] / 10) / (1 - row['∎']) for token, p in row.items()} | {'∎': row['∎'] / 10}"
    " for text, row in ROWS.items() if text in ('', 'A')}), *(''.join(TOKENS[token] for token in beam_search(table_model, "
    "torch.tensor([[START]]), beam_width=K, max_new_tokens=5, eos=END)[0][1]) for K in (3, 8))]",
    "beams": "[-beam_search(model, prompt, beam_width=K, max_new_tokens=14)[0][0] / math.log(2) for K in (1, 16)]",
    "spread": "list(spread.values())",
    "equal_entropy": "orders_at_equal_entropy",
    "kept_last": "kept_last",
    "against_temperature": "against_temperature",
    "positions": "positions",
    "keeps": "keeps",
    "shifted": "{str(shift): p for shift, p in shifted.items()}",
    "lowered": "lowered",
    "surprise": "[mean_surprise, target, max(surprises), min(surprises)]",
    "orders": "orders",
}
# Numbers of the prose that come from papers, are settings of the code next to them, or are worked out on the spot.
GIVEN = """
0.4 0.25 0.15 0.1 0.06 0.04 0.8 1.75 0.5 1.5 0.7 0.3 0.2 0.9 0.85 999,999 0.12 0.05 0.005 0.995
"""

LESSON = Lesson("07_decoding", ASKED, GIVEN)
RECORD, WRITING = recorded_sampling(), recorded_writing()
EXAMPLE = torch.tensor([0.4, 0.25, 0.15, 0.1, 0.06, 0.04]).log()


class TestForm(LessonForm):
    """The lesson has the form of all lessons."""


# ---------------------------------------------------------------------------------------------- the model


def test_the_model_is_nearly_a_perfect_writer(values: dict[str, Any]) -> None:
    V, loss, least = values["sizes"]
    assert V == 52
    assert least < loss < least + 0.1, "within a tenth of a perfect writer"
    assert values["sure"][0] > 0.95
    assert all(0.04 < p < 0.2 for p in values["open"][:8]), "each of the digits has about a tenth"
    assert values["open"][11] < 0.02, "and behind them stands the row"


def test_a_better_search_finds_a_worse_text(values: dict[str, Any]) -> None:
    assert [text for _, text in values["searches"].values()] == ["ABC∎", "ACB∎", "A∎"]


def test_a_wide_beam_finds_the_longer_text_once_the_end_token_is_calibrated(values: dict[str, Any]) -> None:
    assert values["calibrated"][1:] == ["ACB∎"] * 2


def test_the_beam_gains_almost_nothing_on_names(values: dict[str, Any]) -> None:
    greedy, wide = values["beams"]
    assert -1e-3 < greedy - wide < 1  # both may find the same texts; their sums are rounded


def test_the_longer_text_wins_from_these_strengths_on(values: dict[str, Any]) -> None:
    crossing = math.log(math.log(0.054) / math.log(0.1)) / math.log(4 / 2)
    assert values["turning"]["power"] == pytest.approx(crossing, abs=2e-3)


# ---------------------------------------------------------------------------------------------- what is drawn


def test_validity_falls_with_the_temperature_and_choice_grows(values: dict[str, Any]) -> None:
    runs = values["temperatures"]
    assert runs["0.5"][0] > 0.97, "below 1 the mistakes vanish"
    assert runs["0.5"][1] > 17, "and the choice hardly shrinks"
    assert 0.8 < runs["1.0"][0] < 1, "some of a hundred are wrong"
    assert runs["1.5"][0] < runs["1.0"][0] - 0.1
    assert runs["2.0"][0] < 0.5, "most are broken"
    assert runs["2.0"][1] > 22, "beyond the 19.9 of a perfect writer"
    assert [run[1] for run in runs.values()] == sorted(run[1] for run in runs.values())
    assert 0.8 < values["plain"][0] < 1


def test_filters_take_entropy_for_validity(values: dict[str, Any]) -> None:
    own = RECORD["temperatures"].index(1.0)
    for task, (name, settings) in itertools.product(("names", "prose"), RECORD["filters"].items()):
        unfiltered = [sum(part) for part in zip(*(run["temperature"][own] for run in RECORD[task]), strict=True)]
        for i in range(len(settings)):
            valid, bits = (sum(part) for part in zip(*(run[name][i] for run in RECORD[task]), strict=True))
            assert valid > unfiltered[0]
            assert bits < unfiltered[1]


def test_at_equal_entropy_no_filter_is_clearly_ahead(values: dict[str, Any]) -> None:
    prose = [gain for name, gain in values["gains"].items() if name.startswith("prose")]
    names = {name: mean for name, (mean, _) in values["gains"].items() if name.startswith("names")}
    assert [len(prose), len(names)] == [8, 7]
    assert "names, top-k 9" not in names
    assert max(names.values()) < 0.01, "no filter gains a full point"
    assert sum(values["gains"]["names, top-k 20"]) < 0, "the interval lies below zero"
    assert [name for name, (mean, half) in values["gains"].items() if abs(mean) > half + 1e-9] == ["names, top-k 20"]
    assert sum(abs(values["gains"][name][0]) + values["gains"][name][1] < 5e-4 for name in names) == 5, "0.0 ± 0.0"
    assert all(mean - half < 0 for mean, half in prose), "no interval lies above zero"
    assert min(mean for mean, _ in prose) < 0, "some means lie below"
    assert min(valid for run in RECORD["names"] for valid, bits in run["temperature"] if bits < 19.9) >= 0.98


def test_the_order_matters_on_names_for_the_nucleus_and_not_for_min_p(values: dict[str, Any]) -> None:
    at_equal = values["equal_entropy"]
    assert all(abs(bits[0] - bits[1]) < 0.05 * bits[0] for _, bits, _ in at_equal.values()), "at equal entropy"
    mean, half = at_equal["names, top_p"][0]
    assert mean > max(half, 0.03), "the filter that comes first writes several names in a hundred more"
    assert abs(at_equal["names, min_p"][0][0]) < 0.03
    assert all(abs(at_equal[f"prose, {name}"][0][0]) < 0.1 for name in ("top_p", "min_p")), "no clear difference"
    sure, digits = values["kept_last"]["top_p"]
    assert sure > 1, "several tokens where one is right"
    assert digits >= 5
    assert values["kept_last"]["min_p"][0] == 1
    assert all(mean < 0 for mean, _ in values["against_temperature"].values()), "fewer valid words on average"


def test_orders_that_keep_as_many_tokens_are_the_same_distribution() -> None:
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        logits = torch.randn(1, 12, generator=generator, dtype=torch.float64) * 3
        nothing = torch.zeros(1, 1, dtype=torch.long)
        first = sampler_chain(logits, nothing, [("min_p", {"p": 0.1}), ("temperature", {"t": 2.0})])
        count = int((first > -math.inf).sum())
        last = sampler_chain(logits, nothing, [("temperature", {"t": 2.0}), ("top_k", {"k": count})])
        torch.testing.assert_close(first.softmax(-1), last.softmax(-1))


def test_a_hot_nucleus_keeps_a_crowd_where_one_token_is_right(values: dict[str, Any]) -> None:
    (late_sure, *_), (early_sure, early_digits, _) = values["spread"]
    assert early_sure == 1 < 12 < late_sure
    assert 7 <= early_digits <= 12


def test_greedy_texts_repeat_themselves_and_are_more_probable_than_real_ones() -> None:
    greedy, real = WRITING["settings"]["greedy"], WRITING["real"]
    assert greedy["repeated"] > real["repeated"] == 0
    assert all(map(operator.gt, WRITING["p_greedy"][1:], WRITING["p_real"][1:])), "less probable than greedy ones"
    assert WRITING["p_real"][50] < 0.05 < WRITING["p_greedy"][98]
    first, second = WRITING["halves"]
    assert abs(first - second) < 0.03, "in our greedy texts it does not rise"


def test_one_prompt_is_continued_as_the_text_says() -> None:
    settings, real = WRITING["settings"], WRITING["real"]
    assert len(settings) == 9
    greedy, beam = settings["greedy"], settings["beam of 5"]
    assert min(greedy["repeated"], beam["repeated"]) > 0.5, "more than half"
    assert beam["log_p"] > greedy["log_p"] + 0.2, "texts that are more probable"
    assert abs(beam["repeated"] - greedy["repeated"]) < 0.05, "and repeat themselves as much"
    cool, own, hot = (settings[f"temperature {t}"] for t in ("0.5", "1", "1.5"))
    assert cool["bits"] < own["bits"] < hot["bits"], "the entropy grows"
    assert cool["words"] > own["words"] > hot["words"], "and the words break up"
    for cut in (settings["top-k 20"], settings["top-p 0.9"]):
        assert cool["bits"] < cut["bits"] < own["bits"]
        assert cool["words"] > cut["words"] > own["words"]
    for penalised in (settings["greedy, penalty 1.3"], settings["greedy, DRY"]):
        assert penalised["repeated"] < 0.05, "most of the repetition ends"
        assert penalised["words"] > greedy["words"] - 0.02, "as good as those of greedy search"
    below = [name for name, one in settings.items() if one["log_p"] < real["log_p"]]
    assert below == ["temperature 1.5"], "real text is less probable than every other setting"
    assert "loople" in greedy["text"]
    assert 0.9e6 < WRITING["parameters"] < 1.1e6


FILTERS: dict[str, dict[str, float]] = {
    "top_k": {"k": 3},
    "top_p": {"p": 0.7},
    "min_p": {"p": 0.3},
    "top_a": {"a": 0.5},
    "top_n_sigma": {"n": 1.0},
    "epsilon_cutoff": {"epsilon": 0.08},
    "eta_cutoff": {"epsilon": 0.2},
    "tail_free": {"z": 0.9},
    "locally_typical": {"mass": 0.2},
}


def test_only_rank_and_sigma_keep_their_set_at_every_temperature() -> None:
    for name, options in FILTERS.items():
        rule = getattr(sampling, name)
        sets = {tuple((rule(EXAMPLE / t, *options.values()) > -math.inf).tolist()) for t in (0.25, 0.5, 1.0, 2.0, 4.0)}
        assert (len(sets) == 1) == (name in ("top_k", "top_n_sigma")), name


def test_all_filters_but_typical_keep_the_most_probable_token() -> None:
    generator = torch.Generator().manual_seed(0)
    for name, z in itertools.product(
        FILTERS, torch.randn(4, 100, generator=generator) * torch.logspace(-2, 1, 4)[:, None]
    ):
        kept = getattr(sampling, name)(z, *FILTERS[name].values()) > -math.inf
        assert kept[z.argmax()] or name == "locally_typical", name


def test_greedy_texts_loop_and_dry_ends_the_loops() -> None:
    assert all(run["loops"] > 0.2 and run["loops_with_dry"] < 0.05 for run in RECORD["greedy"])


def test_a_fixed_count_keeps_nine_where_one_would_do(values: dict[str, Any]) -> None:
    sure, digits, prose = zip(*values["keeps"].values(), strict=True)
    assert values["keeps"]["top-k 9"] == [9, 9, 9]
    assert sorted(sure)[-2:] == [1, 9]
    assert 7 <= min(digits) <= max(digits) <= 20
    assert min(prose) == 9
    assert max(prose) > 30, "more than thirty characters"


def test_the_examples_of_the_filters_keep_as_many_as_told() -> None:
    filters = (("top_k", 3), ("top_p", 0.7), ("min_p", 0.3), ("top_n_sigma", 1.0), ("locally_typical", 0.2))
    kept = [int((getattr(sampling, name)(EXAMPLE, x) > -math.inf).sum()) for name, x in filters]
    assert kept == [3, 3, 3, 2, 1]
    assert locally_typical(EXAMPLE, 0.2)[1] > -math.inf, "the second alone"


def test_the_drawings_of_the_families_cut_as_the_filters_do() -> None:
    cuts = {
        "rank": top_k(EXAMPLE, 3),
        "mass": top_p(EXAMPLE, 0.85),
        "threshold": min_p(EXAMPLE, 0.5),
        "entropy": locally_typical(EXAMPLE, 0.3),
    }
    for family, logits in cuts.items():
        kept = [i for i, logit in enumerate(logits.tolist()) if logit > -math.inf]
        assert list(ch07_decoding._CUTS[family][1]) == kept, family  # type: ignore[index]


# ---------------------------------------------------------------------------------------------- penalties and order


def test_dividing_depends_on_the_zero_of_the_logits(values: dict[str, Any]) -> None:
    assert len({round(p, 2) for p in values["shifted"].values()}) == 3


def test_dry_lowers_what_would_go_on_with_a_repetition(values: dict[str, Any]) -> None:
    assert values["lowered"] == pytest.approx({"c": 1.4, "y": 0.8, "a": 0, "b": 0, "z": 0})


def test_the_thermostat_holds_its_average_although_no_token_has_it(values: dict[str, Any]) -> None:
    mean, target, most, least = values["surprise"]
    assert mean == pytest.approx(target, abs=0.25)
    assert least < 0.2 < 2.5 < most, "the grammar, and a digit"


def test_orders_keep_what_the_text_says(values: dict[str, Any]) -> None:
    assert values["orders"] == {"top_p": [3, 2, 4], "min_p": [4, 2, 6], "top_n_sigma": [2, 2, 2]}


def test_a_penalty_before_the_filter_lets_another_token_in_and_after_it_does_not(values: dict[str, Any]) -> None:
    assert list(values["positions"].values()) == ["ABC", "BCD", "ABC"]
