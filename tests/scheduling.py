"""Shares the tests out among the processes of pytest-xdist, so that none of them idles at the end.

A file's tests stay together, for they share what is slow to make. The checks of exercises share nothing but an exercise's questions, so
there the tests of each exercise stay together, whatever file they are in.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from xdist.scheduler import LoadScopeScheduling

BY_EXERCISE = "tests/autograder/checks/"


class FileScheduling(LoadScopeScheduling):
    """Like ``--dist loadfile``, with smaller units where a file would keep one process busy for minutes."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


def unit_of(nodeid: str) -> str:
    """Return the name of the unit that a test belongs to; one process runs all tests of a unit."""
    file, _, test = nodeid.partition("::")
    if not file.startswith(BY_EXERCISE):
        return file
    return next((f"{BY_EXERCISE}{word}" for word in _parameters(test) if word in _exercises()), file)


def _parameters(test: str) -> list[str]:
    return test.partition("[")[2].removesuffix("]").split("-")


@cache
def _exercises() -> frozenset[str]:
    from autograder.checks import exercises

    return frozenset(exercises())


def scheduler(config: Any, log: Any) -> FileScheduling | None:
    """Return the scheduler for ``--dist loadfile``, and None for other ways to share tests out."""
    return FileScheduling(config, log) if config.getvalue("dist") == "loadfile" else None
