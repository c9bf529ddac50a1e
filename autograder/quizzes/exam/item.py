"""Define a question of an exam with its options, its key and the evidence for it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from autograder.quizzes.questions.question import LETTERS

#: The kinds of questions, with what each asks.
KINDS = {
    "diagnosis": "which mistake the code makes",
    "input": "which input shows it",
    "line": "which line has it",
    "check": "what the student sees",
}


@dataclass(frozen=True)
class Item:
    """One question about code with one mistake."""

    kind: str  # one of ``KINDS``
    chapter: str  # the exercise's chapter
    exercise: str
    task: str  # what a right solution computes, in a sentence
    uses: tuple[str, ...]  # names of the course that the code uses
    checks: tuple[str, ...]  # names of helpers that the code uses and that only check its inputs
    code: str
    question: str
    options: tuple[str, ...]  # the options, in the order in which they stand
    key: int  # the index of the right option
    mistake: str  # the name of the known mistake in the code
    explanation: str  # the diagnosis that the check gives for the code
    proof: str  # what the run for the key showed
    refuted: tuple[str, ...]  # for each option, what the run showed against it; empty for the key

    @property
    def letter(self) -> str:
        """The letter of the right option."""
        return LETTERS[self.key]

    @property
    def answer(self) -> str:
        """The right option."""
        return self.options[self.key]

    def with_key_at(self, position: int, rng: random.Random) -> Item:
        """Return the item with its options in a random order in which the right one has a given position."""
        others = [index for index in range(len(self.options)) if index != self.key]
        order = rng.sample(others, len(others))
        order.insert(position, self.key)
        return self.in_order(order)

    def in_order(self, order: Sequence[int]) -> Item:
        """Return the item with its options in another order."""
        return replace(
            self,
            options=tuple(self.options[index] for index in order),
            refuted=tuple(self.refuted[index] for index in order),
            key=list(order).index(self.key),
        )
