"""The check of ``encode_text``: any text becomes ids, byte by byte."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch06_tokenization.drawn_words import byte_level_encoding, drawn_words, in_any_order
from tfcourse import tokenization


def _case(draw: Draw, text: str, learnt_from: str) -> Case:
    """A text, and an encoding whose merges would join what must stay apart, if it were not cut first."""
    vocabulary, merges = byte_level_encoding([learnt_from], 12)
    endings = {piece[-1] for piece in tokenization.pre_tokenize(text) if piece[-1].isascii() and piece[-1] > " "}
    for ending in sorted(endings):
        for sign in ".,Ġ":
            merges.append((ending, sign))
            vocabulary.append(ending + sign)
    return Case({"text": text, "vocabulary": vocabulary, "merges": merges})


def plain_english(draw: Draw) -> Case:
    """Words that the encoding was learnt from, in another order, and a number that it has not seen."""
    one, two = drawn_words(draw, "abcde", (4, 5))
    order = [one.title(), *in_any_order(draw, two, one, two, one), str(int(draw.integers(1000, 9999)))]
    return _case(draw, " ".join(order), f"{one} {two} {two}{one} {one.title()}")


def other_writing(draw: Draw) -> Case:
    """Characters of two, three and four bytes, a word of Latin-1 alone, a combining accent, and a ligature."""
    one, two = *drawn_words(draw, "éñß", (3,)), *drawn_words(draw, "éñßłж", (3,))
    return _case(draw, f"{one} 東京 🙂e\u0301 ﬁ{two}", f"{one} {two} 東 {two}")


def signs_and_spaces(draw: Draw) -> Case:
    """Signs behind words, runs of spaces, and a space at the end."""
    one, two = drawn_words(draw, "abcde", (3, 4))
    return _case(draw, f"{one.title()}, {two}.  {one} \n{two}. ", f"{one} {two}  {one.title()}")


def empty(draw: Draw) -> Case:
    """An empty text."""
    return plain_english(draw).with_arguments(text="")


ENCODE_TEXT = Exercise(
    reference=tokenization.encode_text,
    rows=(
        rows.numbers(2.5, plain_english, title="Words become the ids of their pieces."),
        rows.numbers(1.5, other_writing, name="bytes", title="Whatever is no ASCII is written byte by byte in UTF-8."),
        rows.numbers(
            1.5, signs_and_spaces, name="pieces", title="Text is split first, and no merge joins two of its pieces."
        ),
        rows.edge(0.25, empty, name="empty", title="An empty text has no ids.", dtypes=()),
        rows.inputs_kept(0.25, plain_english),
    ),
)
