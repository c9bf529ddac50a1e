"""The recorded sampling: names are told from other texts, loops are found, and the record has every rule for every seed."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tfcourse.data import number_to_words


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
