"""Store each submission's result as JSON beside nbgrader's gradebook: ``course/results/CHAPTER/STUDENT.json``.

The same submission, graded in the same way, gives the same bytes. Its running time is in a separate file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from autograder.atomic_files import write_atomically
from autograder.checking.verdict import Verdict
from autograder.course.folder import Course
from autograder.grading.record.provenance import Provenance
from autograder.intake.notebook.problem import Problem


def dumps_by_line(data: Mapping[str, Any], items: str, *, sort_keys: bool = False) -> str:
    """Serialise an object as JSON with a line per member, and a line per item of one of its lists.

    Full indentation would take Python six times as long.

    Args:
        data: the object.
        items: the name of the list.
        sort_keys: whether to sort members by name, at every depth.
    """
    write = partial(json.dumps, sort_keys=sort_keys, ensure_ascii=False)
    parts = {name: write(part) for name, part in data.items() if name != items}
    parts[items] = "[\n" + ",\n".join(map(write, data[items])) + "\n]"
    members = (f"{write(name)}: {parts[name]}" for name in (sorted(data) if sort_keys else data))
    return "{" + ",\n".join(members) + "}\n"


Status = Literal["graded", "not gradable", "not recorded", "to decide"]


@dataclass(frozen=True)
class ExerciseResult:
    """The result of one exercise."""

    name: str  # the exercise
    score: float  # the points from the check
    max_score: float  # the exercise's points
    verdict: Verdict | None = None  # the check's verdict; None if the test cell gave none
    error: str = ""  # why there is no verdict, or empty
    seconds: float = 0.0  # the running time of the test cell


@dataclass(frozen=True)
class QuestionResult:
    """A manually graded question; its points are in the gradebook."""

    name: str  # the question's name
    max_score: float  # the question's points
    answered: bool  # whether there is an answer; without one nbgrader gives 0 points


@dataclass(frozen=True)
class Notebook:
    """One of several notebooks of a student, among which a person must choose."""

    file: str  # its name in the student's folder
    score: float  # the points that the checks would give
    max_score: float  # the most points that they can give

    def __str__(self) -> str:
        return f"{self.file} ({self.score:g} of {self.max_score:g} points)"


@dataclass(frozen=True)
class GradeResult:
    """The result of one submission."""

    student: str
    chapter: str
    # ``"graded"``; ``"not gradable"``: 0 points, a problem gives the reason; ``"not recorded"``: the grader failed, nothing is recorded;
    # ``"to decide"``: there are several notebooks, and nothing is recorded before a person has chosen
    status: Status
    exercises: tuple[ExerciseResult, ...] = ()  # one result per test cell, in the chapter's order
    questions: tuple[QuestionResult, ...] = ()  # one per manually graded question, in the chapter's order
    problems: tuple[Problem, ...] = ()
    notebooks: tuple[Notebook, ...] = ()  # the notebooks to choose from, for the status ``"to decide"``
    late_penalty: float = 0.0  # the penalty of nbgrader's late-submission plugin
    device: str = "cpu"  # where the checks ran
    seed: int = 0  # the seed of the hidden tests, which reveals them: results are only for instructors
    seconds: float = 0.0  # the running time of the submission, including the kernel
    submission: str = ""  # hash of the submission, without its time stamp
    source: str = ""  # hash of the chapter's cells in the gradebook, including tests
    provenance: Provenance = field(default_factory=Provenance)  # checks, environment, limits and isolation
    unchanged: bool = False  # whether this is an earlier result of the same submission

    @property
    def score(self) -> float:
        """The points from the checks, before a late penalty and without questions."""
        return float(sum(exercise.score for exercise in self.exercises))

    @property
    def max_score(self) -> float:
        """The maximum points from the checks."""
        return float(sum(exercise.max_score for exercise in self.exercises))

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data, ready for JSON."""
        parts = {
            "exercises": [
                {**vars(exercise), "verdict": exercise.verdict.to_dict() if exercise.verdict else None}
                for exercise in self.exercises
            ],
            "questions": [dict(vars(question)) for question in self.questions],
            "problems": [problem.to_dict() for problem in self.problems],
            "notebooks": [dict(vars(notebook)) for notebook in self.notebooks],
            "provenance": self.provenance.to_dict(),
        }
        stored = {name: value for name, value in vars(self).items() if name != "unchanged"}
        return {"score": self.score, "max_score": self.max_score, **stored, **parts}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, unchanged: bool = False) -> GradeResult:
        """Parse the data that :meth:`to_dict` returned."""
        plain = ("student", "chapter", "status", "late_penalty", "device", "seed", "submission", "source")
        return cls(
            **{name: data[name] for name in plain},
            seconds=data.get("seconds", 0.0),  # the stored file has them apart, so that equal grades are equal files
            provenance=Provenance.from_dict(data["provenance"]),
            exercises=tuple(_exercise_from_dict(item) for item in data["exercises"]),
            questions=tuple(QuestionResult(q["name"], q["max_score"], q["answered"]) for q in data["questions"]),
            notebooks=tuple(Notebook(**item) for item in data["notebooks"]),
            problems=tuple(Problem.from_dict(item) for item in data["problems"]),
            unchanged=unchanged,
        )


