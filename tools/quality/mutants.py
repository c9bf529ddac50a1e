"""Generate the mutants of an exercise: choose the definitions to change, and rebuild the reference with a changed one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from autograder.checking.exercise import Exercise
from autograder.checks import exercises
from autograder.mistakes.source_edits import Node, Sources, run_source
from autograder.quizzes.mutation.guards import promises_errors
from autograder.quizzes.mutation.operators import Mutation, list_mutations

Key = tuple[str, str]


@dataclass(frozen=True)
class Mutant:
    """The reference of an exercise with one change, in itself or in a private helper that it alone uses."""

    of: Node  # the definition that is changed
    mutation: Mutation  # the change

    def make(self, exercise: Exercise) -> Callable[..., Any]:
        """Return the changed reference.

        Raises:
            EditError: if it does not even run.
        """
        return with_definition(exercise, self.of, self.mutation.code)


def mutants_of(exercise: Exercise) -> Iterator[Mutant]:
    """Yield the mutants of an exercise, in the order of definitions and lines."""
    guards = promises_errors(exercise.reference)
    for node in own_definitions(exercise):
        for mutation in list_mutations(node.code, guards=guards):
            yield Mutant(node, mutation)


def with_definition(exercise: Exercise, node: Node, code: str) -> Callable[..., Any]:
    """Return the reference with other code in the place of one definition that it reaches.

    Raises:
        EditError: if it does not even run.
    """
    start, reached = _reached(exercise)
    source = _sources().module_source(start, reached, {node.key: code})
    return run_source(source, exercise.name, f"<mutant of {exercise.name}>")


def own_definitions(exercise: Exercise) -> list[Node]:
    """Return the definitions of the reference and of the private helpers that no other exercise uses."""
    start, reached = _reached(exercise)
    users = _users_of_helpers()
    return [node for key, node in reached.items() if key == start or (key in _helpers(exercise) and users[key] == 1)]


def reached_code(exercise: Exercise) -> dict[Key, Node]:
    """Return every definition of the project that the reference reaches."""
    return _reached(exercise)[1]


@cache
def _sources() -> Sources:
    return Sources()


@cache
def _reached(exercise: Exercise) -> tuple[Key, dict[Key, Node]]:
    start = (exercise.reference.__module__, exercise.reference.__name__)
    return start, _sources().reachable(start)


@cache
def _helpers(exercise: Exercise) -> frozenset[Key]:
    """Return the private definitions that a reference reaches without running through a public one."""
    start, _ = _reached(exercise)
    helpers: set[Key] = set()
    waiting = [start]
    while waiting:
        for key in _sources().neighbours(*waiting.pop()):
            if key[1].startswith("_") and key not in helpers:
                helpers.add(key)
                waiting.append(key)
    return frozenset(helpers)


@cache
def _users_of_helpers() -> Counter[Key]:
    return Counter(key for exercise in exercises().values() for key in _helpers(exercise))
