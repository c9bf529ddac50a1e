"""Check every mutant of an exercise, and measure the branches of the reference that the questions run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial

from autograder.checking.decision import find_first_failure
from autograder.checking.exercise import Exercise
from autograder.checking.sheet import Sheet
from autograder.checking.subject import LocalSubject
from autograder.errors import CourseError
from autograder.quizzes.mutation.limits import CRASHED, TOO_LONG, run_in_fork
from tools.quality import effects
from tools.quality.branches import branches_of
from tools.quality.mutants import Mutant, mutants_of, own_definitions, with_definition

# A mutant's limits relative to the reference: endless loops end soon, and a slow machine kills no mutant.
SECONDS, TIMES = 3.0, 10
MEMORY = 2 << 30

_ALIVE, _NO_EFFECT, _FAILED = "alive", "no effect", "failed "


@dataclass(frozen=True)
class Survivor:
    """A mutant that gets all the points."""

    of: str  # the definition that is changed
    number: int  # the line of its code, docstrings apart, from 1; layout may have changed since it was counted
    line: str  # the line's text without its margin
    before: str  # what stood there
    after: str  # what the mutant has there
    operator: str  # the kind of change


@dataclass(frozen=True)
class Measures:
    """Both measures of one exercise's check."""

    mutants: int  # number of mutants that the check has graded
    survivors: tuple[Survivor, ...]  # mutants with full points
    branches: int  # number of branches in the reference
    missed: tuple[str, ...]  # one line per branch that no test executes


def measure(exercise: Exercise) -> Measures:
    """Return both measures of an exercise's check.

    Raises:
        CourseError: if the unchanged reference, treated as a mutant is, does not get all the points.
    """
    sheet = exercise.sheet(hidden=True)
    seconds = SECONDS + TIMES * _seconds_of_the_reference(exercise, sheet)
    total, survivors = 0, []
    for mutant in mutants_of(exercise):
        answer, _ = run_in_fork(partial(_put, exercise, sheet, mutant), seconds=seconds, memory=MEMORY)
        if answer == _NO_EFFECT:
            continue
        total += 1
        if answer == _ALIVE:
            survivors.append(_survivor(mutant))
    branches, missed = _branches(exercise, 100 * seconds)
    return Measures(total, tuple(survivors), branches, missed)


def _branches(exercise: Exercise, seconds: float) -> tuple[int, tuple[str, ...]]:
    """Return the number of branches, and the missed ones, from a traced process."""

    def traced() -> str:
        branches = branches_of(exercise)
        return json.dumps([branches.total, branches.missed])

    answer, _ = run_in_fork(traced, seconds=seconds, memory=2 * MEMORY)
    if answer in (CRASHED, TOO_LONG):
        raise CourseError(f"the branches of {exercise.name} are not found: tracing it {answer}")
    total, missed = json.loads(answer)
    return total, tuple(missed)


def _seconds_of_the_reference(exercise: Exercise, sheet: Sheet) -> float:
    took = 0.0
    for node in own_definitions(exercise):
        candidate = with_definition(exercise, node, node.code)
        answer, seconds = run_in_fork(partial(_verdict, sheet, candidate), seconds=120, memory=MEMORY)
        if answer != _ALIVE:
            raise CourseError(
                f"a copy of {exercise.name} with nothing changed in {node.name} does not get all the points: {answer}",
                do="See why the check takes the copy for something else; no mutant of it can be judged.",
            )
        took = max(took, seconds)
    return took


def _put(exercise: Exercise, sheet: Sheet, mutant: Mutant) -> str:
    try:
        candidate = mutant.make(exercise)
    except Exception as error:
        return f"{_FAILED}to run: {error}"
    answer = _verdict(sheet, candidate)
    if answer == _ALIVE and mutant.mutation.operator.endswith(" added") and not effects.had_an_effect():
        return _NO_EFFECT
    return answer


def _verdict(sheet: Sheet, candidate: object) -> str:
    failed = find_first_failure(sheet, LocalSubject(candidate))  # type: ignore[arg-type]
    return _ALIVE if failed is None else _FAILED + failed


def _survivor(mutant: Mutant) -> Survivor:
    mutation = mutant.mutation
    lines = mutant.of.code.split("\n")
    return Survivor(
        of=mutant.of.name,
        number=mutation.line,
        line=lines[mutation.line - 1].strip(),
        before=mutation.before,
        after=mutation.after,
        operator=mutation.operator,
    )
