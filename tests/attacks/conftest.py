"""Battles are fought once: a class on each ground, and each test looks at one thing that came of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from .attack import Attack, attacks
from .battle import Battle, fight
from .ground import exercises_of, ground

Exercises = tuple[str, ...]


@pytest.fixture(scope="session")
def alone() -> Callable[[Exercises], Battle]:
    """Return a function that grades honest work, alone, on a ground with the given exercises."""

    @cache
    def battle(exercises: Exercises) -> Battle:
        with ground(exercises) as made:
            return fight(made, (), walls=False)

    return battle


@pytest.fixture(scope="session")
def walls(alone: Callable[[Exercises], Battle]) -> bool:
    """Whether an honest notebook saw that it is shut in. Nothing that could do harm is let loose without."""
    seen = alone(exercises_of("reading"))
    if not seen.honest or seen.honest[0] not in seen.looks:
        return False
    found = seen.looks[seen.honest[0]].get("walls", {})
    held = found.get("NoNewPrivs") == "1" and found.get("Seccomp") == "2"
    return held and found.get("sees outside") is False and found.get("reaches a port") is False


@pytest.fixture(scope="session")
def battle(request: pytest.FixtureRequest, walls: bool) -> Callable[[Exercises], Battle]:
    """Return a function that lets loose, one after the other, all attacks that belong on a ground and that the run's tests look at."""
    looked_at = {_attack_of(item) for item in request.session.items}
    chosen = [attack for attack in attacks() if attack.name in looked_at] or attacks()

    @cache
    def of(exercises: Exercises) -> Battle:
        with ground(exercises) as made:
            return fight(
                made, tuple(attack for attack in chosen if exercises_of(attack.family) == exercises), walls=walls
            )

    return of


def _attack_of(item: pytest.Item) -> str:
    """Return the name of the attack that a test is about, or nothing."""
    attack = item.callspec.params.get("attack") if hasattr(item, "callspec") else None
    return attack.name if isinstance(attack, Attack) else ""
