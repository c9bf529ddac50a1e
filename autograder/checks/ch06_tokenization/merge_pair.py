"""The check of ``merge_pair``: a pair becomes one symbol, from left to right."""

from __future__ import annotations

from collections.abc import Callable

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch06_tokenization.drawn_words import drawn_word, in_any_order
from autograder.checks.combined_rows import also_asking
from tfcourse import tokenization

OTHERS = "cdefgh"


def _symbols(draw: Draw, *parts: str) -> list[str]:
    """Symbols of one letter: the parts, with drawn letters between them, none of which is in the pair."""
    between = [drawn_word(draw, OTHERS, int(draw.integers(1, 4, 1))) for _ in range(len(parts) + 1)]
    return list(between[0] + "".join(part + other for part, other in zip(parts, between[1:], strict=True)))


def once(draw: Draw) -> Case:
    """The pair occurs once in the word, and its letters elsewhere in the other order."""
    return Case({"symbols": _symbols(draw, "ab", "b", "a"), "pair": ("a", "b")})


def at_the_end(draw: Draw) -> Case:
    """The pair ends the word, and has symbols of several letters."""
    return Case({"symbols": [*_symbols(draw, "b"), "abc", "de"], "pair": ("abc", "de")})


def several(draw: Draw) -> Case:
    """The pair occurs three times in the word, once right after itself."""
    return Case({"symbols": _symbols(draw, "ab", "abab"), "pair": ("a", "b")})


def run_of_three(draw: Draw) -> Case:
    """Three equal symbols: the pair overlaps itself."""
    return Case({"symbols": _symbols(draw, "aaa"), "pair": ("a", "a")})


def across_borders(draw: Draw) -> Case:
    """The text of the pair stands across the borders of other symbols."""
    before, behind = _symbols(draw, "b"), _symbols(draw, "a")
    return Case({"symbols": [*before, "ab", "c", "xa", "bc", "a", "bc", "xa", "bcx", *behind], "pair": ("a", "bc")})


def nothing_to_merge(draw: Draw) -> Case:
    """The pair is not there."""
    return Case({"symbols": _symbols(draw, "ba"), "pair": ("a", "b")})


def empty(draw: Draw) -> Case:
    """A word without symbols."""
    return Case({"symbols": [], "pair": ("a", "b")})


def any_word(draw: Draw) -> Case:
    """A word of few letters, and a pair of two of them."""
    a, b, _ = in_any_order(draw, *"abc")
    return Case({"symbols": list(drawn_word(draw, "abc", int(draw.integers(0, 9)))), "pair": (a, b)})


def any_run(draw: Draw) -> Case:
    """One run of a letter, of two or three, and a pair of it with itself."""
    return _merged_once(lambda: (list(drawn_word(draw, "aab", int(draw.integers(2, 8)))), ("a", "a")), alike=True)


def any_symbols(draw: Draw) -> Case:
    """Symbols of one to three letters: the same text may be cut in several ways, and the pair occurs once."""

    def word() -> tuple[list[str], tuple[str, str]]:
        symbols = [drawn_word(draw, "ab", 1 + int(draw.integers(0, 3))) for _ in range(2 + int(draw.integers(0, 6)))]
        first = int(draw.integers(0, len(symbols) - 1))
        return symbols, (symbols[first], symbols[first + 1])

    return _merged_once(word, alike=False)


def _merged_once(word: Callable[[], tuple[list[str], tuple[str, str]]], *, alike: bool) -> Case:
    """A word in which the pair is merged once; its two symbols are alike or not."""
    while True:
        symbols, pair = word()
        once = len(tokenization.merge_pair(symbols, pair)) == len(symbols) - 1
        if once and "".join(pair) not in symbols and (pair[0] == pair[1]) == alike:
            return Case({"symbols": symbols, "pair": pair})


MERGE_PAIR = Exercise(
    reference=tokenization.merge_pair,
    rows=(
        rows.numbers(1.75, once, at_the_end, title="A pair becomes one symbol, and all else stays.", gradients=False),
        also_asking(
            rows.numbers(
                0.75,
                several,
                name="several",
                title="Every occurrence is merged, in many random words.",
                gradients=False,
            ),
            rows.many(0, any_word, title=""),
        ),
        also_asking(
            rows.numbers(
                0.5,
                run_of_three,
                name="runs",
                title="Of three equal symbols the first two are merged.",
                gradients=False,
            ),
            rows.many(0, any_run, count=24, title=""),
        ),
        also_asking(
            rows.numbers(
                0.5,
                across_borders,
                name="borders",
                title="Nothing is merged across the borders of symbols.",
                gradients=False,
            ),
            rows.many(0, any_symbols, count=24, title=""),
        ),
        rows.edge(
            0.25, nothing_to_merge, empty, name="nothing", title="Where the pair is not, nothing changes.", dtypes=()
        ),
        rows.inputs_kept(0.25, several),
    ),
)
