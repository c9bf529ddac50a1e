"""Signatures of wrong answers are kept beside the results, change none of them, and go with the submission."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from autograder.course.folder import Course
from autograder.engine.interface import Execution, Submission
from autograder.engine.settings import GradingSettings
from autograder.grading.autograde import autograde
from autograder.grading.replay import replay
from autograder.record.results import read_result, result_path
from autograder.record.signatures import Signature, read_signatures, signatures_path

from .conftest import CHAPTER
from .scripted import Scripted

Fill = Callable[..., Any]
HandIn = Callable[..., Path]
Snapshot = Callable[[Path], dict[str, str]]
SIGNATURE = Signature("sheet", "structure", "f", (0.5,))


@dataclass
class Describing(Scripted):
    """Gives points, and the same signature for a wrong answer of everybody."""

    def grade_one(self, submission: Submission) -> Execution:
        """Give the points and the signature."""
        return replace(super().grade_one(submission), signatures={"soft_lookup": SIGNATURE.to_dict()})


def grade(course: Course, executor: Scripted, *, force: bool = False) -> None:
    autograde(course, CHAPTER, device="cpu", settings=GradingSettings(seed=7), make_executor=executor, force=force)


@pytest.fixture
def graded(course: Course, filled: Fill, hand_in: HandIn) -> Course:
    """A course in which Ann is graded, with a signature."""
    hand_in("ann", filled(answer="Because."))
    grade(course, Describing())
    return course


def test_signatures_are_kept_beside_the_results_as_long_as_the_submission(
    graded: Course, snapshot: Snapshot, filled: Fill, hand_in: HandIn
) -> None:
    kept = signatures_path(graded, CHAPTER, "ann")
    result = read_result(graded, CHAPTER, "ann")
    assert result is not None
    assert read_signatures(graded, CHAPTER, "ann", result.submission) == {"soft_lookup": SIGNATURE}
    assert kept.is_relative_to(graded.root / "journal")
    before = snapshot(graded.root)
    for executor in (Scripted(), Describing()):
        assert replay(graded, CHAPTER, "ann", make_executor=executor).same
    assert snapshot(graded.root) == before, "a replay neither sees nor writes them"
    signatures, recorded = kept.read_bytes(), result_path(graded, CHAPTER, "ann").read_bytes()
    grade(graded, Scripted())
    assert kept.read_bytes() == signatures, "unchanged"
    grade(graded, Scripted(), force=True)
    assert result_path(graded, CHAPTER, "ann").read_bytes() == recorded, "a result is the same bytes without them"
    assert not kept.exists()
    hand_in("ben", filled(answer="Because."))
    grade(graded, Describing(), force=True)
    assert kept.exists()
    grade(graded, Scripted({"ann": None}), force=True)
    assert not kept.exists(), "a failure of the grader takes them back"
    grade(graded, Describing(), force=True)
    shutil.rmtree(graded.folder("submitted", "ann"))
    grade(graded, Describing())
    assert not kept.exists()
    assert signatures_path(graded, CHAPTER, "ben").exists()


def test_an_unwritable_file_costs_no_grade(graded: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("autograder.record.signatures.write_atomically", full)
    grade(graded, Describing(), force=True)
    result = read_result(graded, CHAPTER, "ann")
    assert result is not None
    assert result.status == "graded"
