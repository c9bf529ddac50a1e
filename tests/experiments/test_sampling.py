"""The recorded sampling: names are told from other texts, loops are found, and the record has every rule for every seed."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tfcourse.data import number_to_words, recorded_sampling

RECORD = recorded_sampling()


@pytest.fixture(scope="module")
def sampling(experiment: Callable[[str], ModuleType]) -> Any:
    return experiment("sampling")


@pytest.mark.parametrize("number", [0, 7, 100, 999, 1000, 1001, 70_000, 403_958, 999_999])
def test_the_name_of_every_number_is_a_name(sampling: Any, number: int) -> None:
    assert sampling.is_name(number_to_words(number, "en"))


@pytest.mark.parametrize(
    "text", ["", "thousand", "six thousand, two", "three hundred thousand and forty six seven", "six six"]
)
def test_other_texts_are_no_names(sampling: Any, text: str) -> None:
    assert not sampling.is_name(text)


def test_a_loop_is_an_end_that_repeats(sampling: Any) -> None:
    assert sampling.loop_length([9, 8, 7, *[1, 2, 3] * 10]) == 3
    assert sampling.loop_length([*[1, 2, 3] * 10, 9]) == 0
    assert sampling.loop_length([9] * 40 + [1, 1]) == 0, "two equal tokens at the end are no loop"
    assert sampling.loop_length(list(range(60))) == 0


def test_cut_words_and_short_words_do_not_count(sampling: Any) -> None:
    assert sampling.words_of(sampling.whole_words("tence the Object has a val")) == ["object"]


def test_the_record_has_every_rule_for_every_seed(sampling: Any) -> None:
    assert RECORD["generated"] == sampling.COMMAND
    assert RECORD["seeds"] == list(sampling.SEEDS)
    for task in ("names", "prose"):
        assert len(RECORD[task]) == len(sampling.SEEDS)
        for run in RECORD[task]:
            assert run.keys() == {"temperature", *sampling.FILTERS, *sampling.ORDERS}
            assert len(run["temperature"]) == len(RECORD["temperatures"]) == len(sampling.TEMPERATURES)
            assert all(0 <= valid <= 1 and bits > 0 for valid, bits in run["temperature"])
    for run in RECORD["greedy"]:
        assert len(run["text"]) == len(run["p_text"]) == len(run["p_real"]) == sampling.NEW
