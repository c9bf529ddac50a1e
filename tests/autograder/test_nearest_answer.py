"""Recorded answers are no solution: what the measure finds, and that no hidden question of the course is found by it."""

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.selftest.nearest_answer import points_by_lookup


def reversed_word(word: str) -> list[str]:
    """The letters of a word, from the last to the first."""
    return list(word[::-1])


def doubled(x: torch.Tensor) -> torch.Tensor:
    """Twice the numbers."""
    return 2 * x


def lower_triangle(n: int) -> torch.Tensor:
    """A square, True on and below its diagonal."""
    return torch.ones(n, n, dtype=torch.bool).tril()


def earned(reference, make):
    """What recorded answers earn, of one point."""
    return points_by_lookup(Exercise(reference, [rows.numbers(1, make, gradients=False)]))


def test_the_same_question_again_is_answered():
    assert earned(reversed_word, lambda draw: Case({"word": "abcde"})) == 1
    assert earned(doubled, lambda draw: Case({"x": torch.arange(3.0)})) == 1


def test_other_letters_in_the_same_structure_are_answered():
    def renamed(draw: Draw) -> Case:
        return Case({"word": "".join("abcdefg"[place] for place in draw.order(7))})

    assert earned(reversed_word, renamed) == 1


def test_other_lengths_and_letters_are_not_answered():
    def drawn(draw: Draw) -> Case:
        return Case({"word": "".join("abcdefg"[place] for place in draw.order(7))[: draw.unseen(3, 7)]})

    assert earned(reversed_word, drawn) == 0


def test_a_recorded_answer_is_cut_to_a_smaller_size_only():
    assert earned(lower_triangle, lambda draw: Case({"n": 20 - draw.unseen(5, 9)})) == 1
    assert earned(lower_triangle, lambda draw: Case({"n": draw.unseen(5, 9)})) == 0


def test_numbers_that_are_drawn_are_not_answered():
    assert earned(doubled, lambda draw: Case({"x": draw.normal(3)})) == 0


def test_what_is_copied_from_the_question_is_answered():
    assert earned(lambda x: x.flip(0).flip(0), lambda draw: Case({"x": draw.normal(3)})) == 1


def test_an_exercise_without_inputs_has_no_hidden_question():
    assert points_by_lookup(Exercise(lambda: 3, [rows.numbers(1, lambda draw: Case({}), gradients=False)])) == 0
