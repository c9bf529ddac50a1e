"""A grade that is made again is the same, or it is told what is different; nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from autograder.course.folder import Course
from autograder.engine.settings import GradingSettings
from autograder.errors import CourseError
from autograder.grading.autograde import autograde
from autograder.grading.replay import replay

from .conftest import CHAPTER
from .scripted import Scripted

Fill = Callable[..., Any]
HandIn = Callable[..., Path]
Snapshot = Callable[[Path], dict[str, str]]


@pytest.fixture
def graded(course: Course, filled: Fill, hand_in: HandIn) -> Course:
    """A course in which Ann has a grade, made with limits and a seed of its own."""
    hand_in("ann", filled(answer="Because."))
    settings = GradingSettings(seed=7, memory_mb=512)
    autograde(course, CHAPTER, device="cpu", settings=settings, make_executor=Scripted())
    return course


def test_the_same_comes_out_with_the_recorded_seed_and_limits_and_nothing_is_written(
    graded: Course, snapshot: Snapshot
) -> None:
    before = snapshot(graded.root)
    again = Scripted()
    done = replay(graded, CHAPTER, "ann", make_executor=again)
    assert (done.same, done.differences, done.changes) == (True, (), ())
    assert (again.seen[0].seed, again.seen[0].memory_mb, again.seen[0].device) == (7, 512, "cpu")
    assert done.again == replace(
        done.recorded, unchanged=False, seconds=done.again.seconds, exercises=done.again.exercises
    )
    assert snapshot(graded.root) == before


def test_other_points_and_other_findings_are_told(graded: Course) -> None:
    other = Scripted({"ann": {"causal_mask": 2}}, said="Not as it should be.")
    done = replay(graded, CHAPTER, "ann", make_executor=other)
    assert not done.same
    assert "causal_mask: 1 points, now 2." in done.differences
    assert "soft_lookup, values: reworded." in done.differences
    assert done.to_dict()["score_again"] == done.to_dict()["score"] + 1


def test_other_checks_are_told_and_make_no_other_grade(graded: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autograder.grading.course_settings.checks_hash", lambda: "another")
    done = replay(graded, CHAPTER, "ann", make_executor=Scripted())
    assert (done.same, done.changes) == (True, ("The checks or the reference have changed.",))


def test_another_submission_is_told(graded: Course, filled: Fill, hand_in: HandIn) -> None:
    hand_in("ann", filled(answer="I know it now."))
    done = replay(graded, CHAPTER, "ann", make_executor=Scripted())
    assert done.differences == ("The submission has changed since it was graded.",)


def test_a_notebook_that_is_gone_is_told(graded: Course) -> None:
    (graded.root / "submitted" / "ann" / CHAPTER / f"{CHAPTER}.ipynb").unlink()
    done = replay(graded, CHAPTER, "ann", make_executor=Scripted())
    assert "It was graded, it is not gradable." in done.differences
    assert done.again.score == 0


def test_a_failure_of_the_grader_is_no_second_grade(graded: Course) -> None:
    done = replay(graded, CHAPTER, "ann", make_executor=Scripted({"ann": None}))
    assert "It was graded, it is not recorded." in done.differences


def test_a_file_that_is_no_notebook_is_replayed_as_well(course: Course, hand_in: HandIn) -> None:
    hand_in("ben", b"%PDF-1.7")
    autograde(course, CHAPTER, device="cpu", make_executor=Scripted())
    assert replay(course, CHAPTER, "ben", make_executor=Scripted()).same


def test_what_is_gone_cannot_be_replayed(graded: Course) -> None:
    folder = graded.folder("submitted", "ann", CHAPTER)
    folder.rename(folder.with_name("elsewhere"))
    with pytest.raises(CourseError, match=f"what ann handed in for {CHAPTER} is gone"):
        replay(graded, CHAPTER, "ann", make_executor=Scripted())


def test_where_there_is_no_grade_it_is_said_how_to_get_one(graded: Course, filled: Fill, hand_in: HandIn) -> None:
    with pytest.raises(CourseError, match="no grade of ghost") as caught:
        replay(graded, CHAPTER, "ghost", make_executor=Scripted())
    assert f"There is no {graded.folder('submitted', 'ghost', CHAPTER)}" in caught.value.do
    hand_in("unlucky", filled())
    with pytest.raises(CourseError, match="no grade of unlucky") as caught:
        replay(graded, CHAPTER, "unlucky", make_executor=Scripted())
    assert f"tfcourse autograde {CHAPTER}" in caught.value.do
    autograde(graded, CHAPTER, device="cpu", make_executor=Scripted({"unlucky": None}))
    with pytest.raises(CourseError, match="the grader failed"):
        replay(graded, CHAPTER, "unlucky", make_executor=Scripted())


def test_a_limit_that_there_no_longer_is_does_not_keep_a_grade_from_being_replayed(graded: Course) -> None:
    path = graded.root / "results" / CHAPTER / "ann.json"
    path.write_text(path.read_text().replace('"memory_mb": 512', '"memory_of_old": 512'))
    done = replay(graded, CHAPTER, "ann", make_executor=Scripted())
    assert done.same
    assert "The limit memory_of_old was 512, it is absent." in done.changes