def _exercise_from_dict(data: Mapping[str, Any]) -> ExerciseResult:
    return ExerciseResult(**{**data, "verdict": Verdict.from_dict(data["verdict"]) if data["verdict"] else None})


def describe_waiting(pending: Iterable[tuple[str, int]]) -> str:
    """Describe the number of answers that wait for manual grading in a phrase; empty if none waits.

    Args:
        pending: students with their numbers of waiting answers; a student may occur more than once.
    """
    by_student = [(student, answers) for student, answers in pending if answers]
    answers, students = sum(count for _, count in by_student), len({student for student, _ in by_student})
    if not answers:
        return ""
    one = answers == 1
    return (
        f"{answers} answer{'' if one else 's'} of {students} student{'' if students == 1 else 's'} "
        f"wait{'s' if one else ''} for manual grading"
    )


def result_path(course: Course, chapter: str, student: str) -> Path:
    """Return the path of a submission's result file."""
    return course.root / "results" / chapter / f"{student}.json"


def write_result(course: Course, result: GradeResult) -> Path:
    """Write a result atomically and durably: when this returns, the file would survive a power cut."""
    path = result_path(course, result.chapter, result.student)
    data = result.to_dict()
    times = {"seconds": data.pop("seconds"), "exercises": {}}
    for exercise in data["exercises"]:
        times["exercises"][exercise["name"]] = exercise.pop("seconds")
    _write_private(_times_path(course, result.chapter, result.student), json.dumps(times, ensure_ascii=False))
    _write_private(path, dumps_by_line(data, "exercises"), durable=True)
    return path


def _times_path(course: Course, chapter: str, student: str) -> Path:
    return course.root / "journal" / "seconds" / chapter / f"{student}.json"


def _write_private(path: Path, text: str, *, durable: bool = False) -> None:
    # A folder's name may hold bytes that are no text. Backslash escapes give the text that JSON would write.
    # It has the secret seed.
    write_atomically(path, text.encode("utf-8", errors="backslashreplace"), durable=durable, mode=0o600)


def read_result(course: Course, chapter: str, student: str) -> GradeResult | None:
    """Return a submission's stored result; None if it is missing or unreadable."""
    try:
        data = json.loads(result_path(course, chapter, student).read_text(encoding="utf-8"))
        result = GradeResult.from_dict(data, unchanged=True)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return _add_times(result, _times_path(course, chapter, student))


def _add_times(result: GradeResult, path: Path) -> GradeResult:
    """Add the stored running times to a result, if they are readable."""
    try:
        times = json.loads(path.read_text(encoding="utf-8"))
        exercises = tuple(
            replace(exercise, seconds=times["exercises"].get(exercise.name, 0.0)) for exercise in result.exercises
        )
        return replace(result, seconds=times["seconds"], exercises=exercises)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return result


def read_results(course: Course, chapter: str) -> list[GradeResult]:
    """Return the results of a chapter, ordered by student."""
    folder = course.root / "results" / chapter
    results = (read_result(course, chapter, path.stem) for path in sorted(folder.glob("*.json")))
    return [result for result in results if result is not None]
