"""Plausible mistakes, written as students write them, get a diagnosis, and the right one.

``plausible`` has a file per chapter with a table per mistake: the exercise, what the mistake is, the wrong code (``edits`` of the reference
or a ``body``, as in the files of known mistakes), and in ``diagnosed`` the known mistakes that the student is told.
"""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autograder.checking.subject import LocalSubject
from autograder.checks import exercise, verdict_on
from autograder.mistakes.source_edits import Edit, apply_edits

FOLDER = Path(__file__).parent / "plausible"
UNDIAGNOSED = 0.1  # the largest fraction of them


def bank() -> Iterator[Any]:
    for path in sorted(FOLDER.glob("*.toml")):
        for table in tomllib.loads(path.read_text("utf-8"))["mistake"]:
            yield pytest.param(table, path, id=f"{table['exercise']}-{table['what']}")


def outcome(table: dict[str, Any], path: Path) -> tuple[float, set[str]]:
    """Return the share of points that a mistake keeps, and the known mistakes that the student is told."""
    target, edits = exercise(table["exercise"]), [Edit(**edit) for edit in table.get("edits", ())]
    wrong = apply_edits(target.reference, edits, body=table.get("body"), name=table["what"], file=path)
    verdict = verdict_on(LocalSubject(wrong), target.sheet(hidden=True))
    return verdict.score / verdict.max_score, {diagnosis.name for diagnosis in verdict.diagnoses}


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(("table", "path"), bank())
def test_a_plausible_mistake_loses_points_and_is_diagnosed(table: dict[str, Any], path: Path) -> None:
    kept, told = outcome(table, path)
    assert kept < 1
    assert told == set(table["diagnosed"])


def test_hardly_any_mistake_stays_without_a_diagnosis() -> None:
    diagnosed = [bool(parameters.values[0]["diagnosed"]) for parameters in bank()]
    assert diagnosed.count(False) <= UNDIAGNOSED * len(diagnosed)
