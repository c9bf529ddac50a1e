"""The check of ``best_alignment``: the place of the source word that most probably made each target word."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import alignment


def table(draw: Draw) -> Case:
    """A table of random probabilities in which NULL makes nothing, and a pair of sentences."""
    s, t = (int(n) for n in draw.sizes(2, low=4))
    probabilities = torch.softmax(2 * draw.normal(9, 8, dtype=torch.float64), 1)
    probabilities[0] = 0.0
    source = (draw.permutation(8)[:s] + 1).tolist()
    return Case({"table": probabilities, "source": source, "target": draw.integers(1, 8, t).tolist()})


def twice_the_same(draw: Draw) -> Case:
    """A source whose likeliest word makes every target word."""
    case = table(draw)
    probabilities = case.arguments["table"].clone()
    probabilities[5] = 0.95
    return case.with_arguments(table=probabilities, source=[3, 5, 1])


def null_is_likely(draw: Draw) -> Case:
    """A table in which NULL is the likeliest maker of the first word, and of no other; the last word occurs twice."""
    case = table(draw)
    probabilities = case.arguments["table"].clone()
    target = case.arguments["target"]
    last = target[0] % 7 + 1
    target = [*target[:-2], last, last]
    probabilities[0, target[0]] = 1.0
    return case.with_arguments(table=probabilities, target=target)


def equals(draw: Draw) -> Case:
    """A table in which all words, NULL among them, are equally probable; a source word occurs twice."""
    t = draw.unseen(2, 9)
    uniform = torch.full((6, 5), 0.2, dtype=torch.float64)
    return Case({"table": uniform, "source": [2, 1, 4, 1], "target": draw.integers(1, 5, t).tolist()})


def no_source(draw: Draw) -> Case:
    """A source without words: NULL made everything."""
    return table(draw).with_arguments(source=[])


BEST_ALIGNMENT = Exercise(
    reference=alignment.best_alignment,
    rows=(
        rows.numbers(
            1.5,
            table,
            twice_the_same,
            gradients=False,
            title="Each target word gets the position of the source word that most probably generated it.",
        ),
        rows.numbers(
            1,
            null_is_likely,
            no_source,
            name="NULL",
            gradients=False,
            title="A word that NULL most probably generated has no position.",
        ),
        rows.edge(
            0.5,
            equals,
            name="ties",
            gradients=False,
            dtypes=(),
            title="Among equals the first word is taken, and NULL only if none is.",
        ),
    ),
)
