"""The check of ``wordpiece_encode``: the longest piece from the left, or nothing at all."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch06_tokenization.drawn_words import drawn_word, segments
from autograder.checks.ch06_tokenization.random_cases import random_pieces
from autograder.checks.ch06_tokenization.renamed import renaming
from tfcourse import tokenization

PIECES = ("a", "ab", "abc", "b", "bcd", "##a", "##b", "##c", "##d", "##cd", "##de", "##cde", "##f", "e")


def _case(draw: Draw, word: str, pieces: tuple[str, ...] = PIECES) -> Case:
    rename = renaming(draw, "abcdefgh")
    return Case({"word": rename(word), "vocabulary": ["[UNK]", *map(rename, pieces)]})


def longest_first(draw: Draw) -> Case:
    """Shorter pieces fit as well, at the beginning and inside."""
    return _case(draw, "abc" + segments(draw, "cde", ("cde", "de", "cd", "f", "c")))


def one_piece(draw: Draw) -> Case:
    """The word is a piece."""
    return _case(draw, "bcd")


def marked_inside(draw: Draw) -> Case:
    """A piece that is in the vocabulary for the beginning only would be longer."""
    return _case(draw, "d" + segments(draw, "bcd", ("f", "a", "cd", "d")), (*PIECES, "d", "bc"))


def dead_end(draw: Draw) -> Case:
    """The longest pieces lead to a rest that fits nothing, though another cut would do."""
    return _case(draw, "abcde", ("ab", "abc", "##cde", "##d"))


def unknown_in_the_middle(draw: Draw) -> Case:
    """A character that is in no piece, with pieces around it."""
    return _case(draw, "ab" + segments(draw, "g", ("cd", "f")))


def unknown_at_the_beginning(draw: Draw) -> Case:
    """The first character only continues words."""
    return _case(draw, "fab")


def own_signs(draw: Draw) -> Case:
    """Another prefix, and a word that can be cut with it."""
    sign, unknown = _signs(draw)
    inside = (f"{sign}{piece}" for piece in ("c", "cd", "d", "f"))
    word = "ab" + segments(draw, "cdf", ("c", "cd", "d", "f"))
    return _case(draw, word, ("ab", *inside, "##cd", "##cdf")).with_arguments(prefix=sign, unknown=unknown)


def own_unknown(draw: Draw) -> Case:
    """Another word for what cannot be cut."""
    sign, unknown = _signs(draw)
    return _case(draw, "g").with_arguments(unknown=unknown, prefix=sign)


def _signs(draw: Draw) -> tuple[str, str]:
    """A prefix, and an unknown token."""
    return "@~+_"[int(draw.integers(0, 4))], f"<{drawn_word(draw, 'nopqrst', 4)}>"


def empty(draw: Draw) -> Case:
    """A word without characters."""
    return _case(draw, "")


WORDPIECE_ENCODE = Exercise(
    reference=tokenization.wordpiece_encode,
    rows=(
        rows.numbers(1.5, longest_first, one_piece, title="The longest piece that fits is split off, again and again."),
        rows.numbers(0.75, marked_inside, name="prefix", title="Inside a word only pieces with the prefix fit."),
        rows.numbers(
            1.5,
            dead_end,
            unknown_in_the_middle,
            unknown_at_the_beginning,
            longest_first,
            name="unknown",
            title="A word that cannot be segmented to its end is unknown as a whole.",
        ),
        rows.numbers(1, own_signs, own_unknown, name="signs", title="Prefix and unknown word may be others."),
        rows.edge(0.5, empty, name="empty", title="An empty word has no pieces.", dtypes=()),
        rows.many(0.5, random_pieces, title="Many random words come out as the vocabulary segments them."),
        rows.inputs_kept(0.25, longest_first),
    ),
)
