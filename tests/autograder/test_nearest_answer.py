"""Recorded answers are no solution: what the measure finds, and that no hidden question of the course is found by it."""

import pytest
import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tools.quality.nearest_answer import points_by_lookup


def reversed_word(word: str) -> list[str]:
    """The letters of a word, from the last to the first."""
    return list(word[::-1])


def letters(draw: Draw, length: int = 7) -> Case:
    """Other letters."""
    return Case({"word": "".join("abcdefg"[place] for place in draw.order(7))[:length]})


@pytest.mark.parametrize(
    ("reference", "make", "earned"),
    [
        (reversed_word, lambda draw: Case({"word": "abcde"}), 1),
        (reversed_word, letters, 1),
        (reversed_word, lambda draw: letters(draw, draw.unseen(3, 7)), 0),
        (lambda x: 2 * x, lambda draw: Case({"x": torch.arange(3.0)}), 1),
        (lambda x: 2 * x, lambda draw: Case({"x": draw.normal(3)}), 0),
        (lambda n: torch.ones(n, n).tril(), lambda draw: Case({"n": 20 - draw.unseen(5, 9)}), 1),
        (lambda n: torch.ones(n, n).tril(), lambda draw: Case({"n": draw.unseen(5, 9)}), 0),
        (lambda x: x.flip(0).flip(0), lambda draw: Case({"x": draw.normal(3)}), 1),
        (lambda: 3, lambda draw: Case({}), 0),
    ],
    ids=["again", "renamed", "longer", "numbers again", "numbers", "smaller", "larger", "copied", "no inputs"],
)
def test_recorded_answers_earn_what_needs_no_thought(reference, make, earned):
    assert points_by_lookup(Exercise(reference, [rows.numbers(1, make, gradients=False)])) == earned
