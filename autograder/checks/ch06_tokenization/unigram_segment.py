"""The check of ``unigram_segment``: the best of all cuts, and its score."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch06_tokenization.drawn_words import drawn_word, drawn_words
from autograder.checks.ch06_tokenization.random_cases import random_scores
from autograder.checks.ch06_tokenization.renamed import renaming
from tfcourse import tokenization


def _case(draw: Draw, text: str, scores: dict[str, float]) -> Case:
    """A text in drawn letters, and scores that are moved a little."""
    rename = renaming(draw, "abcdefgh")
    moves = draw.normal(len(scores), scale=0.01).tolist()
    moved = {rename(piece): round(score + move, 3) for (piece, score), move in zip(scores.items(), moves, strict=True)}
    return Case({"text": rename(text), "scores": moved, "unknown": -20.0})


def short_pieces_win(draw: Draw) -> Case:
    """The longest piece is bad, and so is the cut with the fewest pieces."""
    return _case(
        draw,
        "abcde",
        {"abcd": -12.0, "ab": -2.0, "cd": -2.5, "e": -1.5, "a": -3.0, "bcde": -11.0, "c": -4.0, "d": -4.0, "b": -4.0},
    )


def best_piece_misleads(draw: Draw) -> Case:
    """The best piece of all is in no good cut, and neither is the best one at the beginning."""
    return _case(
        draw, "abcd", {"bc": -0.5, "a": -6.0, "d": -6.5, "ab": -3.0, "cd": -3.2, "abc": -2.9, "c": -5.0, "b": -4.8}
    )


def long_text(draw: Draw) -> Case:
    """A longer text, with pieces that overlap in many ways."""
    scores = dict.fromkeys("abcdef", -5.0)
    scores |= {
        "ab": -4.0,
        "bc": -3.4,
        "cd": -4.2,
        "abc": -7.0,
        "de": -3.1,
        "ef": -3.6,
        "fab": -5.5,
        "cdef": -9.0,
        "bcd": -6.0,
    }
    return _case(draw, "abcdefabcdeffabcd", scores)


def very_long_text(draw: Draw) -> Case:
    """A text with too many segmentations to try. No letter follows itself, or aa, a and a, aa would be equally good."""
    pieces = [*"abcdef", *drawn_words(draw, "abcdef", (2,) * 12 + (3,) * 6)]
    moves = draw.normal(len(pieces), scale=0.5, dtype=torch.float64).tolist()
    scores = {piece: move - 3 - len(piece) for piece, move in zip(pieces, moves, strict=True)}
    text = "".join("abcdef"[index] for index in (draw.integers(1, 6, 80).cumsum(0) % 6).tolist())
    return Case({"text": text, "scores": scores, "unknown": -20.0})


def shorter_than_a_piece(draw: Draw) -> Case:
    """A text of two pieces that is shorter than the longest piece, and begins like it."""
    return _case(draw, "ab", {"abcdef": -1.0, "a": -3.0, "b": -2.0})


def one_long_piece(draw: Draw) -> Case:
    """The best cut has a piece of six characters."""
    scores = dict.fromkeys("abcdefgh", -3.0) | {"bcdefg": -9.0, "abc": -8.5, "defgh": -13.0, "gh": -5.5}
    return _case(draw, "abcdefgh", scores)


def no_pieces(draw: Draw) -> Case:
    """There are no pieces at all: every character is unknown."""
    return _case(draw, drawn_word(draw, "abcd", 4), {})


def unknown_characters(draw: Draw) -> Case:
    """Characters that are in no piece, beside each other and at both ends."""
    return _case(draw, "gabhgcdh", {"ab": -3.0, "a": -2.0, "b": -2.5, "cd": -5.5, "c": -2.4, "d": -2.2})


def dear_but_known(draw: Draw) -> Case:
    """A character whose own score is below that of an unknown one: it is known all the same."""
    case = _case(draw, "abca", {"ab": -30.0, "a": -2.0, "b": -25.0, "c": -1.0})
    return case.with_arguments(unknown=-4.0)


def equal_cuts(draw: Draw) -> Case:
    """Cuts with the same score, which binary numbers represent exactly: the cut with the longest last piece wins."""
    rename = renaming(draw, "abcdefgh")
    first, last = (-draw.integers(10, 80, 2) / 64).tolist()
    pair = -int(draw.integers(90, 160)) / 64
    scores = {"a": first, "bc": pair, "ab": pair, "c": first, "d": last, "cd": first + last}
    return Case(
        {"text": rename("abcd"), "scores": {rename(piece): score for piece, score in scores.items()}, "unknown": -9.0}
    )


def longest_at_the_end(draw: Draw) -> Case:
    """Of two equally good cuts, the cut with the longest last piece has more pieces, and a shorter first one."""
    rename = renaming(draw, "abcdefgh")
    a, b, cde, abc = (-draw.integers(10, 80, 4) / 64).tolist()
    scores = {"abc": abc, "de": a + b + cde - abc, "b": b, "cde": cde, "a": a}
    return Case(
        {"text": rename("abcde"), "scores": {rename(piece): score for piece, score in scores.items()}, "unknown": -9.0}
    )


def equal_last_pieces(draw: Draw) -> Case:
    """Equally good cuts end alike: the longest last piece but one decides."""
    rename = renaming(draw, "abcdefgh")
    one, two, three, last = (-draw.integers(10, 80, 4) / 64).tolist()
    scores = {"abc": three, "d": one, "ef": last, "ab": two, "cd": one + three - two, "a": one, "bcd": three}
    return Case(
        {"text": rename("abcdef"), "scores": {rename(piece): score for piece, score in scores.items()}, "unknown": -9.0}
    )


def empty(draw: Draw) -> Case:
    """An empty text."""
    return _case(draw, "", {"a": -1.0, "b": -2.0})


def _about_an_empty_text(draw: Draw) -> list[rows.Probe]:
    """Ask for the pieces alone: the sum of no scores may be the integer 0."""
    return [rows.Probe((draw.case(empty).request(),), "matches_part", {"outputs": []})]


UNIGRAM_SEGMENT = Exercise(
    reference=tokenization.unigram_segment,
    rows=(
        rows.numbers(
            3,
            short_pieces_win,
            best_piece_misleads,
            shorter_than_a_piece,
            one_long_piece,
            title="Of all segmentations, the one with the largest sum is found.",
        ),
        rows.numbers(1.25, long_text, very_long_text, name="long", title="It is found in a longer text as well."),
        rows.numbers(
            1.75,
            unknown_characters,
            dear_but_known,
            no_pieces,
            name="unknown",
            title="A character that is no piece costs the score of an unknown one.",
        ),
        rows.numbers(
            0.75,
            equal_cuts,
            longest_at_the_end,
            equal_last_pieces,
            name="ties",
            title="Of equally good segmentations, the one whose last piece is longest wins.",
        ),
        rows.Row("empty", "An empty text has no pieces.", 0.5, _about_an_empty_text),
        rows.many(0.5, random_scores, title="Many random texts get the best segmentation."),
        rows.inputs_kept(0.25, long_text, unknown_characters),
    ),
)
