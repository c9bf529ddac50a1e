"""The comparison of translators: its arithmetic, that it is fair and repeatable, and what its recorded run says."""

import json
from itertools import islice
from pathlib import Path

import pytest
import torch

from tfcourse.data import Pair, Vocabulary, recorded_translation

ROOT = Path(__file__).parents[2]
EXPERIMENTS = ROOT / "experiments"


@pytest.fixture(scope="module")
def translation(experiment):
    return experiment("translation")


# One thread, as in a training.
pytestmark = pytest.mark.usefixtures("one_thread")


# --------------------------------------------------------------------------------------------------------- arithmetic


def test_the_learning_rate_goes_straight_up_to_its_peak_and_straight_down(translation):
    rates = [translation.schedule(step, 50) for step in range(1, 51)]
    assert rates[:5] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert rates[5:] == pytest.approx([(51 - step) / 46 for step in range(6, 51)])
    assert translation.schedule(1, 1) == 1


def test_matches_are_split_by_length_in_bins_of_four(translation):
    parts = translation.by_length([1, 4, 5, 8, 8, 13], [True, False, True, True, False, False])
    assert parts == [
        {"shortest": 1, "longest": 4, "pairs": 2, "exact": 0.5},
        {"shortest": 5, "longest": 8, "pairs": 3, "exact": pytest.approx(2 / 3)},
        {"shortest": 13, "longest": 16, "pairs": 1, "exact": 0.0},
    ]


def test_the_command_that_is_recorded_has_no_files_in_it(translation):
    words = ["--steps", "9", "--json", "a.json", "--record=b.json", "--jobs", "1"]
    assert translation._without_files(words) == ["--steps", "9", "--jobs", "1"]


# ----------------------------------------------------------------------------------------------------------- fairness


@pytest.mark.parametrize("name", ["additive", "location", "transformer"])
def test_where_a_translator_looked_is_a_row_of_weights_for_each_token_it_wrote(translation, name):
    pair = Pair("twenty-one", "einundzwanzig")
    source, target = Vocabulary.from_texts([pair.source]), Vocabulary.from_texts([pair.target])
    torch.manual_seed(0)
    model = translation.TRANSLATORS[name].make(len(source), len(target))
    seen = translation.look(model, pair, source, target)
    assert seen["source"] == ["twenty-", "##one", "<eos>"]
    assert len(seen["weights"]) == (8 if name == "transformer" else 1)
    for matrix in seen["weights"].values():
        assert len(matrix) <= translation._MOST_WORDS
        assert all(len(row) == 3 and sum(row) == pytest.approx(1, abs=2e-3) for row in matrix)


# ----------------------------------------------------------------------------------------------------------- the record


@pytest.fixture(scope="module")
def recorded():
    return recorded_translation()


@pytest.fixture(scope="module")
def runs(recorded):
    return {run["name"]: run for run in recorded["runs"]}


@pytest.fixture(scope="module")
def pairs(translation):
    """The pairs of the task, by their split: spelling them takes as long as the steps of training below."""
    return {split: translation.Task().pairs(split) for split in ("train", "validation", "test")}


def test_the_record_is_of_models_that_have_just_as_many_parameters_now(translation, runs, pairs):
    source, target = (len(Vocabulary.from_texts(pair[side] for pair in pairs["train"])) for side in (0, 1))
    models = {name: translator.make(source, target) for name, translator in translation.TRANSLATORS.items()}
    sizes = {name: sum(p.numel() for p in model.parameters()) for name, model in models.items()}
    assert {name: run["parameters"] for name, run in runs.items()} == sizes
    assert max(sizes.values()) / min(sizes.values()) < 1.25


@pytest.mark.parametrize("name", ["seq2seq", "dot", "transformer"])
def test_training_begins_now_as_it_began_when_it_was_recorded(translation, runs, pairs, monkeypatch, name):
    """A cell, a loss, a tokenizer or an order of pairs that has changed since shows in the first mean of the losses."""
    (steps, recorded), *_ = runs[name]["loss"]
    every = translation._endless
    monkeypatch.setattr(translation, "_endless", lambda *arguments: islice(every(*arguments), steps))
    monkeypatch.setattr(translation.Task, "pairs", lambda task, split: pairs[split])
    # After so few steps there is nothing to be seen in translations.
    monkeypatch.setattr(translation, "translate", lambda model, pairs, source, target: [""] * len(pairs))
    monkeypatch.setattr(translation, "look", lambda *arguments: {})
    run = translation.train(name, runs[name]["rate"], translation.Task(), translation.Budget())
    assert run.parameters == runs[name]["parameters"]
    assert run.loss == [(steps, pytest.approx(recorded, rel=1e-4))], (
        "the code is no longer the one that was recorded: run the command of the record again"
    )


def test_the_plain_translator_has_the_best_of_the_rates_that_were_tried(translation):
    file = EXPERIMENTS / "results" / "translation_rates.json"
    found = json.loads(file.read_text(encoding="utf-8"))
    assert [row[:2] for row in found["rows"]] == [["plain sequence to sequence", rate] for rate in translation.RATES]
    shares = {rate: float(share.rstrip("%")) for _, rate, share in found["rows"]}
    assert max(shares, key=shares.get) == translation.TRANSLATORS["seq2seq"].rate
    assert found["text"] in (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")


def test_the_page_of_benchmarks_shows_the_figures_of_the_record(recorded):
    found = json.loads((EXPERIMENTS / "results" / "translation.json").read_text(encoding="utf-8"))
    assert found["text"] in (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert recorded["generated"] == f"by {found['command']}; change that command and run it again, not this file"
    assert [row[0] for row in found["rows"]] == [run["title"] for run in recorded["runs"]]
    assert [row[6] for row in found["rows"]] == [f"{run['test']:.1%}" for run in recorded["runs"]]
