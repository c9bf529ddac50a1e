"""The check of ``merge_pair``: a pair becomes one symbol, from left to right."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch06_tokenization.drawn_words import drawn_word
from tfcourse import tokenization

OTHERS = "cdefgh"


def _symbols(draw: Draw, *parts: str) -> list[str]:
    """Symbols of one letter: the parts, with drawn letters between them, none of which is in the pair."""
    between = [drawn_word(draw, OTHERS, int(draw.integers(1, 4, 1))) for _ in range(len(parts) + 1)]
    return list(between[0] + "".join(part + other for part, other in zip(parts, between[1:], strict=True)))


def once(draw: Draw) -> Case:
    """The pair stands in the word a single time, and its letters elsewhere in the other order."""
    return Case({"symbols": _symbols(draw, "ab", "b", "a"), "pair": ("a", "b")})


def at_the_end(draw: Draw) -> Case:
    """The pair ends the word, and has symbols of several letters."""
    return Case({"symbols": [*_symbols(draw, "b"), "abc", "de"], "pair": ("abc", "de")})


def several(draw: Draw) -> Case:
    """The pair stands in the word three times, and once right behind itself."""
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


MERGE_PAIR = Exercise(
    reference=tokenization.merge_pair,
    rows=(
        rows.numbers(1, once, at_the_end, title="A pair becomes one symbol, and all else stays."),
        rows.numbers(1, several, name="several", title="Every occurrence is merged."),
        rows.numbers(0.75, run_of_three, name="runs", title="Of three equal symbols the first two are merged."),
        rows.numbers(0.75, across_borders, name="borders", title="Nothing is merged across the borders of symbols."),
        rows.edge(
            0.25, nothing_to_merge, empty, name="nothing", title="Where the pair is not, nothing changes.", dtypes=()
        ),
        rows.inputs_kept(0.25, several),
    ),
)
