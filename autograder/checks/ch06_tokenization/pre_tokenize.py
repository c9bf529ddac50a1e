"""The check of ``pre_tokenize``: text is cut roughly, and nothing of it is lost."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch06_tokenization.drawn_words import drawn_word, drawn_words, in_any_order
from autograder.checks.combined_rows import also_asking
from tfcourse import tokenization

LETTERS = "abcdefgh"


def sentence(draw: Draw) -> Case:
    """Words with single spaces, and a full stop."""
    one, two, three = drawn_words(draw, LETTERS, (3, 5, 4))
    return Case({"text": f"{one.title()} {two} {three}."})


def other_alphabets(draw: Draw) -> Case:
    """Letters that ASCII does not have."""
    one, two = drawn_words(draw, "äñłжλ", (4, 3))
    return Case({"text": f"{one} {two}a {drawn_word(draw, LETTERS, 4)}"})


def names_and_numbers(draw: Draw) -> Case:
    """Letters, digits, underscores and other signs that touch each other."""
    one, two = drawn_words(draw, LETTERS, (3, 4))
    first, second = draw.integers(10, 999, 2).tolist()
    return Case({"text": f"{one}_{first} = {second}{two}!? ({one}, {first}.{second})"})


def white_space(draw: Draw) -> Case:
    """Runs of spaces, line ends, tabs, and spaces at the end."""
    one, two, three = drawn_words(draw, LETTERS, (3, 4, 2))
    return Case({"text": f"  {one}   {two}\n\n    {three}\t{one}  "})


def contractions(draw: Draw) -> Case:
    """The ends of English contractions, small and in capitals, and an apostrophe that ends nothing."""
    one, two = drawn_words(draw, LETTERS, (3, 4))
    return Case({"text": f"{one}'ll {two}n't {one.upper()}N'T they've '{two}'"})


def all_contractions(draw: Draw) -> Case:
    """Each of the seven endings, one before more letters, one behind a space, and one with another apostrophe."""
    one, two = drawn_words(draw, LETTERS, (3, 4))
    endings = in_any_order(draw, "'s", "'t", "'re", "'ve", "'m", "'ll", "'d")
    contracted = " ".join(one + ending for ending in endings)
    return Case({"text": f"{contracted} {two}{endings[0]}{one} {endings[1]} {two}’s {one}'x"})


def other_digits(draw: Draw) -> Case:
    """Digits that ASCII does not have, between letters and signs."""
    one, two = drawn_words(draw, "٠١٢٣٤٥٦٧٨٩", (2, 3))
    word = drawn_word(draw, LETTERS, 3)
    return Case({"text": f"{word}{one} {two}.{two}{word}"})


def other_numbers(draw: Draw) -> Case:
    """Numbers that are no digits, between letters, digits and other characters."""
    one, two = drawn_words(draw, LETTERS, (3, 4))
    signs = in_any_order(draw, "²", "½", "Ⅷ", "③")
    return Case({"text": f"{one}{signs[0]} {two} 3{signs[1]}!{signs[2]}{two} {signs[3]}"})


def nothing(draw: Draw) -> Case:
    """An empty text."""
    return Case({"text": ""})


def spaces_alone(draw: Draw) -> Case:
    """A text of nothing but white space."""
    return Case({"text": " " * int(draw.integers(2, 5, 1))})


def any_text(draw: Draw) -> Case:
    """A short text in which letters, digits, signs, white space and apostrophes stand side by side in any order."""
    parts = ("a", "Ab", "é", "1", "42", "_", ".", "!?", " ", " ", "  ", "\n", "\t", "'s", "'t", "'", "'LL", "²")
    return Case({"text": "".join(parts[n] for n in draw.integers(0, len(parts), int(draw.integers(1, 9))).tolist())})


PRE_TOKENIZE = Exercise(
    reference=tokenization.pre_tokenize,
    rows=(
        rows.numbers(2.25, sentence, title="A space belongs to the word behind it.", gradients=False),
        rows.numbers(
            1,
            names_and_numbers,
            other_digits,
            other_alphabets,
            name="signs",
            title="Letters of any alphabet, digits and other characters are split apart.",
            gradients=False,
        ),
        rows.numbers(
            1,
            white_space,
            name="spaces",
            title="Of a run of white space, the next word gets the last space.",
            gradients=False,
        ),
        rows.numbers(
            0.5,
            contractions,
            all_contractions,
            name="contractions",
            title="The ends of contractions are split off, in small letters.",
            gradients=False,
        ),
        also_asking(
            rows.edge(
                0.25,
                nothing,
                spaces_alone,
                other_numbers,
                name="edges",
                title="An empty text has no pieces, spaces alone are one, ², ½ and Ⅷ are numbers, and many random texts are right.",
                dtypes=(),
            ),
            rows.many(0, any_text, title=""),
        ),
    ),
)
