"""A sample class that was interrupted can be made again, and its files are whole or not there."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.selftest import sample_class as module
from autograder.selftest.sample_class import SAVED_AS, sample_class

from .conftest import CHAPTER


def make(course: Course, **about: int) -> list[str]:
    """Make a class and return its students' ids."""
    return [student.id for student in sample_class(Path.cwd(), course, [CHAPTER], **{"students": 4, **about})]


def files(course: Course) -> dict[str, bytes]:
    """Everything that a sample class writes, but for the gradebook."""
    paths = [*course.root.glob("submitted/*/*/*"), course.root / SAVED_AS, course.root / "students.json"]
    return {str(path.relative_to(course.root)): path.read_bytes() for path in paths}


def stop_at(number: int, then: Callable[..., Any], error: BaseException) -> Callable[..., Any]:
    """Return a function that raises when it is called for the so-many-th time."""
    calls = 0

    def stopping(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == number:
            raise error
        return then(*arguments, **options)

    return stopping


@pytest.mark.parametrize(
    ("function", "number"), [("_hand_in", 3), ("_set_due_dates", 1), ("write_roster", 1)], ids=lambda word: str(word)
)
def test_a_class_that_was_interrupted_can_be_made_again_and_is_the_same(
    course: Course, monkeypatch: pytest.MonkeyPatch, function: str, number: int
) -> None:
    make(course)
    whole = files(course)
    shutil.rmtree(course.folder("submitted"))
    for name in (SAVED_AS, "students.json"):
        (course.root / name).unlink()
    with monkeypatch.context() as patch:
        patch.setattr(module, function, stop_at(number, getattr(module, function), KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            make(course)
    assert list(course.root.glob("submitted/*"))
    make(course)
    assert files(course) == whole


def test_another_class_after_an_interrupted_one_leaves_a_folder_that_can_be_used_again(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(module, "_hand_in", stop_at(4, module._hand_in, KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            make(course, seed=1)
    other = make(course, seed=2)
    assert make(course, seed=2) == other
    saved = json.loads((course.root / SAVED_AS).read_text(encoding="utf-8"))
    there = {path.name for path in course.folder("submitted").iterdir()}
    assert {student["id"] for student in saved} == there > set(other)


def test_a_disk_that_is_full_leaves_no_half_of_a_file_and_says_what_to_do(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        replace = stop_at(5, Path.replace, OSError(28, "No space left on device"))
        patch.setattr(Path, "replace", lambda *arguments: replace(*arguments))
        with pytest.raises(CourseError, match="No space left on device") as refused:
            make(course)
    assert "run the command again" in refused.value.do
    for path in course.root.glob(f"submitted/*/*/{CHAPTER}.ipynb"):
        assert path.with_name("timestamp.txt").is_file()
    assert len(make(course)) == 4


def test_a_list_that_cannot_be_read_is_told_with_a_way_out(course: Course) -> None:
    make(course)
    (course.root / SAVED_AS).write_text("", encoding="utf-8")
    with pytest.raises(CourseError, match=SAVED_AS) as refused:
        make(course)
    assert "--course" in refused.value.do
