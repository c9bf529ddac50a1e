"""No change of a reference goes unseen by its check, unless the exercise's TOML says why.

What is committed in ``docs/grader-quality/mutants.json`` is believed as long as reference, check and engine are what they were; an exercise
in which something has changed is measured here. ``open.json`` beside it counts the holes that are still to be filled.
"""

from __future__ import annotations

import pytest

from autograder.checks import exercise, exercises
from autograder.mutation import record, report

RENEW = "python -m autograder.selftest.quality --mutants --write"


@pytest.mark.parametrize("name", [name for name in exercises() if name in record.committed()])
def test_every_survivor_is_explained_or_counted_as_open(name: str) -> None:
    target = exercise(name)
    measures = record.measures_of(target)
    assert not record.stale(target, measures), "drop the entries of mutants that are killed by now"
    found, allowed = len(record.unexplained(target, measures)), record.opened().get(name, 0)
    listed = "\n".join([*report.survivors(name, measures), *report.missed(name, measures)])
    assert found <= allowed, f"add cases that kill them, or record them as equivalent:\n{listed}"
    assert found == allowed, f"holes were filled: {RENEW} {name}"


def test_open_holes_are_those_of_exercises_that_exist() -> None:
    assert set(record.opened()) <= set(exercises())
    assert set(record.committed()) <= set(exercises())
