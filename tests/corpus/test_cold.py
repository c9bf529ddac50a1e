"""A handful of the corpus with a real kernel and the real checks: what the quick executor says is what comes out."""

from __future__ import annotations

from typing import Any

import pytest

from autograder.course.folder import Course
from autograder.engine.jupyter.kernel_executor import KernelExecutor
from autograder.engine.settings import GradingSettings
from autograder.grading.autograde import autograde

from .files import CASES, Case
from .material import CHAPTER, EXERCISES, Work, points

CHOSEN = (
    "order reversed and stripped",
    "cells of shell and files",
    "characters without width",
    "syntax error in one exercise",
)


@pytest.mark.parametrize("case", [case for case in CASES if case.name in CHOSEN], ids=lambda case: case.name)
def test_a_real_run_gives_the_same_points(case: Case, course: Course, released: dict[str, dict[str, Any]]) -> None:
    made = case.make(Work.done(released[CHAPTER]))
    path = course.root / "submitted" / "amara" / CHAPTER / f"{CHAPTER}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_bytes(made if isinstance(made, bytes) else made.json())
    (result,) = autograde(course, CHAPTER, device="cpu", make_executor=KernelExecutor, settings=GradingSettings(seed=1))
    assert result.status == "graded"
    assert {exercise.name: exercise.score for exercise in result.exercises} == {
        name: 0.0 if name in case.lost else points(name) for name in EXERCISES[CHAPTER]
    }
    told = [problem.kind for problem in result.problems if problem.kind != "cell error"]
    assert tuple(told) == case.kinds


def test_the_chosen_are_in_the_corpus() -> None:
    assert {case.name for case in CASES} >= set(CHOSEN)
