"""Groups of answers with known causes: nearly all members share the cause, and nearly all answers of one cause share the group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import pytest

from autograder.marking.behaviour_groups import BehaviourGroup, CodeAnswer, group_answers

from .labelled_answers import EXERCISES, labelled_answers

Labelled = list[tuple[str, CodeAnswer]]


@pytest.fixture(scope="module")
def corpus() -> list[Labelled]:
    """The labelled answers of each exercise."""
    return [list(labelled_answers(name)) for name in EXERCISES]


def purity_and_pair_f(corpus: Sequence[Labelled]) -> tuple[float, float]:
    """Return the share of answers with the most frequent cause of their group, and F over pairs of answers to one exercise."""
    pure = total = together = grouped = expected = 0
    for labelled in corpus:
        cause = {answer.student: label for label, answer in labelled}
        groups = group_answers([answer for _, answer in labelled])
        place = _places(groups)
        pure += sum(max(Counter(cause[answer.student] for answer in group.members).values()) for group in groups)
        total += len(labelled)
        for one, other in combinations(cause, 2):
            same_cause, same_group = cause[one] == cause[other], place[one] == place[other]
            together += same_cause and same_group
            grouped += same_group
            expected += same_cause
    return pure / total, 2 * together / (grouped + expected)


def _places(groups: Sequence[BehaviourGroup]) -> dict[str, int]:
    return {answer.student: number for number, group in enumerate(groups) for answer in group.members}


def test_groups_hold_one_cause_each(corpus: list[Labelled]) -> None:
    assert sum(map(len, corpus)) >= 500
    purity, f = purity_and_pair_f(corpus)
    print(f"purity {purity:.3f}, pair F {f:.3f} of {sum(map(len, corpus))} answers")
    assert purity >= 0.93
    assert f >= 0.85


def test_failed_rows_alone_mix_causes(corpus: list[Labelled]) -> None:
    """The floor is one that signatures are needed for."""
    bare = [[(label, replace(answer, signature=None, message="")) for label, answer in one] for one in corpus]
    purity, f = purity_and_pair_f(bare)
    assert purity < 0.93
    assert f < 0.85
