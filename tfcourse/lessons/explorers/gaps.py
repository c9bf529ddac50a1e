"""Hide words of a sentence and see what a masked model puts into the gaps, for every set of gaps that there is.

`gap_explorer` makes a figure to play with (see `tfcourse.lessons.explorers.base`), with tables where no script runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from tfcourse.lessons.explorers.base import Explorer, folded, readable, table, weight_cell

__all__ = ["GapExplorer", "Guess", "gap_explorer"]

LONGEST = 9
"""More words have more sets of gaps than a page should carry."""

Guess = Sequence[tuple[str, float]]
"""Words and their probabilities, the most probable first; the word that is hidden is always one of them."""


@dataclass(frozen=True, repr=False)
class GapExplorer(Explorer):
    """Sentences and what a model puts into their gaps; made by `gap_explorer`."""

    element = "gap-explorer"

    vocabulary: tuple[str, ...]
    """Every word that is shown."""
    sentences: tuple[tuple[int, ...], ...]
    """The words of each sentence, as places in the vocabulary."""
    guesses: tuple[tuple[tuple[tuple[tuple[int, float], ...], ...], ...], ...]
    """By sentence, set of gaps (bit i for word i) and gap: words and their probabilities."""

    def data(self) -> dict[str, Any]:
        """The sentences, and the guesses for each of their sets of gaps."""
        return {"vocabulary": self.vocabulary, "sentences": self.sentences, "guesses": self.guesses}

    def plain(self) -> str:
        """For each sentence, how probable each word is if it is the only one that is hidden, and if all are."""
        tables = []
        for number, words in enumerate(self.sentences):
            rows = [(self.vocabulary[word], self._of_word(number, place)) for place, word in enumerate(words)]
            label = f"Sentence {number + 1}: {self.caption}"
            inside = table(label, ("hidden alone", "all hidden"), rows, cell=weight_cell, corner="word")
            tables.append(
                folded(f"Sentence {number + 1}: how probable the hidden word is", inside, unfolded=number == 0)
            )
        return "".join(tables)

    def summary(self) -> str:
        """How many sentences and sets of gaps there are."""
        return f"{len(self.sentences)} sentences, {sum(map(len, self.guesses))} sets of gaps"

    def _of_word(self, sentence: int, place: int) -> tuple[float, float]:
        """The probability of a word where it is hidden alone, and where everything is."""
        word, sets = self.sentences[sentence][place], self.guesses[sentence]
        return dict(sets[1 << place][0])[word], dict(sets[-1][place])[word]


def gap_explorer(
    sentences: Sequence[Sequence[str]], guesses: Sequence[Sequence[Sequence[Guess]]], *, caption: str
) -> GapExplorer:
    """Show what a model puts into the gaps of sentences.

    Leave the result as the last value of a notebook cell. With the course's script the reader hides words and takes them back; without it
    there are tables.

    Args:
        sentences: The words of each, at most nine.
        guesses: For each sentence 2^n entries, one for each set of gaps: in entry m word i is hidden if bit i of m is set. An entry has a
            guess for each of its gaps, from left to right, in which the hidden word occurs.
        caption: One sentence that describes the figure.

    Returns:
        An object that notebooks display.

    Raises:
        ValueError: If there are no sentences, one is empty or too long, or the caption is blank. If the numbers of guesses and gaps differ,
            or a guess lacks the hidden word or has an invalid probability.
    """
    if not sentences or len(sentences) != len(guesses):
        raise ValueError(f"expected guesses for each of at least one sentence, got {len(sentences)} and {len(guesses)}")
    for words, sets in zip(sentences, guesses, strict=True):
        _check(words, sets)
    named = chain(chain.from_iterable(sentences), (word for word, _ in _all_guesses(guesses)))
    places = {word: place for place, word in enumerate(dict.fromkeys(named))}
    told = tuple(
        tuple(tuple(tuple((places[word], round(share, 3)) for word, share in guess) for guess in gaps) for gaps in sets)
        for sets in guesses
    )
    numbered = tuple(tuple(places[word] for word in words) for words in sentences)
    return GapExplorer(caption, tuple(map(readable, places)), numbered, told)


def _all_guesses(guesses: Sequence[Sequence[Sequence[Guess]]]) -> chain[tuple[str, float]]:
    return chain.from_iterable(guess for sets in guesses for gaps in sets for guess in gaps)


def _check(words: Sequence[str], sets: Sequence[Sequence[Guess]]) -> None:
    """Raise an error if a sentence cannot be shown, or if the guesses do not fit its gaps."""
    if not 1 <= len(words) <= LONGEST or not all(words):
        raise ValueError(f"expected 1 to {LONGEST} words, none of them empty, got {list(words)}")
    if len(sets) != 2 ** len(words):
        raise ValueError(f"{len(words)} words have {2 ** len(words)} sets of gaps, got {len(sets)} entries")
    for number, gaps in enumerate(sets):
        hidden = [word for place, word in enumerate(words) if number >> place & 1]
        if len(gaps) != len(hidden):
            raise ValueError(f"entry {number} has {len(hidden)} gaps, got {len(gaps)} guesses")
        for word, guess in zip(hidden, gaps, strict=True):
            shares = dict(guess)
            if word not in shares or not all(0 <= share <= 1 for share in shares.values()):
                raise ValueError(f"entry {number}: expected probabilities, that of {word!r} among them, got {shares}")
