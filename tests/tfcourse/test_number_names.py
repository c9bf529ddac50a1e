"""The language of number names: its tokens are those of the library, and its counts are those of a search through all names."""

from __future__ import annotations

import random

import pytest
import torch

from tfcourse.data import BOS, EOS, number_to_words, tokenize
from tfcourse.number_names import NumberNames


@pytest.fixture(scope="module")
def names() -> NumberNames:
    return NumberNames()


def test_names_are_those_that_the_library_spells(names: NumberNames) -> None:
    for number in [0, 7, 100, 999, 1000, 1001, 1100, 30_030, 999_999, *random.Random(0).sample(range(10**6), 500)]:
        begin, *inside, end = names.encode(number)
        assert (begin, end) == (BOS, EOS)
        assert [names.vocabulary.tokens[token] for token in inside] == tokenize(number_to_words(number, "en"))


def test_numbers_of_a_million_and_more_and_below_zero_are_refused(names: NumberNames) -> None:
    for number in (-1, 10**6):
        with pytest.raises(ValueError, match="999,999"):
            names.encode(number)


def test_names_that_fit_are_those_of_a_search_through_all_of_them(names: NumberNames) -> None:
    rng = random.Random(1)
    everything = [
        names.encode(number)[1:-1] for number in range(100_000)
    ]  # longer names of five tokens are even tens of thousands
    for number in (17_000, 100_000 - 1, 342, 4, 20_000):
        row = names.encode(number)[1:-1]
        asked = [names.mask if rng.random() < 0.4 else token for token in row]
        if len(row) > 5:  # with so many tokens larger numbers fit too, unless the name begins as it did
            asked[:3] = row[:3]
        fit = [
            other
            for other in everything
            if len(other) == len(asked) and all(a in (b, names.mask) for a, b in zip(asked, other, strict=True))
        ]
        above = [n for n in range(100_000, 1_000_000, 1_000) if _fits(names.encode(n)[1:-1], asked, names.mask)]
        total, shares = names.fitting(asked)
        assert total == len(fit) + len(above), names.written(asked)
        expected = torch.zeros_like(shares)
        for other in [*fit, *(names.encode(n)[1:-1] for n in above)]:
            expected[range(len(other)), other] += 1 / total
        torch.testing.assert_close(shares, expected)


def _fits(row: list[int], asked: list[int], mask: int) -> bool:
    return len(row) == len(asked) and all(a in (b, mask) for a, b in zip(asked, row, strict=True))


def test_every_name_fits_itself_once_and_what_is_no_name_fits_nothing(names: NumberNames) -> None:
    for number in random.Random(2).sample(range(10**6), 100):
        row = names.encode(number)[1:-1]
        assert names.fitting(row)[0] == 1
        assert names.is_name(row)
        assert not names.is_name([*row, *row])
    assert not names.is_name([])
    assert not names.is_name([names.mask])


def test_half_of_the_sentences_of_the_acceptability_task_are_names_and_the_others_are_none(names: NumberNames) -> None:
    tokens, labels = names.acceptability(range(500, 700), seed=3)
    assert abs(labels.float().mean().item() - 0.5) < 0.01
    for row, label in zip(tokens.tolist(), labels.tolist(), strict=True):
        assert names.is_name(row[1 : row.index(EOS)]) == bool(label)
    assert torch.equal(tokens, names.acceptability(range(500, 700), seed=3)[0])


def test_gaps_can_be_read(names: NumberNames) -> None:
    row = names.encode(42)
    row[2] = names.mask
    assert names.written(row) == "forty- [MASK]"
