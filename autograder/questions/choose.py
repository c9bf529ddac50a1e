"""Select questions of different kinds."""

from __future__ import annotations

import random
from collections import Counter

from autograder.questions.facts import Facts
from autograder.questions.kinds import KINDS
from autograder.questions.question import Question

# At most one question in so many has a key that all correct code shares.
GENERIC_ONE_IN = 4
_ROUNDS = 8


def questions(facts: Facts, seed: int | str, count: int = 4) -> list[Question]:
    """Return different questions about one definition, of as many kinds as there are. The same facts and seed give the same questions.

    Args:
        facts: what running it showed.
        seed: the seed.
        count: how many are wanted; there may be fewer.
    """
    rng = random.Random(f"{seed} {facts.exercise}")
    found: list[Question] = []
    for question in _in_turn(facts, rng):
        if len(found) == count:
            break
        generic = sum(one.generic for one in found)
        if question.generic and generic >= count // GENERIC_ONE_IN:
            continue
        if not any(_overlap(question, other) for other in found):
            found.append(question)
    return rng.sample(found, len(found))


def _in_turn(facts: Facts, rng: random.Random) -> list[Question]:
    """Return candidates, one of each kind, then a second one of each kind, and so on; kinds in a random order."""
    groups: list[list[Question]] = []
    for kind in rng.sample(KINDS, len(KINDS)):
        made = [question for _ in range(_ROUNDS) for question in kind(facts, rng)]
        groups.append(made)
    ordered: list[tuple[int, int, Question]] = []
    seen: Counter[str] = Counter()
    for number, group in enumerate(groups):
        topics: set[str] = set()
        for question in group:
            if question.topic not in topics:
                topics.add(question.topic)
                ordered.append((seen[question.kind], number, question))
                seen[question.kind] += 1
    return [question for _, _, question in sorted(ordered, key=lambda item: item[:2])]


def _overlap(a: Question, b: Question) -> bool:
    """Return whether two questions ask the same, or one tells the answer of the other."""
    changes = {"change", "responsible"}
    if a.kind == b.kind or {a.kind, b.kind} == changes:
        return a.topic == b.topic
    return False
