"""Strategies that answer a question of an exam without reading its code, and what they earn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher

from autograder.quizzes.exam.kinds import ExamQuestion


def _likeness(options: Sequence[str], index: int) -> float:
    return sum(SequenceMatcher(None, options[index], other).ratio() for i, other in enumerate(options) if i != index)


def _extreme(value: Callable[[Sequence[str], int], float], sign: int = 1) -> Callable[[ExamQuestion], int]:
    return lambda item: max(range(len(item.options)), key=lambda index: (sign * value(item.options, index), -index))


STRATEGIES: Mapping[str, Callable[[ExamQuestion], int]] = {
    "the longest option": _extreme(lambda options, index: len(options[index])),
    "the shortest option": _extreme(lambda options, index: len(options[index]), -1),
    "the odd one out": _extreme(_likeness, -1),
    "the one most like the others": _extreme(_likeness),
    "the one with most digits": _extreme(lambda options, index: sum(c.isdigit() for c in options[index])),
    "the one with most commas": _extreme(lambda options, index: options[index].count(",")),
    "always A": lambda item: 0,
    "always D": lambda item: len(item.options) - 1,
}


def earned(items: Sequence[ExamQuestion]) -> dict[str, float]:
    """Return the share of questions that each strategy answers."""
    return {name: sum(choose(item) == item.key for item in items) / len(items) for name, choose in STRATEGIES.items()}
