"""Every attack is let loose in a class with honest students: it gains nothing, takes nothing, leaves nothing, and stops nobody."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from autograder.grading.record.results import ExerciseResult

from .attack import Attack, attacks
from .battle import Battle
from .ground import GUARDED, LIGHT, MIXED, exercises_of

Fight = Callable[[tuple[str, ...]], Battle]
EVERY_ATTACK = pytest.mark.parametrize("attack", attacks(), ids=lambda attack: f"{attack.family}: {attack.name}")
EVERY_GROUND = pytest.mark.parametrize("exercises", [LIGHT, GUARDED, MIXED], ids=", ".join)


def fought(battle: Fight, attack: Attack) -> tuple[Battle, str]:
    """Return the battle that an attack was in, and its student; fail if it was held back or never graded."""
    seen = battle(exercises_of(attack.family))
    if attack.name in seen.held_back:
        pytest.fail(f"not let loose, for no walls were seen, and {attack.unsafe}")
    student = seen.student(attack)
    assert student in seen.results, f"it has no result; {seen.said}"
    return seen, student


def of_exercise(seen: Battle, student: str, name: str) -> ExerciseResult:
    """Return what came of one exercise."""
    return next(exercise for exercise in seen.results[student].exercises if exercise.name == name)


def test_an_honest_notebook_sees_that_it_is_shut_in(walls: bool, alone: Fight) -> None:
    assert walls, alone(LIGHT).looks or alone(LIGHT).said


@EVERY_ATTACK
def test_an_attack_gains_takes_and_leaves_nothing_and_is_told_what_happened(battle: Fight, attack: Attack) -> None:
    seen, student = fought(battle, attack)
    result = seen.results[student]
    gained = {exercise.name: exercise.score for exercise in result.exercises if exercise.name not in attack.solved}
    assert sum(gained.values()) <= attack.due, gained
    assert seen.scores[student] == result.score, "the gradebook says otherwise"
    assert seen.traces[student] == []
    assert result.status == "graded" or (result.status == "not gradable" and result.problems)
    assert all(problem.kind and 0 < len(problem.what) < 5000 for problem in result.problems)
    for exercise in result.exercises:
        assert exercise.verdict is not None or exercise.error, f"{exercise.name} has neither a verdict nor a reason"
        if exercise.name in attack.solved:
            assert exercise.score == exercise.max_score, f"honest work in the same notebook: {exercise.error}"
    if attack.limit:
        mask = of_exercise(seen, student, "causal_mask")
        told = [mask.error, *(problem.what for problem in result.problems if "causal_mask" in problem.where)]
        told += [finding.message for finding in mask.verdict.findings] if mask.verdict else []
        assert any(character.isdigit() for text in told for character in text), f"no limit is named: {told!r}"


@EVERY_GROUND
def test_whoever_is_graded_among_attackers_is_graded_as_if_alone_and_the_ground_is_as_it_was(
    battle: Fight, alone: Fight, exercises: tuple[str, ...]
) -> None:
    seen, before = battle(exercises), alone(exercises)
    assert seen.ended, seen.said
    assert sorted(seen.results) == sorted([*seen.fighters, *seen.honest, seen.untouched])
    (model,) = before.honest
    expected = before.results[model]
    assert [exercise.name for exercise in expected.exercises] == list(exercises)
    for student in seen.honest:
        result = seen.results[student]
        assert result.score == result.max_score == expected.score == seen.scores[student]
        assert [one.verdict for one in result.exercises] == [one.verdict for one in expected.exercises]
        assert result.problems == expected.problems
        assert seen.looks.get(student) == before.looks[model], f"{student} was graded after others"
    assert seen.results[seen.untouched].score == 0
    changed = {name for name in seen.before.keys() | seen.after.keys() if seen.before.get(name) != seen.after.get(name)}
    assert not changed
    assert seen.victim_lives, "a process next door was killed or stopped"
    assert seen.heard == [], "somebody got through over the network"
