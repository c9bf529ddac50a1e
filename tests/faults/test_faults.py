"""After any fault the next run ends with the grades of a run that nobody disturbed. ``python -m tests.faults`` tries all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .classroom import classroom
from .faults import FAULTS, QUICK
from .trial import Trial, Undisturbed, undisturbed


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Undisturbed]:
    with classroom() as (root, chapter):
        yield undisturbed(root, chapter, tmp_path_factory.mktemp("faults"))


@pytest.mark.parametrize("name", QUICK)
def test_grades_are_the_same_after_a_fault(subject: Undisturbed, tmp_path: Path, name: str) -> None:
    trial = Trial(subject, tmp_path)
    FAULTS[name](trial)
    assert trial.differences() == []


def test_a_lost_result_is_a_difference(subject: Undisturbed, tmp_path: Path) -> None:
    trial = Trial(subject, tmp_path)
    (trial.root / "submitted" / "ada" / subject.chapter / f"{subject.chapter}.ipynb").write_bytes(b"%PDF-1.7")
    assert any("ada" in difference for difference in trial.differences())
