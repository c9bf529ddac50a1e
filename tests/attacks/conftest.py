"""Battles are fought once: a class per family, and each test looks at one thing that came of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from .attack import in_family
from .battle import Battle, fight
from .ground import exercises_of, ground


@pytest.fixture(scope="session")
def alone() -> Callable[[str], Battle]:
    """Return a function that grades honest work, alone, on a ground like that of a family."""

    @cache
    def battle(exercises: tuple[str, ...]) -> Battle:
        with ground(exercises) as made:
            return fight(made, (), walls=False)

    return lambda family: battle(exercises_of(family))


@pytest.fixture(scope="session")
def walls(alone: Callable[[str], Battle]) -> bool:
    """Whether an honest notebook saw that it is shut in. Nothing that could do harm is let loose without."""
    seen = alone("reading")
    if not seen.honest or seen.honest[0] not in seen.looks:
        return False
    found = seen.looks[seen.honest[0]].get("walls", {})
    held = found.get("NoNewPrivs") == "1" and found.get("Seccomp") == "2"
    return held and found.get("sees outside") is False and found.get("reaches a port") is False


@pytest.fixture(scope="session")
def battle(walls: bool) -> Callable[[str], Battle]:
    """Return a function that lets a family loose."""

    @cache
    def of(family: str) -> Battle:
        with ground(exercises_of(family)) as made:
            return fight(made, in_family(family), walls=walls)

    return of
