"""Groups of answers with known causes: nearly all members share the cause, and nearly all answers of one cause share the group."""

from __future__ import annotations

import pytest

from tools.groupings import Labelled, purity_and_pair_f, seen_by
from tools.labelled_answers import EXERCISES, labelled_answers


@pytest.fixture(scope="module")
def corpus() -> list[Labelled]:
    """The labelled answers of each exercise."""
    return [list(labelled_answers(name)) for name in EXERCISES]


def test_groups_hold_one_cause_each(corpus: list[Labelled]) -> None:
    assert sum(map(len, corpus)) >= 500
    purity, f = purity_and_pair_f(corpus)
    print(f"purity {purity:.3f}, pair F {f:.3f} of {sum(map(len, corpus))} answers")
    assert purity >= 0.93
    assert f >= 0.85


def test_failed_rows_alone_mix_causes(corpus: list[Labelled]) -> None:
    """The floor is one that signatures are needed for."""
    purity, f = purity_and_pair_f(seen_by("failed rows", corpus))
    assert purity < 0.93
    assert f < 0.85
