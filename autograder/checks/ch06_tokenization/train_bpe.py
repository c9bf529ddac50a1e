"""The check of ``train_bpe``: the commonest pair is merged, again and again."""

from __future__ import annotations

import string

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch06_tokenization.drawn_words import drawn_words, shuffled
from autograder.checks.ch06_tokenization.random_cases import each_merge_has_one_winner, random_corpus
from autograder.checks.ch06_tokenization.renamed import renamed_counts, renaming
from tfcourse import tokenization

LETTERS = string.ascii_lowercase


def _few_words(draw: Draw) -> dict[str, int]:
    rename = renaming(draw, "abcdef", into=LETTERS)
    counted = list({"abc": 9, "abd": 5, "fabc": 4, "cef": 6, "ef": 2}.items())
    return renamed_counts(rename, dict(counted[index] for index in draw.order(len(counted))))


def few_words(draw: Draw) -> Case:
    """Each merge has one winner, and the second depends on the first. Neither letters nor words come in alphabetical order."""
    while True:
        counts = _few_words(draw)
        met = "".join(dict.fromkeys("".join(counts)))
        often = sorted(met, key=lambda letter: -sum(word.count(letter) * count for word, count in counts.items()))
        if list(met) != sorted(met) != often:
            return Case({"word_counts": counts, "vocab_size": 10})


def many_words(draw: Draw) -> Case:
    """Drawn words, each of them often, of which no two pairs are equally common when one is merged."""
    while True:
        words = drawn_words(draw, "abcdeg", (3, 5, 4, 6, 4, 3))
        numbers = (draw.integers(3, 9, len(words)) * 10 + draw.permutation(len(words))).tolist()
        counts = dict(zip(words, numbers, strict=True))
        if each_merge_has_one_winner(counts, 12):
            return Case({"word_counts": counts, "vocab_size": 12})


def equal_pairs(draw: Draw) -> Case:
    """Equally common pairs: the order of the vocabulary decides, and new symbols come last in it.

    Of two pairs that tie, the loser is met first. The earliest letter of all is in a rare pair.
    """
    letters = shuffled(draw, LETTERS)[:8]
    earliest = letters.index(min(letters))
    letters[earliest], letters[0] = letters[0], letters[earliest]
    rare = sorted((letters[1] + letters[0], letters[2] + letters[3]), reverse=True)
    common = sorted((letters[4] + letters[5], letters[6] + letters[7]), reverse=True)
    one, more = draw.integers(2, 5, 2).tolist()
    counts = {common[0]: one, common[1]: one, rare[0]: one, rare[1]: one}
    if int(draw.integers(0, 2)):
        counts = {rare[0]: one, common[0]: one, rare[1]: one, common[1]: one}
    counts["".join(common)] = one + more
    return Case({"word_counts": counts, "vocab_size": 12})


def given_alphabet(draw: Draw) -> Case:
    """An alphabet that is not sorted, with letters that do not occur."""
    case = few_words(draw)
    used = sorted({letter for word in case.arguments["word_counts"] for letter in word})
    alphabet = [*used, *[letter for letter in shuffled(draw, LETTERS) if letter not in used][:2]]
    shuffled_alphabet = [alphabet[index] for index in draw.permutation(8).tolist()]
    return case.with_arguments(vocab_size=12, alphabet=shuffled_alphabet)


def nothing_left(draw: Draw) -> Case:
    """The vocabulary size allows more symbols than there are pairs, and the last pairs occur once."""
    first, second = drawn_words(draw, "abcde", (4, 3))
    return Case({"word_counts": {first: 1, second + "x": 1, "x": 5}, "vocab_size": 60})


def alphabet_alone(draw: Draw) -> Case:
    """No room for a merge."""
    case = few_words(draw)
    return case.with_arguments(vocab_size=int(draw.integers(1, 6)))


TRAIN_BPE = Exercise(
    reference=tokenization.train_bpe,
    rows=(
        rows.numbers(4.75, few_words, many_words, title="The most common pair is merged, and pairs are counted again."),
        rows.numbers(1, equal_pairs, name="ties", title="Of equally common pairs the order of the vocabulary decides."),
        rows.numbers(
            2, given_alphabet, name="alphabet", title="A given alphabet is sorted, and comes first as a whole."
        ),
        rows.numbers(0.75, nothing_left, name="exhausted", title="It goes on to the last pair, and ends there."),
        rows.edge(0.5, alphabet_alone, name="small", title="Without room for a merge there is none.", dtypes=()),
        rows.many(0.5, random_corpus, count=32, title="Many small corpora give the right merges."),
        rows.inputs_kept(0.5, few_words, given_alphabet),
    ),
)
