"""Compare ways to group wrong answers, on answers with known causes: `python -m tools.groupings` prints the table.

The same table is in ``docs/marking.md``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from autograder.marking.behaviour_groups import BehaviourGroup, CodeAnswer, group_answers
from tools.labelled_answers import EXERCISES, labelled_answers

Labelled = list[tuple[str, CodeAnswer]]

# What each way to group leaves of an answer.
WAYS: dict[str, dict[str, object]] = {
    "failed rows": {"signature": None, "message": ""},
    "failed rows and messages": {"signature": None},
    "failed rows and signature": {},
}


def seen_by(way: str, corpus: Sequence[Labelled]) -> list[Labelled]:
    """Return a corpus with what one way to group looks at."""
    return [[(label, replace(answer, **WAYS[way])) for label, answer in labelled] for labelled in corpus]


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


def main() -> None:
    """Print purity and pair F of every way."""
    corpus = [list(labelled_answers(name)) for name in EXERCISES]
    print(f"{sum(map(len, corpus))} answers, {sum(len({label for label, _ in one}) for one in corpus)} causes")
    for way in WAYS:
        purity, f = purity_and_pair_f(seen_by(way, corpus))
        print(f"| {way} | {purity:.2f} | {f:.2f} |")


if __name__ == "__main__":
    main()
