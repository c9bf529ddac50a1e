"""Select questions of different kinds."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

from autograder.quizzes.questions.facts import Facts
from autograder.quizzes.questions.kinds import KINDS, LAST_KINDS, Kind
from autograder.quizzes.questions.question import Question

# At most one question in so many has a key that all correct code shares.
GENERIC_ONE_IN = 4
_ROUNDS = 8
_ABOUT_CHANGES = {"change", "responsible", "result"}


def questions(facts: Facts, seed: int | str, count: int = 4) -> list[Question]:
    """Return different questions about one definition, of as many kinds as there are. The same facts and seed give the same questions.

    Args:
        facts: what running it showed.
        count: how many are wanted; there may be fewer.
    """
    rng = random.Random(f"{seed} {facts.exercise}")
    candidates = [*_in_turn(facts, rng, KINDS), *_in_turn(facts, rng, LAST_KINDS)]
    found: list[Question] = []
    # A topic comes a second time, with another input, only where there is nothing else to ask.
    for overlap in (_overlap, _same_text):
        for question in candidates:
            spent = question.generic and sum(one.generic for one in found) >= count // GENERIC_ONE_IN
            if len(found) < count and not spent and not any(overlap(question, other) for other in found):
                found.append(question)
    return rng.sample(found, len(found))


def _in_turn(facts: Facts, rng: random.Random, kinds: Sequence[Kind]) -> list[Question]:
    """Return candidates, one of each kind, then a second one of each kind, and so on; kinds in a random order."""
    ordered: list[tuple[int, int, Question]] = []
    for number, kind in enumerate(rng.sample(kinds, len(kinds))):
        made = {question.text: question for _ in range(_ROUNDS) for question in kind(facts, rng)}
        turns: Counter[str] = Counter()
        for question in made.values():
            # Of each topic the first question has its turn before the second one of any.
            ordered.append((100 * turns[question.topic] + len(turns), number, question))
            turns[question.topic] += 1
    return [question for _, _, question in sorted(ordered, key=lambda item: item[:2])]


def _overlap(a: Question, b: Question) -> bool:
    """Return whether two questions ask the same, or one tells the answer of the other."""
    return (a.kind == b.kind or {a.kind, b.kind} <= _ABOUT_CHANGES) and a.topic == b.topic


def _same_text(a: Question, b: Question) -> bool:
    same_change = {a.kind, b.kind} <= _ABOUT_CHANGES and a.topic == b.topic
    return a.text == b.text or same_change
