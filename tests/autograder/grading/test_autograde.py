"""A class is graded: the scores are those predicted, with any number of jobs, here and in nbgrader itself."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder.commands.selftest.sample_class import SampleStudent, sample_class
from autograder.course.folder import Course
from autograder.engine.settings import GradingSettings
from autograder.grading.autograde import autograde
from autograder.grading.feedback.pages import write_feedback
from autograder.grading.plugin import autograder_config
from autograder.grading.record.results import GradeResult, read_result

from .conftest import CHAPTER

STUDENTS = 7
# The course's own seed; whatever isolation there is will do for submissions that we have made ourselves.
WEAKER = GradingSettings(seed=None, allow_weaker=True)


@dataclass(frozen=True)
class Graded:
    """A sample class, graded with two jobs."""

    course: Course
    students: list[SampleStudent]
    results: list[GradeResult]
    told: list[str]


@pytest.fixture(scope="module")
def graded(pristine: Path, tmp_path_factory: pytest.TempPathFactory) -> Graded:
    root = tmp_path_factory.mktemp("graded") / "course"
    shutil.copytree(pristine, root)
    course = Course.open(root)
    students = sample_class(Path.cwd(), course, [CHAPTER], students=STUDENTS, seed=4, predict=True)
    told: list[str] = []
    results = autograde(
        course,
        CHAPTER,
        jobs=2,
        device="cpu",
        settings=WEAKER,
        progress=lambda result: told.append(result.student),
    )
    return Graded(course, students, results, told)


def gradebook_scores(root: Path) -> dict[str, dict[str, float | None]]:
    """Every auto score in a gradebook, by student and cell."""
    found: dict[str, dict[str, float | None]] = {}
    with Gradebook(f"sqlite:///{root / 'gradebook.db'}") as gradebook:
        for student in gradebook.students:
            for submission in student.submissions:
                for grade in submission.notebooks[0].grades:
                    found.setdefault(student.id, {})[grade.name] = grade.auto_score
    return found


def copy_of(graded: Graded, path: Path, students: list[str], *, plugin: bool = True) -> Path:
    """A course with the same submissions of some students and an empty gradebook."""
    shutil.copytree(
        graded.course.root, path, ignore=shutil.ignore_patterns("autograded", "results", "feedback", "gradebook.db")
    )
    for folder in (path / "submitted").iterdir():
        if folder.name not in students:
            shutil.rmtree(folder)
    config = path / "nbgrader_config.py"
    text = config.read_text(encoding="utf-8")
    if not plugin:
        text = "\n".join(line for line in text.splitlines() if "configure" not in line)
    config.write_text(text, encoding="utf-8")
    return path


def odd(graded: Graded, oddity: str) -> str:
    return next(student.id for student in graded.students if student.chapters[CHAPTER].oddity == oddity)


def test_every_score_in_the_gradebook_is_the_one_predicted(graded: Graded) -> None:
    seen = gradebook_scores(graded.course.root)
    assert len(seen) == STUDENTS
    kinds = set()
    for student in graded.students:
        work = student.chapters[CHAPTER]
        for name, expected in work.exercises.items():
            kinds.add(expected.kind)
            assert seen[student.id][f"test_{name}"] == pytest.approx(expected.score), (student.id, name, expected)
        assert sum(score or 0 for score in seen[student.id].values()) == pytest.approx(work.score)
    assert kinds == {"right", "mistake", "stub", "broken"}, (
        "the class is too tame to prove anything; draw it from another seed"
    )


def test_results_say_what_the_gradebook_says(graded: Graded) -> None:
    seen = gradebook_scores(graded.course.root)
    assert [result.student for result in graded.results] == sorted(graded.told) == sorted(seen)
    named = 0
    for student, result in zip(graded.students, graded.results, strict=True):
        work = student.chapters[CHAPTER]
        for exercise in result.exercises:
            assert seen[result.student][f"test_{exercise.name}"] == exercise.score
            if exercise.verdict is not None:
                assert (exercise.verdict.exercise, exercise.verdict.score) == (exercise.name, exercise.score)
                mistake = work.exercises[exercise.name].mistake
                named += bool(mistake) and mistake in [item.name for item in exercise.verdict.diagnoses]
        assert [(q.name, q.answered) for q in result.questions] == [("question_root", bool(work.answered))]
        assert read_result(graded.course, CHAPTER, result.student) == replace(result, unchanged=True)
    assert named, "a known mistake has its name"


def written(root: Path, students: list[str]) -> dict[str, bytes]:
    """Every byte of results and feedback of some students."""
    found = [path for folder in ("results", "feedback") for path in sorted((root / folder).rglob("*"))]
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in found
        if path.is_file() and {path.stem, *path.parts} & set(students)
    }


@pytest.fixture(scope="module")
def few(graded: Graded) -> list[str]:
    """Students whose submissions are run again in other ways: an odd one, a broken one, an ordinary one."""
    return sorted([odd(graded, "stripped"), odd(graded, "broken cell"), odd(graded, "not a notebook")])


def test_any_number_of_jobs_gives_the_same_bytes_of_results_and_feedback(
    graded: Graded, few: list[str], pristine: Path, tmp_path: Path
) -> None:
    write_feedback(graded.course, CHAPTER, autograder_config(graded.course), students=few)
    expected = written(graded.course.root, few)
    assert len(expected) == 3 * len(few)  # a result, a page, and nbgrader's time stamp
    for jobs in (1, 3):
        root = copy_of(graded, tmp_path / str(jobs), few)
        shutil.copy(pristine / "gradebook.db", root / "gradebook.db")
        results = autograde(Course.open(root), CHAPTER, jobs=jobs, device="cpu", settings=WEAKER)
        write_feedback(Course.open(root), CHAPTER, autograder_config(Course.open(root)))
        assert [(result.student, result.unchanged) for result in results] == [(student, False) for student in few]
        assert written(root, few) == expected


@pytest.mark.parametrize("plugin", [True, False], ids=["with this project", "as it is"])
def test_nbgrader_itself_gives_the_same_scores(
    graded: Graded, few: list[str], pristine: Path, tmp_path: Path, plugin: bool
) -> None:
    students = few if plugin else [odd(graded, "")]
    root = copy_of(graded, tmp_path / "course", students, plugin=plugin)
    shutil.copy(pristine / "gradebook.db", root / "gradebook.db")
    words = [sys.executable, "-m", "nbgrader", "autograde", CHAPTER]
    done = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    expected, seen = gradebook_scores(graded.course.root), gradebook_scores(root)
    assert {student: seen[student] for student in students} == {student: expected[student] for student in students}
