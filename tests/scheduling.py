"""Orders the tests and shares them out among the processes of pytest-xdist, so that none of them idles at the end.

A file's tests stay together, for they share what is slow to make. The checks of exercises share nothing but an exercise's questions, so
the tests of an exercise stay together there, whatever file they are in.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
# The part of the tests that is about the machinery: attacks, odd files, the engine, grading, pages in a browser, whole semesters.
DEEP = (
    "attacks",
    "autograder/authoring/test_adding_an_exercise.py",
    "autograder/authoring/test_real_packages.py",
    "autograder/checks/test_diagnoses_with_second_faults.py",
    "autograder/checks/test_same_questions.py",
    "autograder/cluster",
    "autograder/engine",
    "autograder/grading",
    "autograder/mutation",
    "autograder/test_entry_point.py",
    "autograder/test_own_assignments.py",
    "corpus",
    "experiments/test_benchmarks.py",
    "experiments/test_translation.py",
    "faults",
    "nbgrader",
    "pages",
    "pretend",
    "questions",
    "semester",
    "site",
    "students",
    "test_install.py",
    "tfcourse/test_cuda.py",
)
PARTS = ("course", "deep")
BY_EXERCISE = "tests/autograder/checks/"
# Tests in which a chapter takes a minute, and has nothing in common with the others.
BY_TEST = "tests/students/"
# Lessons come first, for the site finds their outputs where their tests leave them; then the checks, whose recordings go into the students'
# packages; then the files that keep one process busy for minutes. The many short files that are not named fill the time at the end.
FIRST = (
    "test_types.py",
    "chapters",
    "autograder/checks",
    "students",
    "attacks",
    "faults",
    "autograder/engine/test_worker.py",
    "site/test_build.py",
    "corpus/test_oddities.py",
    "nbgrader",
    "semester",
    "autograder/grading/test_autograde.py",
    "autograder/grading/test_journal.py",
    "autograder/test_cli.py",
    "autograder/authoring",
    "pages",
)


@cache
def part_of(path: Path) -> str:
    """Return the part that a test file belongs to: ``make test`` runs ``course``, and ``make test-deep`` the other one."""
    name = path.relative_to(HERE).as_posix()
    return "deep" if any(name == first or name.startswith(f"{first}/") for first in DEEP) else "course"


@cache
def place_of(path: Path) -> int:
    """Return the place of a test file in the order: files that are not named come last."""
    name = path.relative_to(HERE).as_posix()
    return next((place for place, first in enumerate(FIRST) if name.startswith(first)), len(FIRST))


def unit_of(nodeid: str) -> str:
    """Return the name of the unit that a test belongs to; one process runs all tests of a unit."""
    file, _, test = nodeid.partition("::")
    if file.startswith(BY_TEST):
        return nodeid
    if not file.startswith(BY_EXERCISE):
        return file
    return next((f"{BY_EXERCISE}{word}" for word in _parameters(test) if word in _exercises()), file)


def _parameters(test: str) -> list[str]:
    return test.partition("[")[2].removesuffix("]").split("-")


@cache
def _exercises() -> frozenset[str]:
    from autograder.checks import exercises

    return frozenset(exercises())


def scheduler(config: Any, log: Any) -> object:
    """Return the scheduler for ``--dist loadfile``, and None for other ways to share tests out."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadScopeScheduling  # a machine that tests GPUs only has pytest alone

    class UnitScheduling(LoadScopeScheduling):
        """Like ``--dist loadfile``, with smaller units where a file would keep one process busy for minutes."""

        def _split_scope(self, nodeid: str) -> str:
            return unit_of(nodeid)

    return UnitScheduling(config, log)
