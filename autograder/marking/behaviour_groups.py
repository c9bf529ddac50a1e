"""Group code answers that behave alike: by the rows that they failed and by what the check said about them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from autograder.course.folder import Course
from autograder.record.results import ExerciseResult, read_results


@dataclass(frozen=True)
class CodeAnswer:
    """What one student wrote for an exercise, and what the check made of it.

    Attributes:
        student: the student's id.
        exercise: the exercise.
        score: points that the check gave.
        max_score: points that it could give.
        failed_rows: the titles of the rows that failed, in the order of the check; none if there is no verdict.
        message: the messages of these rows, one per line, equal ones once; or the error, if there is no verdict.
        diagnosis: the explanation of a known mistake that the student was shown; None if there is none.
        source: the text of the answer cell; empty if it cannot be read.
        signature: a sketch of the behaviour, or None if there is none.
        wrong_calls: other exercises that the cell uses and the same student got wrong.
    """

    student: str
    exercise: str
    score: float
    max_score: float
    failed_rows: tuple[str, ...]
    message: str
    diagnosis: str | None
    source: str
    signature: object | None
    wrong_calls: tuple[str, ...] = ()

    @property
    def lost_points(self) -> float:
        """Points that the check did not give."""
        return self.max_score - self.score


@dataclass(frozen=True)
class BehaviourGroup:
    """Answers to one exercise that behave alike.

    Attributes:
        key: the same for the same behaviour.
        members: the answers.
        lost_points: points that the members lost together.
        follows_from: the exercises whose mistakes these answers inherit.
        representatives: up to three members whose text differs.
    """

    key: str
    members: tuple[CodeAnswer, ...]
    lost_points: float
    follows_from: tuple[str, ...]
    representatives: tuple[CodeAnswer, ...]


def group_answers(answers: Sequence[CodeAnswer]) -> list[BehaviourGroup]:
    """Return the groups of the answers to one exercise, those that lost most points first."""
    by_outcome: dict[str, list[CodeAnswer]] = {}
    for answer in answers:
        by_outcome.setdefault(_key(answer), []).append(answer)
    groups = [_group(key, members) for key, members in by_outcome.items()]
    return sorted(groups, key=lambda group: (-group.lost_points, group.key))


def read_code_answers(course: Course, chapter: str) -> dict[str, list[CodeAnswer]]:
    """Return the answers that lost points, by exercise and in the order of the students."""
    by_exercise: dict[str, list[CodeAnswer]] = {}
    for result in read_results(course, chapter):
        if result.status != "graded":
            continue
        sources = _sources(course, chapter, result.student)
        for exercise in result.exercises:
            if exercise.score < exercise.max_score:
                answer = _answer(result.student, exercise, sources.get(exercise.name, ""))
                by_exercise.setdefault(exercise.name, []).append(answer)
    return by_exercise


def _key(answer: CodeAnswer) -> str:
    outcome = json.dumps([answer.exercise, answer.failed_rows, answer.message, answer.score])
    return hashlib.sha256(outcome.encode("utf-8", "backslashreplace")).hexdigest()[:16]


def _group(key: str, members: list[CodeAnswer]) -> BehaviourGroup:
    points = sum(member.lost_points for member in members)
    different = list({member.source: member for member in reversed(members)}.values())[::-1]
    shared = frozenset(members[0].wrong_calls).intersection(*(member.wrong_calls for member in members))
    return BehaviourGroup(key, tuple(members), points, tuple(sorted(shared)), tuple(different[:3]))


def _answer(student: str, exercise: ExerciseResult, source: str) -> CodeAnswer:
    verdict = exercise.verdict
    failed = [finding for finding in verdict.findings if not finding.passed] if verdict else []
    return CodeAnswer(
        student=student,
        exercise=exercise.name,
        score=exercise.score,
        max_score=exercise.max_score,
        failed_rows=tuple(finding.title for finding in failed),
        message="\n".join(dict.fromkeys(finding.message for finding in failed)) or exercise.error,
        diagnosis=" ".join(diagnosis.explanation for diagnosis in verdict.diagnoses) or None if verdict else None,
        source=source,
        signature=None,
    )


def _sources(course: Course, chapter: str, student: str) -> dict[str, str]:
    path = course.folder("autograded", student, chapter) / f"{chapter}.ipynb"
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        marked = [cell for cell in cells if "nbgrader" in cell["metadata"]]
        return {cell["metadata"]["nbgrader"]["grade_id"]: "".join(cell["source"]) for cell in marked}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
