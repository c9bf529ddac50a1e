"""Watch byte-pair encoding at work: a text is cut again after every merge, and the vocabulary grows.

`merge_explorer` makes a figure to play with (see `tfcourse.lessons.explorers.base`), with a table of all merges where no script runs.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tfcourse.lessons.explorers.base import Explorer, folded, readable, table

__all__ = ["MergeExplorer", "merge_explorer"]

MOST_MERGES = 200
"""More of them would make the page slow, and nobody moves a slider so far."""

_PAIRS = 5


@dataclass(frozen=True)
class _Step:
    """What holds after a number of merges."""

    tokens: int
    size: int
    pairs: tuple[tuple[int, int, int], ...]
    """The commonest pairs, the next merge first: left and right symbol, as places in the vocabulary, and how often they stand together."""


@dataclass(frozen=True, repr=False)
class MergeExplorer(Explorer):
    """A text and its merges, ready to be shown; made by `merge_explorer`."""

    element = "merge-explorer"

    vocabulary: tuple[str, ...]
    """First the symbols of the text, then what the merges make."""
    words: tuple[tuple[int, ...], ...]
    """The words of the text as places in the vocabulary."""
    joined: tuple[tuple[int, ...], ...]
    """For each border between two neighbouring symbols of a word the merge that takes it away, counted from 1; 0 if none does."""
    merges: tuple[tuple[int, int, int, int], ...]
    """Left symbol, right symbol and the new one, as places in the vocabulary, and how often it was made."""
    steps: tuple[_Step, ...]
    """One more than there are merges."""

    def data(self) -> dict[str, Any]:
        """The text, its merges, and for each number of merges tokens, size of the vocabulary and the commonest pairs."""
        return {
            "vocabulary": self.vocabulary,
            "words": self.words,
            "joined": self.joined,
            "merges": self.merges,
            "steps": [[step.tokens, step.size, step.pairs] for step in self.steps],
        }

    def plain(self) -> str:
        """The text as it is cut in the end, and a row for each merge."""
        cut = "  ".join("·".join(map(_shown, pieces)) for pieces in self._pieces())
        rows = []
        for rank, ((left, right, _, count), step) in enumerate(zip(self.merges, self.steps[1:], strict=True), start=1):
            names = f"{rank}: {_shown(self.vocabulary[left])} + {_shown(self.vocabulary[right])}"
            rows.append((names, (count, step.tokens, step.size)))
        columns = ("times", "tokens", "vocabulary")
        merges = table(f"Merges: {self.caption}", columns, rows, cell=lambda number: f"<td>{number:.0f}</td>")
        return (
            f"<p>After all merges the text is cut like this: {html.escape(cut)}. Before them it has {self.steps[0].tokens} tokens and "
            f"its vocabulary {self.steps[0].size} symbols.</p>" + folded("Merges", merges, unfolded=True)
        )

    def summary(self) -> str:
        """How many words and merges there are."""
        return f"{len(self.words)} words, {len(self.merges)} merges, {self.steps[0].tokens} to {self.steps[-1].tokens} tokens"

    def _pieces(self) -> list[list[str]]:
        """The words after all merges."""
        pieces = []
        for word, borders in zip(self.words, self.joined, strict=True):
            cut = [self.vocabulary[word[0]]]
            for symbol, merge in zip(word[1:], borders, strict=True):
                if merge:
                    cut[-1] += self.vocabulary[symbol]
                else:
                    cut.append(self.vocabulary[symbol])
            pieces.append(cut)
        return pieces


def merge_explorer(words: Sequence[Sequence[str]], merges: Sequence[tuple[str, str]], *, caption: str) -> MergeExplorer:
    """Show how merges, one after the other, cut a text: its pieces, the most common pairs, and the vocabulary so far.

    Leave the result as the last value of a notebook cell. With the course's script the reader moves a slider, and can type a text to be
    merged instead; without it there is a table.

    Args:
        words: The text: words, or other pieces across whose borders nothing is merged, each as its symbols. A text is a sequence of
            characters, so a list of pieces will do.
        merges: Pairs of symbols in the order of their ranks, at most 200, as byte-pair encoding has learnt them from this text or from
            another one.
        caption: One sentence that describes the figure.

    Returns:
        An object that notebooks display.

    Raises:
        ValueError: If there are no words, a word or a symbol is empty, there are no merges or more than 200, or the caption is blank.
    """
    cut = [list(word) for word in words]
    if not cut or not all(word and all(word) for word in cut):
        raise ValueError(f"expected at least one word, and no empty word or symbol, got {cut}")
    if not 1 <= len(merges) <= MOST_MERGES:
        raise ValueError(f"expected 1 to {MOST_MERGES} merges, got {len(merges)}")
    symbols = sorted({symbol for word in cut for symbol in word})
    places = {symbol: place for place, symbol in enumerate(symbols)}
    symbols += [part for pair in merges for part in (*pair, "".join(pair))]
    vocabulary = {symbol: place for place, symbol in enumerate(dict.fromkeys(symbols))}
    base = tuple(tuple(places[symbol] for symbol in word) for word in cut)
    borders = [[0] * (len(word) - 1) for word in cut]
    size, learnt, steps, told = len(places), set(places), [], []
    for rank, (left, right) in enumerate(merges, start=1):
        steps.append(_step(cut, vocabulary, size, (left, right)))
        count = sum(_merge(word, (left, right), marks, rank) for word, marks in zip(cut, borders, strict=True))
        size += left + right not in learnt
        learnt.add(left + right)
        told.append((vocabulary[left], vocabulary[right], vocabulary[left + right], count))
    steps.append(_step(cut, vocabulary, size, None))
    return MergeExplorer(
        caption, tuple(map(readable, vocabulary)), base, tuple(map(tuple, borders)), tuple(told), tuple(steps)
    )


def _step(
    words: Sequence[Sequence[str]], vocabulary: dict[str, int], size: int, coming: tuple[str, str] | None
) -> _Step:
    """Count what there is before a merge."""
    counts = Counter(pair for word in words for pair in pairwise(word))
    if coming is not None:
        counts[coming] += 0
    order = sorted(counts, key=lambda pair: (pair != coming, -counts[pair], vocabulary[pair[0]], vocabulary[pair[1]]))
    pairs = tuple((vocabulary[left], vocabulary[right], counts[left, right]) for left, right in order[:_PAIRS])
    return _Step(sum(map(len, words)), size, pairs)


def _merge(word: list[str], pair: tuple[str, str], borders: list[int], rank: int) -> int:
    """Merge a pair in a word, from the left and without overlap; note the borders that vanish, and return how many."""
    open_borders = [place for place, merge in enumerate(borders) if not merge]
    done = place = 0
    while place + 1 < len(word):
        if (word[place], word[place + 1]) == pair:
            word[place : place + 2] = ["".join(pair)]
            borders[open_borders[place + done]] = rank
            done += 1
        place += 1
    return done


def _shown(symbol: str) -> str:
    """A symbol as a reader sees it, with spaces and line ends that can be seen."""
    return symbol.replace(" ", "␣").replace("\n", "⏎")
