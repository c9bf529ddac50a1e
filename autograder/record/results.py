"""What came of grading one submission, kept as JSON beside nbgrader's gradebook: ``course/results/CHAPTER/STUDENT.json``.

The same submission graded in the same way gives the same bytes. How long it took is no part of that, and is kept in a file of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from autograder.atomic_files import write_atomically
from autograder.checking.verdict import Verdict
from autograder.course.folder import Course
from autograder.record.compact_json import dumps_by_line
from autograder.record.provenance import Provenance
from autograder.submission.problem import Problem

Status = Literal["graded", "not gradable", "not recorded", "to decide"]


@dataclass(frozen=True)
class ExerciseResult:
    """What came of one exercise.

    Attributes:
        name: the exercise.
        score: points that the check gave.
        max_score: points that it is worth.
        verdict: the check's verdict; None if the test cell came to no verdict.
        error: why there is no verdict, if there is none.
        seconds: how long the test cell ran.
    """

    name: str
    score: float
    max_score: float
    verdict: Verdict | None = None
    error: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class QuestionResult:
    """A question that a person grades. Its points are in the gradebook.

    Attributes:
        name: the question's name.
        max_score: points that it is worth.
        answered: whether there is an answer; without one nbgrader gives 0 by itself.
    """

    name: str
    max_score: float
    answered: bool


@dataclass(frozen=True)
class Notebook:
    """One of several notebooks of a student, of which a person has to choose.

    Attributes:
        file: its name in the student's folder.
        score: points that the checks would give.
        max_score: points that they could give.
    """

    file: str
    score: float
    max_score: float

    def __str__(self) -> str:
        return f"{self.file} ({self.score:g} of {self.max_score:g} points)"


@dataclass(frozen=True)
class GradeResult:
    """What came of one submission.

    Attributes:
        student: the student's id.
        chapter: the chapter.
        status: ``"graded"``; ``"not gradable"``: 0 points, a problem says why; ``"not recorded"``: the grader failed, nothing is recorded;
            ``"to decide"``: there are several notebooks, and nothing is recorded before a person has chosen.
        exercises: one result per test cell, in the chapter's order.
        questions: one per manually graded question, in the chapter's order.
        problems: what went otherwise than it should.
        notebooks: those to choose from, where it is to be decided which one counts.
        late_penalty: points that nbgrader's late-submission plugin takes off.
        device: where the checks ran.
        seed: the seed that decided the hidden questions. With it they can be worked out: a result is for instructors only.
        seconds: how long the submission ran, kernel included.
        submission: hash of what was handed in, time stamp included.
        source: hash of the chapter's cells in the gradebook, tests included.
        provenance: what else it was graded with: checks, environment, limits and isolation.
        unchanged: whether this is an earlier result of the same submission, not graded again.
    """

    student: str
    chapter: str
    status: Status
    exercises: tuple[ExerciseResult, ...] = ()
    questions: tuple[QuestionResult, ...] = ()
    problems: tuple[Problem, ...] = ()
    notebooks: tuple[Notebook, ...] = ()
    late_penalty: float = 0.0
    device: str = "cpu"
    seed: int = 0
    seconds: float = 0.0
    submission: str = ""
    source: str = ""
    provenance: Provenance = field(default_factory=Provenance)
    unchanged: bool = False

    @property
    def score(self) -> float:
        """Points that the checks gave, before a late penalty and without the questions."""
        return float(sum(exercise.score for exercise in self.exercises))

    @property
    def max_score(self) -> float:
        """Points that the checks could give."""
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
        """Return the result that :meth:`to_dict` described."""
        plain = ("student", "chapter", "status", "late_penalty", "device", "seed", "submission", "source")
        return cls(
            **{name: data[name] for name in plain},
            seconds=data.get("seconds", 0.0),
            # A result of an earlier version does not say what it was made with.
            provenance=Provenance.from_dict(data["provenance"]) if "provenance" in data else Provenance(),
            exercises=tuple(_exercise(item) for item in data["exercises"]),
            # An earlier version wrote down what waited for a person then; what waits now is in the gradebook.
            questions=tuple(QuestionResult(q["name"], q["max_score"], q["answered"]) for q in data["questions"]),
            notebooks=tuple(Notebook(**item) for item in data.get("notebooks", [])),
            problems=tuple(Problem.from_dict(item) for item in data["problems"]),
            unchanged=unchanged,
        )


def _exercise(data: Mapping[str, Any]) -> ExerciseResult:
    return ExerciseResult(**{**data, "verdict": Verdict.from_dict(data["verdict"]) if data["verdict"] else None})


def waiting(pending: Iterable[tuple[str, int]]) -> str:
    """Return how much waits for manual grading, as a phrase, or nothing if nothing does.

    Args:
        pending: students with the number of their answers that wait; a student may come more than once.
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
    """Return where a submission's result is kept."""
    return course.root / "results" / chapter / f"{student}.json"


def write_result(course: Course, result: GradeResult) -> Path:
    """Write a result. A reader never sees half a file, and when this returns it would survive a power cut."""
    path = result_path(course, result.chapter, result.student)
    data = result.to_dict()
    times = {"seconds": data.pop("seconds"), "exercises": {}}
    for exercise in data["exercises"]:
        times["exercises"][exercise["name"]] = exercise.pop("seconds")
    _write(_times_path(course, result.chapter, result.student), json.dumps(times, ensure_ascii=False))
    _write(path, dumps_by_line(data, "exercises"), durable=True)
    return path


def _times_path(course: Course, chapter: str, student: str) -> Path:
    return course.root / "journal" / "seconds" / chapter / f"{student}.json"


def _write(path: Path, text: str, *, durable: bool = False) -> None:
    # The name of a folder may hold bytes that are no text. Escaped with a backslash they are what JSON would have written.
    write_atomically(path, text.encode("utf-8", errors="backslashreplace"), durable=durable)


def read_result(course: Course, chapter: str, student: str) -> GradeResult | None:
    """Return the result of an earlier run, or None if there is none that can be read."""
    try:
        data = json.loads(result_path(course, chapter, student).read_text(encoding="utf-8"))
        result = GradeResult.from_dict(data, unchanged=True)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return _with_times(result, _times_path(course, chapter, student))


def _with_times(result: GradeResult, path: Path) -> GradeResult:
    """Return a result with how long it took, if that is known."""
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
