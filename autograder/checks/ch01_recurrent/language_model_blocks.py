"""The check of ``language_model_blocks``: a corpus is cut into blocks, and every place has the next token as its target."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.variants import changed
from tfcourse import recurrent


def corpus_with_rest(draw: Draw) -> Case:
    """A corpus that leaves tokens over."""
    return Case({"tokens": draw.integers(0, 50, 18 + int(draw.integers(0, 2))), "block_length": 5})


def corpus_that_fits(draw: Draw) -> Case:
    """A corpus of whole blocks, and one token more for the last target."""
    length = 3 + int(draw.integers(0, 3))
    return Case({"tokens": draw.integers(0, 50, 4 * length + 1), "block_length": length})


def corpus_of_whole_blocks(draw: Draw) -> Case:
    """As many tokens as whole blocks have: the last of them has no target."""
    length = 3 + int(draw.integers(0, 3))
    return Case({"tokens": draw.integers(0, 50, 4 * length), "block_length": length})


def longer_corpus(draw: Draw, size: int) -> Case:
    """More tokens."""
    return Case({"tokens": draw.integers(0, 50, 8 * size + 1), "block_length": 4})


def short_corpus(draw: Draw) -> Case:
    """One block, and nothing behind it that could be its last target."""
    return Case({"tokens": draw.integers(0, 50, 6), "block_length": 6})


def column(draw: Draw) -> Case:
    """A corpus with a dimension too many."""
    return Case({"tokens": draw.integers(0, 50, 18, 1), "block_length": 5})


def a_number(draw: Draw) -> Case:
    """A single token without a dimension."""
    return Case({"tokens": draw.integers(0, 50), "block_length": 5})


LANGUAGE_MODEL_BLOCKS = Exercise(
    reference=recurrent.language_model_blocks,
    rows=(
        rows.numbers(
            2,
            corpus_with_rest,
            gradients=False,
            title="The targets are the tokens that follow; what fills no block is dropped.",
        ),
        rows.numbers(
            0.5,
            corpus_that_fits,
            name="whole blocks",
            gradients=False,
            title="A corpus of whole blocks and one token is used in full.",
        ),
        rows.edge(
            0.5,
            corpus_of_whole_blocks,
            name="no target",
            gradients=False,
            dtypes=(),
            title="A block whose last target is missing is dropped.",
        ),
        rows.no_loop(0.25, longer_corpus, over="blocks"),
        rows.errors(
            0.75,
            corpus_with_rest,
            changed(corpus_with_rest, block_length=1),
            short_corpus,
            changed(corpus_with_rest, block_length=0),
            column,
            a_number,
            title="A corpus too short for one block or not (M,), and blocks of no token, are a ValueError.",
        ),
    ),
)
