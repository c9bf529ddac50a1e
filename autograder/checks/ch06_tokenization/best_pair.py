"""The check of ``best_pair``: which two symbols stand side by side most often."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch06_tokenization.drawn_words import drawn_words, shuffled
from tfcourse import tokenization

LETTERS = "efghijk"


def _corpus(draw: Draw, words: list[str], counts: list[int], vocabulary: list[str] | None = None) -> Case:
    order = vocabulary or shuffled(draw, "abcd" + LETTERS + "xyz")
    return Case({"words": [list(word) for word in words], "counts": counts, "vocabulary": order})


def one_winner(draw: Draw) -> Case:
    """All words occur once. *b a* wins; *a b* is there too, and *z y* stands across the borders of all words."""
    before, behind = shuffled(draw, LETTERS), shuffled(draw, LETTERS)
    parts = ["ba", "ba", "ba", "ab", "ab"]
    return _corpus(draw, [f"y{before[i]}{part}{behind[i]}z" for i, part in enumerate(parts)], [1] * 5)


def one_letter_words(draw: Draw) -> Case:
    """Words of a single letter and of none among the others."""
    first, second = drawn_words(draw, LETTERS, (1, 1))
    return _corpus(draw, ["d", f"{first}dc", "", f"dc{second}", "c"], [9, 1, 9, 1, 9])


def counted_words(draw: Draw) -> Case:
    """The pair of a word that occurs often beats the one that stands in more words."""
    one, two = drawn_words(draw, LETTERS, (1, 1))
    often = int(draw.integers(5, 9, 1))
    return _corpus(draw, [f"{one}ab", "ba", f"ab{two}"], [1, often, 2])


def left_decides(draw: Draw) -> Case:
    """Three pairs are equally common: the left symbol that stands earlier in the vocabulary decides. *c y* stands across a border."""
    return _corpus(draw, ["xa", "zc", "yb"], [3, 3, 3], [*shuffled(draw, LETTERS), *"czaxby"])


def right_decides(draw: Draw) -> Case:
    """Three equally common pairs begin alike: the right symbol decides."""
    return _corpus(draw, ["za", "zb", "zc"], [2, 2, 2], [*shuffled(draw, LETTERS), *"bzac"])


def overlapping(draw: Draw) -> Case:
    """A pair that overlaps itself, against one that stands in more words."""
    one, two, three = drawn_words(draw, LETTERS, (1, 1, 1))
    return _corpus(draw, ["aaaaa", f"{one}cb", f"cb{two}", f"{three}cb"], [1, 1, 1, 1])


def twice_in_a_word(draw: Draw) -> Case:
    """A pair that stands in a word twice, against one that stands earlier in the vocabulary."""
    one = drawn_words(draw, LETTERS, (1,))[0]
    return _corpus(draw, ["xb", f"dc{one}dc"], [1, 1], [*"xbcd", *LETTERS])


def no_pair(draw: Draw) -> Case:
    """No word has two symbols."""
    return _corpus(draw, ["a", "b", ""], [3, 4, 1])


BEST_PAIR = Exercise(
    reference=tokenization.best_pair,
    rows=(
        rows.numbers(1.25, one_winner, one_letter_words, title="The commonest pair wins."),
        rows.numbers(1.5, counted_words, name="counts", title="A pair counts as often as its word occurs."),
        rows.numbers(
            1.5,
            left_decides,
            right_decides,
            name="ties",
            title="Of equally common pairs the order of the vocabulary decides.",
        ),
        rows.numbers(
            1, overlapping, twice_in_a_word, name="twice", title="All places in a word count, overlapping ones too."
        ),
        rows.edge(0.5, no_pair, name="none", title="Without any pair the answer is None.", dtypes=()),
        rows.inputs_kept(0.25, one_winner),
    ),
)
