"""The check of ``best_pair``: which two symbols stand side by side most often.

Which letters win, where they stand, and the order of words and vocabulary are drawn: an answer that was right once is none again.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch06_tokenization.drawn_words import drawn_word, falling_pair, in_any_order, shuffled
from autograder.checks.combined_rows import also_asking
from tfcourse import tokenization

LETTERS = string.ascii_letters


def _letters(draw: Draw) -> Iterator[str]:
    """Letters of which each comes once."""
    return iter(shuffled(draw, LETTERS))


def _flank(draw: Draw, letters: Iterator[str]) -> str:
    """One to three letters that occur nowhere else."""
    return "".join(islice(letters, int(draw.integers(1, 4))))


def _case(draw: Draw, counted: Sequence[tuple[str, int]], earliest: str = "") -> Case:
    """Words with their counts in any order, and a vocabulary in which some letters come before all others that occur, in this order."""
    vocabulary = shuffled(draw, LETTERS)
    ordered = [*earliest, *sorted({letter for word, _ in counted for letter in word} - set(earliest))]
    if earliest:
        places = sorted(map(vocabulary.index, ordered))
        for index, letter in zip(places, ordered, strict=True):
            vocabulary[index] = letter
    counted = [counted[index] for index in draw.order(len(counted))]
    words, counts = [list(word) for word, _ in counted], [count for _, count in counted]
    return Case({"words": words, "counts": counts, "vocabulary": vocabulary})


def one_winner(draw: Draw) -> Case:
    """All words occur once. One pair wins; it is there turned round too, and another pair stands across the borders of all words."""
    letters = _letters(draw)
    (b, a), (y, z) = falling_pair(letters), islice(letters, 2)
    parts = [b + a, b + a, b + a, a + b, a + b]
    return _case(draw, [(y + _flank(draw, letters) + part + _flank(draw, letters) + z, 1) for part in parts])


def one_letter_words(draw: Draw) -> Case:
    """Words of a single letter and of none among the others."""
    letters = _letters(draw)
    d, c = falling_pair(letters)
    words = [_flank(draw, letters) + d + c, d + c + _flank(draw, letters)]
    return _case(draw, [*((word, 1) for word in words), (d, 9), (c, 9), ("", 9)])


def counted_words(draw: Draw) -> Case:
    """The pair in a frequent word beats a pair that occurs in more words."""
    letters = _letters(draw)
    b, a = falling_pair(letters)
    often = int(draw.integers(5, 9))
    rare = [(_flank(draw, letters) + a + b + _flank(draw, letters), count) for count in (1, 1, 2)]
    common = [(b + a + _flank(draw, letters), often), (_flank(draw, letters) + b + a, 1)]
    return _case(draw, [*rare, *common])


def _tied(draw: Draw, words: list[str], winner: str, earliest: str) -> Case:
    """Equally common pairs: the winner is neither the first nor the last word."""
    position = words.index(winner)
    case = _case(draw, [(word, 1) for word in words], earliest)
    others = [word for word in case.arguments["words"] if "".join(word) != words[position]]
    # Neither the first nor the last in the alphabet is met first.
    first = next(n for n, word in enumerate(others) if "".join(word) not in (min(words), max(words)))
    others.insert(0, others.pop(first))
    middle = 1 + int(draw.integers(0, len(others) - 1))
    count = int(draw.integers(2, 6))
    ordered = [*others[:middle], list(winner), *others[middle:]]
    return case.with_arguments(words=ordered, counts=[count] * len(words))


def left_decides(draw: Draw) -> Case:
    """Equally common pairs: the left symbol that stands earlier in the vocabulary decides. Another pair stands across a border."""
    letters = _letters(draw)
    pairs = sorted("".join(falling_pair(letters)) for _ in range(6))
    winner = pairs[int(draw.integers(1, 5))]  # neither the first nor the last text in the alphabet
    return _tied(draw, pairs, winner, winner[1] + winner[0] + pairs[-1][0])


def left_before_right(draw: Draw) -> Case:
    """Equally common pairs: the winner has the earliest left symbol, though its right symbol comes last of all."""
    letters = _letters(draw)
    pairs = sorted("".join(falling_pair(letters)) for _ in range(5))
    winner = pairs[int(draw.integers(1, 4))]
    others = "".join(in_any_order(draw, *"".join(pair for pair in pairs if pair != winner)))
    return _tied(draw, pairs, winner, winner[0] + others + winner[1])


def right_comes_first(draw: Draw) -> Case:
    """Equally common pairs: the earliest symbol of all is the right one of a pair that does not win."""
    letters = _letters(draw)
    pairs = sorted("".join(falling_pair(letters)) for _ in range(5))
    winner, other = (pairs[index] for index in 1 + draw.permutation(3)[:2])
    rest = "".join(in_any_order(draw, *"".join(pair for pair in pairs if pair not in (winner, other))))
    return _tied(draw, pairs, winner, other[1] + winner[0] + rest + other[0] + winner[1])


def right_decides(draw: Draw) -> Case:
    """Equally common pairs begin alike: the right symbol decides."""
    *rights, first = sorted(islice(_letters(draw), 7))  # the left symbol comes last in the alphabet
    right = rights[int(draw.integers(1, 5))]
    return _tied(draw, [first + letter for letter in rights], first + right, right + rights[-1])


def overlapping(draw: Draw) -> Case:
    """A pair that overlaps itself, against one that occurs in more words."""
    letters = _letters(draw)
    (c, b), a = falling_pair(letters), next(letters)
    words = [_flank(draw, letters) + c + b + _flank(draw, letters) for _ in range(3)]
    return _case(draw, [(word, 1) for word in [*words, _flank(draw, letters) + 5 * a]])


def twice_in_a_word(draw: Draw) -> Case:
    """A pair that occurs twice in a word, against one that is earlier in the vocabulary."""
    letters = _letters(draw)
    (d, c), (x, b) = falling_pair(letters), islice(letters, 2)
    twice = _flank(draw, letters) + d + c + _flank(draw, letters) + d + c + _flank(draw, letters)
    others = [_flank(draw, letters) + next(letters) for _ in range(3)]
    return _case(draw, [(word, 1) for word in [x + b, twice, *others]], earliest=x)


def no_pair(draw: Draw) -> Case:
    """No word has two symbols."""
    letters = _letters(draw)
    return _case(draw, [(next(letters), 3), (next(letters), 4), ("", 1)])


def any_words(draw: Draw) -> Case:
    """Words of few letters that come again and again, with counts, of which one pair is commonest."""
    while True:
        words = [drawn_word(draw, "abc", int(draw.integers(0, 7))) for _ in range(1 + int(draw.integers(0, 4)))]
        counted = [(word, 1 + int(draw.integers(0, 9))) for word in words]
        pairs: Counter[tuple[str, str]] = Counter()
        for word, count in counted:
            for pair in pairwise(word):
                pairs[pair] += count
        numbers = sorted(pairs.values())
        if numbers and numbers[-2:] != [numbers[-1]] * 2:
            return _case(draw, counted)


def any_ties(draw: Draw) -> Case:
    """Words of two symbols of any length that occur equally often: the vocabulary decides between all of them."""
    letters = list(islice(_letters(draw), 5))
    longer = ["".join(letters[n] for n in draw.integers(0, 5, length).tolist()) for length in (2, 2, 3)]
    symbols = list(dict.fromkeys(letters + longer))
    words = [[symbols[n] for n in draw.integers(0, len(symbols), 2).tolist()] for _ in range(6)]
    return Case({"words": words, "counts": [2] * 6, "vocabulary": [symbols[n] for n in draw.order(len(symbols))]})


BEST_PAIR = Exercise(
    reference=tokenization.best_pair,
    rows=(
        rows.numbers(2.5, one_winner, title="The most common pair wins.", gradients=False),
        rows.numbers(
            1.25,
            counted_words,
            counted_words,
            name="counts",
            title="A pair counts as often as its word occurs.",
            gradients=False,
        ),
        also_asking(
            rows.numbers(
                1,
                left_decides,
                left_before_right,
                right_comes_first,
                right_decides,
                name="ties",
                title="Of equally common pairs the order of the vocabulary decides.",
                gradients=False,
            ),
            rows.many(0, any_ties, count=32, title=""),
        ),
        also_asking(
            rows.numbers(
                0.5,
                overlapping,
                twice_in_a_word,
                name="twice",
                title="All positions in a word count, including overlapping ones, in many random words.",
                gradients=False,
            ),
            rows.many(0, any_words, title=""),
        ),
        rows.edge(
            0.5,
            no_pair,
            one_letter_words,
            name="none",
            title="Words of one letter have no pair, and without any pair the result is None.",
            dtypes=(),
        ),
        rows.inputs_kept(0.25, one_winner),
    ),
)
