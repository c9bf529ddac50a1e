"""The present grader runs the students' package that version 0.2.0 released, and gives the same points to the same answers.

`courses/version-0.2.0.tar.xz` is a course folder of that version, made by `courses/make_version_0_2_0.sh`: chapter 03 with its wheel, two
students of the sample class, and one mark that a person gave. Their mistakes may be paid otherwise by now, since checks ask more.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from autograder.commands.main import main
from autograder.course.folder import Course
from autograder.gradebook.reader import open_gradebook
from autograder.record.provenance import package_hash

from .conftest import PROJECT

CHAPTER = "03_scaled_dot_product"
ARCHIVE = Path(__file__).parent / "courses" / "version-0.2.0.tar.xz"
STUDENTS = ("jun-yilmaz", "yara-fontaine")


@pytest.fixture(scope="module")
def regraded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any], Result]:
    """The old course after a regrade, its results before that, and what the command printed."""
    root = tmp_path_factory.mktemp("version-0.2.0")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(root, filter="data")
    before = results(root)
    words = ["regrade", CHAPTER, "--allow-weaker-isolation", "--jobs", "1", "--course", str(root)]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(PROJECT)
        done = CliRunner().invoke(main, words)
    return root, before, done


def results(root: Path) -> dict[str, Any]:
    return {name: json.loads((root / "results" / CHAPTER / f"{name}.json").read_text("utf-8")) for name in STUDENTS}


def right(result: dict[str, Any]) -> dict[str, float]:
    """Return the points of the exercises that were answered without a mistake."""
    return {one["name"]: one["score"] for one in result["exercises"] if one["score"] == one["max_score"]}


def test_the_old_package_is_what_runs(regraded: tuple[Path, dict[str, Any], Result]) -> None:
    root, _, done = regraded
    assert done.exit_code == 0, done.output
    (wheel,) = (root / "student" / CHAPTER).glob("tfcourse-0.2.0+ch03-*.whl")
    for result in results(root).values():
        assert result["status"] == "graded"
        assert result["provenance"]["package"] == package_hash(str(wheel))
        assert [problem["kind"] for problem in result["problems"]] == ["other checks"]


@pytest.mark.parametrize("student", STUDENTS)
def test_right_answers_keep_their_points(regraded: tuple[Path, dict[str, Any], Result], student: str) -> None:
    root, before, _ = regraded
    assert right(before[student])
    assert right(results(root)[student]) == right(before[student])
    assert results(root)[student]["max_score"] == before[student]["max_score"]


def test_the_mark_of_a_person_stays(regraded: tuple[Path, dict[str, Any], Result]) -> None:
    with open_gradebook(Course(regraded[0])) as book:
        submission = book.find_submission(CHAPTER, "yara-fontaine")
        grades = {grade.name: grade for notebook in submission.notebooks for grade in notebook.grades}
        assert grades["question_query_key"].manual_score == 4.5
        assert not grades["question_query_key"].needs_manual_grade
