"""The check of ``decode_ids``: ids become text again."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch06_tokenization.drawn_words import byte_level_encoding, drawn_words
from autograder.checks.combined_rows import also_asking
from tfcourse import tokenization


def _case(text: str, learnt_from: str) -> Case:
    vocabulary, merges = byte_level_encoding([learnt_from], 10)
    return Case({"ids": tokenization.encode_text(text, vocabulary, merges), "vocabulary": vocabulary})


def english(draw: Draw) -> Case:
    """Words, some of them one token."""
    one, two = drawn_words(draw, "abcde", (4, 5))
    return _case(f"{one} {two}  {one}.", f"{one} {two} {one}")


def several_bytes(draw: Draw) -> Case:
    """Characters whose bytes are separate tokens, and a line end."""
    one, two = drawn_words(draw, "éñßłж", (3, 2))
    return _case(f"{one} 東京\n🙂{two}", f"{one} {one}")


def broken(draw: Draw) -> Case:
    """A character that lacks its last byte, and a byte that begins nothing."""
    one, two = drawn_words(draw, "abcde", (3, 2))
    case = _case(f"{one}東{two}", f"{one} {two}")
    spelling = tokenization.byte_characters()
    ids, vocabulary = case.arguments["ids"], case.arguments["vocabulary"]
    lacking = [number for number in ids if number != vocabulary.index(spelling["東".encode()[2]])]
    return case.with_arguments(ids=[*lacking, vocabulary.index(spelling[0xFF])])


def as_a_tensor(draw: Draw) -> Case:
    """Ids in a tensor, as a model gives them."""
    case = english(draw)
    return case.with_arguments(ids=torch.tensor(case.arguments["ids"]))


def first_and_last(draw: Draw) -> Case:
    """The smallest and the largest id that there are."""
    case = english(draw)
    last = len(case.arguments["vocabulary"]) - 1
    return case.with_arguments(ids=[last, 0, *case.arguments["ids"], 0, last])


def nothing(draw: Draw) -> Case:
    """No ids."""
    return english(draw).with_arguments(ids=[])


def minus_one(draw: Draw) -> Case:
    """The id right below zero."""
    case = english(draw)
    return case.with_arguments(ids=[*case.arguments["ids"], -1])


def negative(draw: Draw) -> Case:
    """An id below zero, in a tensor."""
    case = english(draw)
    return case.with_arguments(ids=torch.tensor([-int(draw.integers(2, 6, 1)), *case.arguments["ids"]]))


def too_large(draw: Draw) -> Case:
    """An id that is the length of the vocabulary."""
    case = english(draw)
    return case.with_arguments(ids=[len(case.arguments["vocabulary"]), *case.arguments["ids"]])


def any_bytes(draw: Draw) -> Case:
    """Bytes of characters and of none, in any order."""
    vocabulary = tokenization.byte_characters()
    some = (*b"a. ", 0xC3, 0xA9, 0xE2, 0x82, 0xAC, 0xF0, 0x9F, 0x99, 0x82, 0x00, 0xFF)
    return Case(
        {
            "ids": [some[n] for n in draw.integers(0, len(some), int(draw.integers(1, 8))).tolist()],
            "vocabulary": [vocabulary[n] for n in range(256)],
        }
    )


DECODE_IDS = Exercise(
    reference=tokenization.decode_ids,
    rows=(
        rows.numbers(2, english, first_and_last, title="Symbols become the text that they were made of."),
        rows.numbers(
            0.75, several_bytes, name="bytes", title="All bytes are put together before they are read as UTF-8."
        ),
        also_asking(
            rows.numbers(0.75, broken, name="broken", title="What is no UTF-8 becomes the replacement character."),
            rows.many(0, any_bytes, count=24, title=""),
        ),
        rows.numbers(0.5, as_a_tensor, name="tensor", title="Ids may come in a tensor."),
        rows.edge(0.25, nothing, name="empty", title="Without ids there is an empty text.", dtypes=()),
        rows.errors(
            0.5,
            english,
            first_and_last,
            minus_one,
            negative,
            too_large,
            title="An id outside of the vocabulary is a ValueError.",
        ),
        rows.inputs_kept(0.25, english),
    ),
)
