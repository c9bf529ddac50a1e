"""Every attack is let loose in a class with honest students: it gains nothing, takes nothing, leaves nothing, and stops nobody."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from autograder.record.results import ExerciseResult

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
def test_an_attack_gains_no_point(battle: Fight, attack: Attack) -> None:
    seen, student = fought(battle, attack)
    beside = [exercise for exercise in seen.results[student].exercises if exercise.name not in attack.solved]
    gained = {exercise.name: exercise.score for exercise in beside if exercise.score}
    assert sum(gained.values()) <= attack.due, gained
    assert seen.scores[student] == seen.results[student].score, "the gradebook says otherwise"


@EVERY_ATTACK
def test_an_attack_takes_nothing_and_leaves_nothing(battle: Fight, attack: Attack) -> None:
    seen, student = fought(battle, attack)
    assert seen.traces[student] == []


@EVERY_ATTACK
def test_the_attacker_can_read_what_happened(battle: Fight, attack: Attack) -> None:
    seen, student = fought(battle, attack)
    result = seen.results[student]
    assert result.status == "graded" or (result.status == "not gradable" and result.problems)
    for problem in result.problems:
        assert problem.kind
        assert 0 < len(problem.what) < 5000
    for exercise in result.exercises:
        assert exercise.verdict is not None or exercise.error, f"{exercise.name} has neither a verdict nor a reason"
    if attack.limit:
        told = of_exercise(seen, student, "causal_mask").error
        told += "".join(problem.what for problem in result.problems if "causal_mask" in problem.where)
        verdict = of_exercise(seen, student, "causal_mask").verdict
        told += "".join(finding.message for finding in verdict.findings) if verdict else ""
        assert any(character.isdigit() for character in told), f"no limit is named: {told!r}"


@pytest.mark.parametrize("attack", [a for a in attacks() if a.solved], ids=lambda attack: attack.name)
def test_honest_work_in_the_same_notebook_keeps_its_points(battle: Fight, attack: Attack) -> None:
    seen, student = fought(battle, attack)
    for name in attack.solved:
        exercise = of_exercise(seen, student, name)
        assert exercise.score == exercise.max_score, exercise.error


@EVERY_GROUND
def test_a_batch_with_attackers_comes_to_its_end(battle: Fight, exercises: tuple[str, ...]) -> None:
    seen = battle(exercises)
    assert seen.ended, seen.said
    assert sorted(seen.results) == sorted([*seen.fighters, *seen.honest, seen.untouched])


@EVERY_GROUND
def test_honest_students_get_what_they_get_alone(battle: Fight, alone: Fight, exercises: tuple[str, ...]) -> None:
    seen, before = battle(exercises), alone(exercises)
    (model,) = before.honest
    assert [exercise.name for exercise in before.results[model].exercises] == list(exercises)
    for student in seen.honest:
        assert student in seen.results, f"{student} has no grade; {seen.said}"
        result = seen.results[student]
        assert result.score == result.max_score == before.results[model].score == seen.scores[student]
        assert [exercise.verdict for exercise in result.exercises] == [
            exercise.verdict for exercise in before.results[model].exercises
        ]
        assert result.problems == before.results[model].problems


@EVERY_GROUND
def test_honest_students_see_the_world_as_if_nobody_had_come_before(
    battle: Fight, alone: Fight, exercises: tuple[str, ...]
) -> None:
    seen, before = battle(exercises), alone(exercises)
    (model,) = before.honest
    for student in seen.honest:
        assert seen.looks.get(student) == before.looks[model], f"{student} was graded after others"


@EVERY_GROUND
def test_an_untouched_notebook_among_attackers_gets_nothing(battle: Fight, exercises: tuple[str, ...]) -> None:
    seen = battle(exercises)
    assert seen.untouched in seen.results, seen.said
    assert seen.results[seen.untouched].score == 0


@EVERY_GROUND
def test_the_ground_is_as_it_was(battle: Fight, exercises: tuple[str, ...]) -> None:
    seen = battle(exercises)
    changed = {name for name in seen.before.keys() | seen.after.keys() if seen.before.get(name) != seen.after.get(name)}
    assert not changed
    assert seen.victim_lives, "a process next door was killed or stopped"
    assert seen.heard == [], "somebody got through over the network"
