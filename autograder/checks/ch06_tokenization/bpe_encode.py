"""The check of ``bpe_encode``: a word is cut by merges in the order in which they were learnt."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch06_tokenization.drawn_words import drawn_word, in_any_order, segments
from autograder.checks.ch06_tokenization.random_cases import random_merges
from autograder.checks.ch06_tokenization.renamed import renamed_merges, renaming
from tfcourse import tokenization

MERGES = "b c, a b, ab c, c d, bc d, e e"


def order_decides(draw: Draw) -> Case:
    """Longest piece first, leftmost pair first and the latest merge first all cut it otherwise."""
    rename = renaming(draw, "abcdef")
    word = segments(draw, "abcd", ("ee", "bc", "cd", "ab", "abcd"))
    return Case({"word": rename(word), "merges": renamed_merges(rename, MERGES)})


def later_merges(draw: Draw) -> Case:
    """A word that takes a chain of merges, each of which joins the result of the previous merge."""
    rename = renaming(draw, "abcdef")
    merges = renamed_merges(rename, "c d, b cd, e f, a bcd, ef abcd")
    return Case({"word": rename(segments(draw, "fefabcdcd", ("cd", "f", "bcd", "efabcd", "a"))), "merges": merges})


def pairs_that_compete(draw: Draw) -> Case:
    """Two pairs share a symbol, and the one behind was learnt first; and a piece that no order of the merges leads to."""
    rename = renaming(draw, "abcdefg")
    merges = renamed_merges(rename, "a b, ab c, d e, f d, d g, f dg")
    return Case({"word": rename(segments(draw, "abcfdeabfdg", ("ab", "c", "g", "fdg", "fde"))), "merges": merges})


def several(draw: Draw) -> Case:
    """A pair that occurs more than once, and one that overlaps itself."""
    rename = renaming(draw, "abcdef")
    before, behind, pairs = draw.integers(0, 4, 3).tolist()
    word = "d" * before + "eee" + "d" * (1 + behind) + "bc" * (2 + pairs) + "a"
    return Case({"word": rename(word), "merges": renamed_merges(rename, MERGES)})


def unknown_characters(draw: Draw) -> Case:
    """Characters that no merge knows, before, between and behind others."""
    rename = renaming(draw, "abcdef")
    mergeable = map(rename, in_any_order(draw, "bc", "ab", "cd", "d"))
    word = "".join(piece + drawn_word(draw, "é東?ßλ", int(draw.integers(1, 4))) for piece in mergeable)
    return Case({"word": "é" + word, "merges": renamed_merges(rename, MERGES)})


def empty(draw: Draw) -> Case:
    """A word without characters."""
    return pairs_that_compete(draw).with_arguments(word="")


def two_characters(draw: Draw) -> Case:
    """A word of two characters that a merge joins to one symbol."""
    rename = renaming(draw, "abcdefg")
    merges = renamed_merges(rename, "a b, ab c, d e, f d, d g, f dg")
    return Case({"word": rename(in_any_order(draw, "ab", "de", "fd")[0]), "merges": merges})


def one_character(draw: Draw) -> Case:
    """Nothing to merge with."""
    return pairs_that_compete(draw).with_arguments(word=drawn_word(draw, "abcd", 1))


def no_merges(draw: Draw) -> Case:
    """Nothing was learnt."""
    return pairs_that_compete(draw).with_arguments(merges=[])


BPE_ENCODE = Exercise(
    reference=tokenization.bpe_encode,
    rows=(
        rows.numbers(
            2.25,
            order_decides,
            name="order",
            title="Of all pairs in the word, the one that was learnt first is merged first.",
        ),
        rows.numbers(
            2.25, later_merges, pairs_that_compete, title="Merging goes on with what earlier merges have made."
        ),
        rows.numbers(1.25, several, name="several", title="All occurrences of the pair are merged, from the left."),
        rows.numbers(1, unknown_characters, name="unknown", title="Characters that no merge knows stay single."),
        rows.edge(
            0.5,
            empty,
            one_character,
            two_characters,
            no_merges,
            name="short",
            title="Words of two characters or fewer, and a word for which there are no merges, come out right.",
            dtypes=(),
        ),
        rows.many(0.5, random_merges, title="Many random words come out as the merges segment them."),
        rows.inputs_kept(0.25, later_merges),
    ),
)
