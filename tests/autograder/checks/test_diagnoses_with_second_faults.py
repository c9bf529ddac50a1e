"""A second fault in a student's code does not silence the diagnosis of the first, and code without a known mistake is not given one."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest

from autograder.checking.exercise import Exercise
from autograder.checks import exercises

from .second_faults import ANOTHER, FAULTS, Survival, named_mistakes, survivals

# Every tenth exercise: all kinds of results and all chapters. ``python -m tests.autograder.checks.second_faults`` measures all of them.
SAMPLE = list(islice(exercises().values(), 0, None, 10))
# The fraction of diagnoses that a second fault may silence or replace. Lists leave no gradients, which some mistakes are about.
LIMITS = {
    "everything_in_float32": 0.1,
    "lists_for_tensors": 0.3,
    "an_exception_beside": 0.1,
    "no_errors_raised": 0.1,
    "not_on_the_device": 0.1,
    ANOTHER: 0.35,
}


@pytest.fixture(scope="module")
def found() -> list[Survival]:
    return [survival for exercise in SAMPLE for survival in survivals(exercise)]


@pytest.mark.parametrize("fault", [*FAULTS, ANOTHER])
def test_a_second_fault_keeps_the_diagnosis(found: list[Survival], fault: str) -> None:
    of_fault = [survival for survival in found if survival.fault == fault]
    lost = [survival for survival in of_fault if not survival.is_kept]
    assert len(of_fault) > 50
    assert len(lost) <= LIMITS[fault] * len(of_fault), lost[:10]


def test_a_mistake_that_is_not_known_is_hardly_ever_given_the_name_of_another() -> None:
    outcomes = [bool(_named_without(exercise, i)) for exercise in SAMPLE for i in range(len(exercise.misconceptions))]
    assert len(outcomes) > 200
    assert sum(outcomes) <= 0.05 * len(outcomes)


def _named_without(exercise: Exercise, number: int) -> frozenset[str]:
    """Return what is named if a known mistake is taken off the list and given as an answer."""
    sheet = exercise.sheet()
    answers = [sheet.list_mistake_answers(number, section) for section in range(len(sheet.sections))]
    others = replace(
        sheet,
        misconceptions=[each for i, each in enumerate(sheet.misconceptions) if i != number],
        ask_mistake=lambda mistake, row, probe: sheet.answer(mistake + (mistake >= number), row, probe),
    )
    return named_mistakes(others, answers)
