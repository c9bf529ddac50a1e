"""Draw words, counts and vocabularies from a seed for the checks of tokenisation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from autograder.checking.draw import Draw
from tfcourse.tokenization import byte_characters, pre_tokenize, train_bpe


def drawn_word(draw: Draw, letters: str, length: int) -> str:
    """A word of so many letters."""
    return "".join(letters[index] for index in draw.integers(0, len(letters), length).tolist())


def drawn_words(draw: Draw, letters: str, lengths: Sequence[int]) -> list[str]:
    """Words of these lengths, no two alike."""
    words: list[str] = []
    for length in lengths:
        word = drawn_word(draw, letters, length)
        while word in words:
            word = drawn_word(draw, letters, length)
        words.append(word)
    return words


def shuffled(draw: Draw, letters: str) -> list[str]:
    """The letters in another order."""
    return [letters[index] for index in draw.permutation(len(letters)).tolist()]


def in_any_order(draw: Draw, *items: str) -> list[str]:
    """The items in any order."""
    return [items[index] for index in draw.order(len(items))]


def segments(draw: Draw, needed: str, others: Sequence[str], low: int = 1, high: int = 4) -> str:
    """Text of several pieces: the needed one, and before and behind it pieces that are drawn, so many on each side."""
    before, behind = (
        "".join(others[index] for index in draw.integers(0, len(others), int(count)).tolist())
        for count in draw.integers(low, high, 2)
    )
    return before + needed + behind


def falling_pair(letters: Iterator[str]) -> tuple[str, str]:
    """Two letters of which the first comes later in the alphabet, so that a pair that is sorted is another pair."""
    low, high = sorted(islice(letters, 2))
    return high, low


def byte_level_encoding(texts: Sequence[str], merges: int) -> tuple[list[str], list[tuple[str, str]]]:
    """A vocabulary of the 256 byte characters and some merges, learnt from texts."""
    spelling = byte_characters()
    counts: dict[str, int] = {}
    for text in texts:
        for piece in pre_tokenize(text):
            spelled = "".join(spelling[byte] for byte in piece.encode("utf-8"))
            counts[spelled] = counts.get(spelled, 0) + 1
    return train_bpe(counts, 256 + merges, alphabet=spelling)
