"""A sample class hands in a chapter, is graded, and reported on: with the chapter's own sheet, its questions, and every fourth exercise.

The other tests of grading have a small course of exercises from two chapters. This one takes the chapters that are not in it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from autograder.commands.main import main
from autograder.course.authoring.chapter import Chapter, find_chapter
from autograder.course.authoring.myst import write_notebook
from autograder.course.authoring.solution_notebook import source_notebook
from autograder.course.folder import Course
from autograder.course.release import student_build
from autograder.course.release.nbgrader_release import generate_assignment

from .conftest import EXERCISES, PROJECT

CHAPTERS = sorted({path.parent.name for path in (PROJECT / "chapters").glob("*/exercises.md")} - EXERCISES.keys())
# Two students of middling skill: right solutions, known mistakes and gaps, in every chapter.
SEED = "10"


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    """A course in which these chapters are released, shortened, for all of their exercises would show nothing else and take minutes."""
    # What is recorded is for checks at home, and takes half a minute a chapter. A grader asks the reference.
    monkeypatch.setattr(student_build, "_read_recordings", lambda root, chapter: {})
    found = Course.open(tmp_path / "course", create=True)
    with (found.root / "nbgrader_config.py").open("a", encoding="utf-8") as config:
        # That of the predictions: some mistakes get more or less by the questions that are drawn.
        config.write("\nc.GradingLimits.seed = 0\n")
    for name in CHAPTERS:
        release_shortened(found, find_chapter(PROJECT, name))
    return found


def release_shortened(course: Course, chapter: Chapter) -> None:
    source = course.root / "source" / chapter.name / f"{chapter.name}.ipynb"
    source.parent.mkdir(parents=True)
    notebook = source_notebook(chapter)
    names = [cell.metadata.get("nbgrader", {}).get("grade_id", "") for cell in notebook.cells]
    # From the last but one: predicting what a mistake in the last gets takes longer than all of the rest.
    exercises = [name for name in names if f"test_{name}" in names][::-1]
    left_out = {f"{test}{name}" for name in set(exercises) - set(exercises[1::4]) for test in ("", "test_")}
    notebook.cells = [cell for cell, name in zip(notebook.cells, names, strict=True) if name not in left_out]
    source.write_bytes(write_notebook(notebook))
    generate_assignment(course.config(), chapter.name)
    student_build.build_student_wheel(PROJECT, chapter, course.root / "student" / chapter.name)


def told(course: Course, command: str, *words: str) -> Any:
    """What a command says as JSON."""
    result = CliRunner().invoke(main, [command, *words, "--course", str(course.root), "--json"])
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_a_sample_class_gets_the_scores_that_were_predicted_and_a_report(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(PROJECT)
    made = told(course, "sample-class", *CHAPTERS, "--students", "2", "--seed", SEED, "--predict")
    # All chapters by one command, whose worker goes from one to the next.
    grading = told(course, "autograde", *CHAPTERS, "--jobs", "1", "--device", "cpu", "--allow-weaker-isolation")
    assert [graded["chapter"] for graded in grading] == CHAPTERS
    for name, graded in zip(CHAPTERS, grading, strict=True):
        works = {student["id"]: student["chapters"][name] for student in made}
        kinds = {exercise["kind"] for work in works.values() for exercise in work["exercises"].values()}
        answered = {student: sorted(work["answered"]) for student, work in works.items()}
        assert kinds >= {"right", "mistake"}, "the class is too tame to prove anything; draw it from another seed"
        assert any(answered.values()), "nobody answered a question; draw the class from another seed"
        for result in graded["results"]:
            work = works[result["student"]]
            assert (result["status"], result["problems"]) == ("graded", [])
            scores = {exercise["name"]: exercise["score"] for exercise in result["exercises"]}
            assert scores == {name: pytest.approx(expected["score"]) for name, expected in work["exercises"].items()}
            assert sorted(q["name"] for q in result["questions"] if q["answered"]) == answered[result["student"]]
        assert len(graded["feedback"]) == len(graded["results"]) == 2

    report = told(course, "report", *CHAPTERS)
    assert [summary["chapter"] for summary in report["chapters"]] == CHAPTERS
