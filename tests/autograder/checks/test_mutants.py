"""No change of a reference goes unseen by its check, unless the exercise's TOML says why.

What is committed in ``docs/grader-quality/mutants.json`` is believed as long as reference, check and engine are what they were; an exercise
in which something has changed is measured here.
"""

from __future__ import annotations

import pytest

from autograder.checks import exercise, exercises
from tools.quality import record, report


@pytest.mark.parametrize("name", [name for name in exercises() if name in record.committed()])
def test_every_survivor_is_explained(name: str) -> None:
    target = exercise(name)
    measures = record.measures_of(target)
    assert not record.stale(target, measures), "drop the entries of mutants that are killed by now"
    listed = "\n".join([*report.survivors(name, measures), *report.missed(name, measures)])
    assert not record.unexplained(target, measures), (
        f"add cases that kill them, or record them as equivalent:\n{listed}"
    )


def test_only_exercises_that_exist_have_measures() -> None:
    assert set(record.committed()) <= set(exercises())
