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


def test_signatures_are_kept_for_the_graded_submission(graded: Course) -> None:
    result = read_result(graded, CHAPTER, "ann")
    assert result is not None
    assert read_signatures(graded, CHAPTER, "ann", result.submission) == {"soft_lookup": SIGNATURE}
    assert signatures_path(graded, CHAPTER, "ann") == graded.root / "journal" / "behaviour" / CHAPTER / "ann.json"


def test_results_are_the_same_bytes_without_signatures(graded: Course) -> None:
    before = result_path(graded, CHAPTER, "ann").read_bytes()
    grade(graded, Scripted(), force=True)
    assert result_path(graded, CHAPTER, "ann").read_bytes() == before
    assert not signatures_path(graded, CHAPTER, "ann").exists()


def test_a_replay_neither_sees_nor_writes_signatures(graded: Course, snapshot: Snapshot) -> None:
    before = snapshot(graded.root)
    assert replay(graded, CHAPTER, "ann", make_executor=Scripted()).same
    assert replay(graded, CHAPTER, "ann", make_executor=Describing()).same
    assert snapshot(graded.root) == before


def test_an_unchanged_submission_keeps_its_signatures(graded: Course) -> None:
    before = signatures_path(graded, CHAPTER, "ann").read_bytes()
    grade(graded, Scripted())
    assert signatures_path(graded, CHAPTER, "ann").read_bytes() == before


def test_a_failure_of_the_grader_takes_signatures_back(graded: Course) -> None:
    grade(graded, Scripted({"ann": None}), force=True)
    assert not signatures_path(graded, CHAPTER, "ann").exists()


def test_a_removed_submission_takes_its_signatures_along(graded: Course, filled: Fill, hand_in: HandIn) -> None:
    hand_in("ben", filled(answer="Because."))
    shutil.rmtree(graded.folder("submitted", "ann"))
    grade(graded, Describing())
    assert not signatures_path(graded, CHAPTER, "ann").exists()
    assert signatures_path(graded, CHAPTER, "ben").exists()


def test_an_unwritable_file_costs_no_grade(graded: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("autograder.record.signatures.write_atomically", full)
    grade(graded, Describing(), force=True)
    result = read_result(graded, CHAPTER, "ann")
    assert result is not None
    assert result.status == "graded"
