"""The whole corpus in one class: everybody gets what is theirs, and nobody else's result changes."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from autograder.course.folder import Course
from autograder.engine.settings import GradingSettings
from autograder.grading.autograde import autograde
from autograder.grading.record.results import GradeResult

from .files import CASES, Case
from .in_process import InProcess
from .material import CHAPTER, EXERCISES, OTHER, Work, points, stub

# A course draws its own seed, and grades name it.
SETTINGS = GradingSettings(seed=1)
Released = dict[str, dict[str, Any]]
# Alphabetically before, among and behind the corpus, so that whatever a bad file leaves behind meets somebody.
BYSTANDERS = ("aaron", "file-050-b", "zoe")


@dataclass(frozen=True)
class Graded:
    """A class that was graded: the corpus with bystanders, and the bystanders alone."""

    course: Course
    results: dict[str, GradeResult]
    alone: dict[str, GradeResult]


def ids() -> dict[str, Case]:
    """Return the corpus by student id."""
    return {f"file-{number:03d}": case for number, case in enumerate(CASES)}


def put(course: Course, student: str, data: bytes) -> Path:
    """Put a file where a submission goes."""
    path = course.root / "submitted" / student / CHAPTER / f"{CHAPTER}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    return path


def bystander(released: Released, student: str) -> bytes:
    """Return an untouched submission; each bystander did something else."""
    work = Work.done(released[CHAPTER])
    if student != "aaron":
        name = EXERCISES[CHAPTER][BYSTANDERS.index(student)]
        work.cell(name)["source"] = stub(name)
    return work.json()


def timeless(result: GradeResult) -> GradeResult:
    """Return a result without what differs from run to run."""
    return replace(result, seconds=0.0, exercises=tuple(replace(item, seconds=0.0) for item in result.exercises))


@pytest.fixture(scope="module")
def graded(pristine: Path, released: Released, tmp_path_factory: pytest.TempPathFactory) -> Graded:
    both = []
    for everybody in (True, False):
        course = Course.open(Path(shutil.copytree(pristine, tmp_path_factory.mktemp("class") / "course")))
        for student in BYSTANDERS:
            put(course, student, bystander(released, student))
        if everybody:
            for student, case in ids().items():
                made = case.make(Work.done(released[CHAPTER]))
                put(course, student, made if isinstance(made, bytes) else made.json())
            _put_what_is_no_file(course, released)
        results = autograde(course, CHAPTER, device="cpu", make_executor=InProcess, settings=SETTINGS)
        both.append((course, {result.student: result for result in results}))
    return Graded(both[0][0], both[0][1], both[1][1])


def _put_what_is_no_file(course: Course, released: Released) -> None:
    submitted = course.root / "submitted"
    for student in ("odd-pipe", "odd-folder", "odd-dangling", "odd-loop", "odd-other-chapter"):
        (submitted / student / CHAPTER).mkdir(parents=True)
    name = f"{CHAPTER}.ipynb"
    os.mkfifo(submitted / "odd-pipe" / CHAPTER / name)
    (submitted / "odd-folder" / CHAPTER / name).mkdir()
    (submitted / "odd-dangling" / CHAPTER / name).symlink_to("/nowhere/at/all.ipynb")
    (submitted / "odd-loop" / CHAPTER / name).symlink_to(name)
    (submitted / "odd-other-chapter" / CHAPTER / name).write_bytes(Work.done(released[OTHER]).json())


@pytest.mark.parametrize("student", BYSTANDERS)
def test_nobody_elses_result_changes(graded: Graded, student: str) -> None:
    mine, before = graded.results[student], graded.alone[student]
    assert mine.status == "graded"
    assert timeless(mine) == timeless(before)
    assert mine.problems == ()


def test_bystanders_have_what_they_earned(graded: Graded) -> None:
    full = sum(map(points, EXERCISES[CHAPTER]))
    assert graded.results["aaron"].score == full
    assert graded.results["zoe"].score == full - points("soft_lookup")


@pytest.mark.parametrize(("student", "case"), ids().items(), ids=[case.name for case in CASES])
def test_every_file_of_the_class_gets_its_grade_or_its_verdict(graded: Graded, student: str, case: Case) -> None:
    result = graded.results[student]
    assert result.status == ("not gradable" if case.fatal else "graded"), result.problems
    told = tuple(problem.kind for problem in result.problems)
    assert told == case.kinds
    assert {exercise.name: exercise.score for exercise in result.exercises} == {
        name: 0.0 if name in case.lost else points(name) for name in EXERCISES[CHAPTER]
    }


@pytest.mark.parametrize("student", ["odd-pipe", "odd-folder", "odd-dangling", "odd-loop", "odd-other-chapter"])
def test_what_is_no_notebook_of_the_chapter_is_not_gradable(graded: Graded, student: str) -> None:
    result = graded.results[student]
    assert result.status == "not gradable"
    assert result.score == 0.0
    assert result.problems[0].kind in ("no notebook", "file refused", "wrong chapter")
