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


def notebook(course: Course) -> Path:
    """Return Ann's notebook."""
    return course.folder("submitted", "ann", CHAPTER) / f"{CHAPTER}.ipynb"


def age(course: Course) -> None:
    """Let the grade be of a version that had another limit."""
    path = course.root / "results" / CHAPTER / "ann.json"
    path.write_text(path.read_text().replace('"memory_mb": 512', '"memory_of_old": 512'))


Change = Callable[[Course], object]
OTHER = Scripted({"ann": {"causal_mask": 2}}, said="Not as it should be.")
# What happens before the replay, who runs it, and words of the differences.
DIFFERENT: dict[str, tuple[Change, Scripted, tuple[str, ...]]] = {
    "points": (lambda course: None, OTHER, ("causal_mask", "soft_lookup")),
    "submission": (lambda course: notebook(course).write_bytes(b"%PDF"), Scripted(), ("submission",)),
    "nothing": (lambda course: notebook(course).unlink(), Scripted(), ("not gradable",)),
    "failure": (lambda course: None, Scripted({"ann": None}), ("not recorded",)),
    "limit": (age, Scripted(), ()),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_what_is_different_is_named(graded: Course, what: str) -> None:
    change, executor, words = DIFFERENT[what]
    change(graded)
    done = replay(graded, CHAPTER, "ann", make_executor=executor)
    assert done.same is (not words)
    assert [word for word in words if word not in "\n".join(done.differences)] == []
    if what == "limit":
        assert any("memory_of_old" in change for change in done.changes)
    if what == "points":
        assert done.to_dict()["score_again"] == done.to_dict()["score"] + 1


def test_other_checks_make_no_other_grade_and_no_notebook_is_replayed_as_well(
    graded: Course, hand_in: HandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_in("ben", b"%PDF-1.7")
    autograde(graded, CHAPTER, students=["ben"], device="cpu", make_executor=Scripted())
    assert replay(graded, CHAPTER, "ben", make_executor=Scripted()).same
    monkeypatch.setattr("autograder.grading.course_settings.checks_hash", lambda: "another")
    done = replay(graded, CHAPTER, "ann", make_executor=Scripted())
    assert (done.same, len(done.changes)) == (True, 1)
    notebook(graded).parent.rename(graded.root / "elsewhere")
    with pytest.raises(CourseError, match="gone"):
        replay(graded, CHAPTER, "ann", make_executor=Scripted())


def test_where_there_is_no_grade_it_is_said_how_to_get_one(graded: Course, filled: Fill, hand_in: HandIn) -> None:
    with pytest.raises(CourseError, match="no grade of ghost") as caught:
        replay(graded, CHAPTER, "ghost", make_executor=Scripted())
    assert str(graded.folder("submitted", "ghost", CHAPTER)) in caught.value.do
    hand_in("unlucky", filled())
    with pytest.raises(CourseError, match="no grade of unlucky") as caught:
        replay(graded, CHAPTER, "unlucky", make_executor=Scripted())
    assert f"tfcourse autograde {CHAPTER}" in caught.value.do
    autograde(graded, CHAPTER, device="cpu", make_executor=Scripted({"unlucky": None}))
    with pytest.raises(CourseError, match="the grader failed"):
        replay(graded, CHAPTER, "unlucky", make_executor=Scripted())
