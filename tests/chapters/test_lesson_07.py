"""The lesson of chapter 07 runs, shows figures that everybody can read, and states no number that is not true."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest
import torch

from tfcourse import sampling
from tfcourse.data import recorded_sampling, recorded_writing
from tfcourse.decoding import beam_search
from tfcourse.lessons.figures.scenes import ch07_decoding
from tfcourse.sampling import locally_typical, min_p, repetition_penalty, sampler_chain, top_k, top_p

from .form import LessonForm
from .lesson import Lesson

# What the finished kernel is asked for: a name, and the expression that the lesson's own variables answer.
ASKED = {
    "sizes": "[V, parameters, unseen_loss, least]",
    "sure": "sure.topk(2).values",
    "open": "open_.topk(12).values",
    "searches": "searches",
    "turning": "turning",
    "plain": "plain",
    "temperatures": "{str(t): run for t, run in by_temperature.items()}",
    "gains": "gains",
    "rows": "ROWS",
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
GIVEN = {
    "with $p = (0.4, 0.25, 0.15, 0.1, 0.06, 0.04)$",
    "$0.8 \\cdot 1.75^{3-2} = 1.4$",
    "a run of 2, 0.8.",
    "at 0.5, at 1.5 and at 2",
    "How many of the six tokens do these settings keep: top-k 3, top-p 0.7, min-p 0.3, top-n-sigma 1 and typical 0.2?",
    "with a best token of 0.9 the two are close, with one of 0.1 top-a's floor",
    "From temperature 0.5 to 1.5",
    "At 0.5 the text is dull, at 1.5 it is nonsense.",
    "between temperature 0.5 and temperature 1, in entropy",
    "every setting but temperature 1.5.",
    "Min-p 0.5 requires half the probability of the best token, here 0.2.",
    "The token that crosses 0.85 is the last one kept.",
    "reach a mass of 0.3;",
    "each number from 0 to 999,999.",
    "With a threshold of 0.12, three",
}

LESSON = Lesson("07_decoding", ASKED, GIVEN, beside=r"\|[^|]*\|")
SOURCE, check = LESSON.source, LESSON.check
RECORD, WRITING = recorded_sampling(), recorded_writing()
EXAMPLE = torch.tensor([0.4, 0.25, 0.15, 0.1, 0.06, 0.04]).log()


# ---------------------------------------------------------------------------------------------- the page


class TestForm(LessonForm):
    """The lesson has the form of all lessons."""


def test_playground_begins_with_a_temperature_and_a_nucleus_over_three_distributions(pages: list[str]) -> None:
    (page,) = [page for page in pages if page.startswith("<sampler-explorer")]
    data = json.loads(re.search(r"<script[^>]*>(.*?)</script>", page)[1])  # type: ignore[index]
    assert [name for name, _ in data["chain"]] == ["temperature", "top_p"]
    assert len(data["names"]) == 3


# ---------------------------------------------------------------------------------------------- the model


def test_the_model_is_nearly_a_perfect_writer(values: dict[str, Any]) -> None:
    V, parameters, loss, least = values["sizes"]
    assert V == 52
    assert parameters < 110_000
    assert least < loss < least + 0.1, "within a tenth of a perfect writer"
    check("$\\log_2 10^6 \\approx 19.9$", math.log2(10**6), form=".1f")
    assert values["sure"][0] > 0.95
    assert all(0.04 < p < 0.2 for p in values["open"][:8]), "each of the digits has about a tenth"
    assert values["open"][11] < 0.02, "and behind them stands the row"


def test_a_better_search_finds_a_worse_text(values: dict[str, Any]) -> None:
    searches = values["searches"]
    assert [searches[K][1] for K in "123"] == ["ABC∎", "ACB∎", "A∎"]
    check(
        "ends at 0.048. A second-best step, C after A, leads to 0.054", searches["1"][0], searches["2"][0], form=".3f"
    )
    check("$0.5 \\cdot 0.2 = 0.10$", searches["3"][0])
    check("Greedy search is a beam of one, and finds 0.048.", searches["1"][0], form=".3f")
    check("And two texts that barely count as texts have 0.10.", searches["3"][0])
    check("(The empty text also has 0.10.)", 0.1)


def best_of_table(rows: dict[str, dict[str, float]], width: int) -> str:
    """The best text that a beam finds in the table of the lesson."""
    tokens = "∎ABC"

    def model(texts: torch.Tensor) -> torch.Tensor:
        logits = torch.full((*texts.shape, 5), -math.inf, dtype=torch.float64)
        for i, ids in enumerate(texts.tolist()):
            text = "".join(tokens[token] for token in ids if token < 4)
            for token, p in rows.get(text[-2:], dict.fromkeys(tokens, 0.25)).items():
                logits[i, -1, tokens.index(token)] = math.log(p) if p else -math.inf
        return logits

    _, found = beam_search(model, torch.tensor([[4]]), beam_width=width, max_new_tokens=5, eos=0)[0]
    return "".join(tokens[token] for token in found)


def test_a_wide_beam_finds_the_longer_text_once_the_end_token_is_calibrated(values: dict[str, Any]) -> None:
    rows = values["rows"]
    assert best_of_table(rows, 3) == "A∎"
    calibrated = {**rows}
    for context in ("", "A"):
        end = rows[context]["∎"]
        factor = (1 - end / 10) / (1 - end)
        calibrated[context] = {token: p * factor for token, p in rows[context].items()} | {"∎": end / 10}
        assert sum(calibrated[context].values()) == pytest.approx(1)
    assert [best_of_table(calibrated, width) for width in (3, 8)] == ["ACB∎"] * 2
    assert "Take nine tenths of that away, at the start and after A" in LESSON.prose


def test_the_beam_gains_almost_nothing_on_names(values: dict[str, Any]) -> None:
    greedy, wide = values["beams"]
    assert -1e-3 < greedy - wide < 1  # both may find the same texts; their sums are rounded


def test_the_longer_text_wins_from_these_strengths_on(values: dict[str, Any]) -> None:
    check("from $\\alpha \\approx 0.34$ on", values["turning"]["power"])
    check("with the other form from 0.94 on", values["turning"]["wu"])
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
    bits = [run[1] for run in runs.values()]
    assert bits == sorted(bits)
    assert 0.8 < values["plain"][0] < 1
    check("passes the 19.9 of a perfect writer", math.log2(10**6), form=".1f")
    check("A perfect writer has 19.9.", math.log2(10**6), form=".1f")


def test_filters_help_but_not_clearly_more_than_a_lower_temperature(values: dict[str, Any]) -> None:
    own = RECORD["temperatures"].index(1.0)
    for task in ("names", "prose"):
        for name, settings in RECORD["filters"].items():
            for i in range(len(settings)):
                filtered = [run[name][i] for run in RECORD[task]]
                unfiltered = [run["temperature"][own] for run in RECORD[task]]
                assert mean_of(filtered, 0) > mean_of(unfiltered, 0), "more often valid"
                assert mean_of(filtered, 1) < mean_of(unfiltered, 1), "with less choice"
    gains = values["gains"]
    assert sum(name.startswith("prose") for name in gains) == 8
    assert sum(name.startswith("names") for name in gains) == 7
    assert "names, top-k 9" not in gains
    for name, (mean, half) in gains.items():
        if name.startswith("names"):
            assert mean < 0.01, "no filter gains a full point"
        else:
            assert mean - half < 0, "no interval lies above zero"
    assert min(mean for name, (mean, _) in gains.items() if name.startswith("prose")) < 0, "some means lie below"
    for run in RECORD["names"]:
        assert all(valid >= 0.98 for valid, bits in run["temperature"] if bits < 19.9)


def mean_of(runs: list[list[float]], part: int) -> float:
    return sum(run[part] for run in runs) / len(runs)


def test_mistakes_compound_over_a_text() -> None:
    check("if a draw goes wrong with probability 0.005, a text of ten tokens", 0.005, form=".3f")
    check("$0.995^{10} = 0.95$, and one of a thousand tokens with probability 0.007.", 0.995**10)
    check("$0.995^{10} = 0.95$, and one of a thousand tokens with probability 0.007.", 0.995**1000, form=".3f")


def test_digits_stay_equally_probable_below_one(values: dict[str, Any]) -> None:
    digits = torch.tensor(values["open"][:9], dtype=torch.float64)

    def entropy(temperature: float) -> float:
        p = digits ** (1 / temperature) / (digits ** (1 / temperature)).sum()
        return float(-(p * p.log()).sum())

    assert entropy(0.5) > 0.95 * entropy(1.0), "nine digits that were about equally probable stay so"
    skewed = torch.softmax(EXAMPLE / 0.5, -1)
    assert -(skewed * skewed.log()).sum() < 0.85 * -(EXAMPLE.exp() * EXAMPLE).sum(), (
        "where tokens differ, choice shrinks"
    )


def test_the_order_matters_on_names_for_the_nucleus_and_not_for_min_p(values: dict[str, Any]) -> None:
    for (_, half), bits, valid in values["equal_entropy"].values():
        assert max(*valid, half) <= 1
        assert abs(bits[0] - bits[1]) < 0.05 * bits[0], "at equal entropy"
    gains = {name: mean for name, ((mean, _), _, _) in values["equal_entropy"].items()}
    mean, half = values["equal_entropy"]["names, top_p"][0]
    assert mean - half > 0, "the filter that comes first writes more names"
    assert mean > 0.03, "several in a hundred"
    assert abs(gains["names, min_p"]) < 0.03
    for name in ("prose, top_p", "prose, min_p"):
        assert abs(gains[name]) < 0.1, "no clear difference"
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
    assert WRITING["prompts"] == 16
    check("54% of them in greedy texts, none in the real paragraphs.", 100 * greedy["repeated"], form=".0f")
    assert real["repeated"] == 0
    pairs = list(zip(WRITING["p_greedy"], WRITING["p_real"], strict=True))
    assert all(of_greedy > of_real for of_greedy, of_real in pairs[1:]), "less probable than greedy ones"
    check("half of their tokens have a probability below 0.05, and almost no greedy token has.", 0.05)
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
    for name in ("top-k 20", "top-p 0.9"):
        assert cool["bits"] < settings[name]["bits"] < own["bits"], name
        assert cool["words"] > settings[name]["words"] > own["words"], name
    for name in ("greedy, penalty 1.3", "greedy, DRY"):
        assert settings[name]["repeated"] < 0.05, "most of the repetition ends"
        assert settings[name]["words"] > greedy["words"] - 0.02, "as good as those of greedy search"
    below = [name for name, one in settings.items() if one["log_p"] < real["log_p"]]
    assert below == ["temperature 1.5"], "real text is less probable than every other setting"
    assert "loople" in greedy["text"]
    check("has read 169,000 characters;", 1000 * round(WRITING["characters"] / 1000), form=",d")
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
    samples = [torch.randn(100, generator=generator) * scale for scale in (0.0, 0.1, 1.0, 5.0)]
    for name, options in FILTERS.items():
        kept = [getattr(sampling, name)(z, *options.values())[z.argmax()] > -math.inf for z in samples]
        assert all(kept) or name == "locally_typical", name
    assert locally_typical(EXAMPLE, 0.2)[0] == -math.inf


def test_greedy_texts_loop_and_dry_ends_the_loops() -> None:
    for run in RECORD["greedy"]:
        assert run["loops"] > 0.2
        assert run["loops_with_dry"] < 0.05, "almost no loops"


def test_a_fixed_count_keeps_nine_where_one_would_do(values: dict[str, Any]) -> None:
    keeps = values["keeps"]
    assert keeps["top-k 9"] == [9, 9, 9]
    assert keeps["min-p 0.1"][0] == keeps["top-p 0.9"][0] == 1
    assert 7 <= keeps["min-p 0.1"][1] <= 20
    on_prose = [counts[2] for counts in keeps.values()]
    assert min(on_prose) == 9
    assert max(on_prose) > 30, "more than thirty characters"


def test_the_examples_of_the_filters() -> None:
    p = EXAMPLE.exp()
    assert f"{float(-(p * p.log()).sum()):.2f}" == "1.53"
    check("is 1.53 nats", float(-(p * p.log()).sum()))
    assert (locally_typical(EXAMPLE, 0.2) > -math.inf).tolist() == [False, True, False, False, False, False]
    check("typical 0.2 keeps the second alone")


def test_the_drawings_of_the_families_cut_as_the_filters_do() -> None:
    cuts = {
        "rank": top_k(EXAMPLE, 3),
        "mass": top_p(EXAMPLE, 0.85),
        "threshold": min_p(EXAMPLE, 0.5),
        "entropy": locally_typical(EXAMPLE, 0.3),
    }
    for family, logits in cuts.items():
        kept = [i for i, logit in enumerate(logits.tolist()) if logit > -math.inf]
        assert list(ch07_decoding._CUTS[family][1]) == kept, family
        for p in torch.softmax(logits, -1)[kept].tolist():
            assert f"{p:.3g}" in ch07_decoding.FAMILY_ALTS[family], family  # type: ignore[index]


# ---------------------------------------------------------------------------------------------- penalties and order


def test_dividing_depends_on_the_zero_of_the_logits(values: dict[str, Any]) -> None:
    logits, said = torch.tensor([[2.0, 1.0, -1.0]]), torch.tensor([[0]])
    before = torch.softmax(logits, -1)[0, 0].item()
    check("falls from 0.71 to 0.55", before, values["shifted"]["0"])
    check("makes the first logit −1, which falls to −1.5; plus 3 makes it 5, which falls to 3.3.", 5 / 1.5, form=".1f")
    check("With a penalty of 1.5 its")
    for shift in (0, -3, 3):
        p = torch.softmax(repetition_penalty(logits + shift, said, 1.5), -1)[0, 0].item()
        assert values["shifted"][str(shift)] == pytest.approx(p)
    assert len({round(p, 2) for p in values["shifted"].values()}) == 3


def test_dry_lowers_what_would_go_on_with_a_repetition(values: dict[str, Any]) -> None:
    lowered = values["lowered"]
    assert lowered["c"] == pytest.approx(1.4)
    assert lowered["y"] == pytest.approx(0.8)
    assert lowered["a"] == lowered["b"] == lowered["z"] == 0


def test_the_thermostat_holds_its_average_although_no_token_has_it(values: dict[str, Any]) -> None:
    mean, target, most, least = values["surprise"]
    assert abs(mean - target) < 0.25
    assert most > 2.5, "a digit"
    assert least < 0.2, "the grammar"
    check("Hardly a token of our names has 1.2 bits", target, form=".1f")


def test_orders_keep_what_the_text_says(values: dict[str, Any]) -> None:
    orders = values["orders"]
    assert orders["top_p"] == [3, 2, 4]
    assert orders["min_p"] == [4, 2, 6]
    assert orders["top_n_sigma"] == [2, 2, 2]
    check("Top-p 0.8 keeps three of the six tokens")
    check("A temperature of 0.5 sharpens")
    check("And min-p 0.2, which keeps four?")


def test_a_penalty_before_the_filter_lets_another_token_in_and_after_it_does_not(values: dict[str, Any]) -> None:
    alone, before, after = values["positions"].values()
    assert alone == after == "ABC"
    assert before == "BCD"
