"""The check of ``train_bpe``: the commonest pair is merged, again and again."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch06_tokenization.drawn_words import drawn_words
from autograder.checks.ch06_tokenization.renamed import renamed_counts, renaming
from tfcourse import tokenization


def few_words(draw: Draw) -> Case:
    """Each merge has one winner, and the second depends on the first."""
    rename = renaming(draw, "abcdef")
    counts = renamed_counts(rename, {"abc": 9, "abd": 5, "fabc": 4, "cef": 6, "ef": 2})
    return Case({"word_counts": counts, "vocab_size": 10})


def many_words(draw: Draw) -> Case:
    """Drawn words, each of them often."""
    words = drawn_words(draw, "abcdeg", (3, 5, 4, 6, 4, 3))
    counts = (draw.integers(3, 9, len(words)) * 10 + draw.permutation(len(words))).tolist()
    return Case({"word_counts": dict(zip(words, counts, strict=True)), "vocab_size": 12})


def equal_pairs(draw: Draw) -> Case:
    """Pairs that are equally common: the order of the vocabulary decides, and what is new comes last in it."""
    one, more = draw.integers(2, 5, 2).tolist()
    counts = {"dx": one, "ay": one, "cz": one, "bx": one, "aydx": one + more}
    return Case({"word_counts": counts, "vocab_size": 11})


def given_alphabet(draw: Draw) -> Case:
    """An alphabet that is not sorted, with letters that do not occur."""
    case = few_words(draw)
    return Case({**case.arguments, "vocab_size": 12, "alphabet": list("zfdbyace")})


def nothing_left(draw: Draw) -> Case:
    """More symbols are asked for than there are pairs, and the last pairs occur once."""
    first, second = drawn_words(draw, "abcde", (4, 3))
    return Case({"word_counts": {first: 1, second + "x": 1, "x": 5}, "vocab_size": 60})


def alphabet_alone(draw: Draw) -> Case:
    """No room for a merge."""
    case = few_words(draw)
    return case.with_arguments(vocab_size=int(draw.integers(1, 6, 1)))


TRAIN_BPE = Exercise(
    reference=tokenization.train_bpe,
    rows=(
        rows.numbers(4, few_words, many_words, title="The commonest pair is merged, and counted anew."),
        rows.numbers(
            2.25, equal_pairs, name="ties", title="Of equally common pairs the order of the vocabulary decides."
        ),
        rows.numbers(
            2, given_alphabet, name="alphabet", title="A given alphabet is sorted, and comes first as a whole."
        ),
        rows.numbers(0.75, nothing_left, name="exhausted", title="It goes on to the last pair, and ends there."),
        rows.edge(0.5, alphabet_alone, name="small", title="Without room for a merge there is none.", dtypes=()),
        rows.inputs_kept(0.5, few_words),
    ),
)
