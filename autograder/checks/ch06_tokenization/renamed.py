"""Words and merges of a fixed structure in letters that are drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from autograder.checking.draw import Draw
from autograder.checks.ch06_tokenization.drawn_words import shuffled

Merges = list[tuple[str, str]]


def renaming(draw: Draw, letters: str, into: str | None = None) -> Callable[[str], str]:
    """A function that replaces each of the letters by another one, the same everywhere.

    Args:
        draw: the stream.
        letters: what may be replaced.
        into: what takes their place, in another order; the letters themselves by default.
    """
    names = dict(zip(letters, shuffled(draw, into or letters), strict=False))
    return lambda text: "".join(names.get(letter, letter) for letter in text)


def renamed_merges(rename: Callable[[str], str], merges: str) -> Merges:
    """The merges ``"a b, ab c"`` in other letters."""
    pairs = (pair.split() for pair in merges.split(","))
    return [(rename(first), rename(right)) for first, right in pairs]


def renamed_counts(rename: Callable[[str], str], counts: Mapping[str, int]) -> dict[str, int]:
    """Words with their counts in other letters."""
    return {rename(word): count for word, count in counts.items()}
