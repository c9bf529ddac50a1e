"""List topics for the next lecture: the mistakes, rows and exercises that cost a class the most points."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from autograder.checking.verdict import NOT_JUDGED, NOT_WRITTEN, Diagnosis, Finding
from autograder.grading.record.results import ExerciseResult

COUNT = 3
FEWEST_STUDENTS = 2
_LONGEST_MESSAGE = 160

Kind = Literal["mistake", "row", "exercise"]


@dataclass(frozen=True)
class LecturePoint:
    """A topic for the next lecture, with its numbers."""

    kind: Kind  # a known mistake; a failed row without a known mistake; or an exercise in which everything failed
    title: str  # the mistake's name, the row's title, or the exercise's name
    exercises: tuple[str, ...]  # the affected exercises, the most lost points first
    students: tuple[str, ...]  # the students who lost points, ordered by id
    points: float  # the total of the lost points
    diagnosis: Diagnosis | None = None  # the explanation of the known mistake in the first of the exercises
    message: str = ""  # the most frequent message; empty for a known mistake
    times: int = 0  # the number of students with that message

    def to_dict(self) -> dict[str, object]:
        """Return the topic as plain data, ready for JSON."""
        return {name: value for name, value in vars(self).items() if name != "diagnosis"}


@dataclass(frozen=True)
class _Loss:
    kind: Kind
    name: str
    title: str
    exercise: str
    student: str
    points: float
    diagnosis: Diagnosis | None = None
    message: str = ""


def lecture_points(
    results: Mapping[str, Sequence[ExerciseResult]], count: int = COUNT, fewest: int = FEWEST_STUDENTS
) -> tuple[LecturePoint, ...]:
    """Return the topics that cost the class the most points, the most expensive first.

    A known mistake counts once over all exercises that recognise it under its name. Rows that were not judged, because the numbers are
    wrong, are nobody's mistake and cost nothing here, nor do exercises that were not written.

    Args:
        results: by student, what came of each exercise.
        count: how many to return at most.
        fewest: a thing that fewer students met is no matter for a lecture.
    """
    groups: dict[tuple[Kind, str], list[_Loss]] = defaultdict(list)
    for student in sorted(results):
        for result in results[student]:
            for loss in _find_losses(student, result):
                groups[loss.kind, loss.name].append(loss)
    points = [_build_point(losses) for losses in groups.values()]
    shared = [point for point in points if len(point.students) >= fewest]
    return tuple(sorted(shared, key=lambda p: (-p.points, -len(p.students), p.title, p.exercises))[:count])


def _find_losses(student: str, result: ExerciseResult) -> Iterator[_Loss]:
    name = result.name
    if result.verdict is None:
        yield _Loss("exercise", name, name, name, student, result.max_score - result.score, message=result.error)
        return
    findings = result.verdict.findings
    missed = [finding for finding in findings if not finding.passed and finding.message != NOT_JUDGED]
    if (message := _common_message(findings)) == NOT_WRITTEN:
        return
    if message:
        yield _Loss("exercise", name, name, name, student, result.max_score - result.score, message=message)
        return
    for finding in missed:
        cost = finding.points - finding.earned
        if mistake := finding.diagnosis:
            yield _Loss("mistake", mistake.name, mistake.name, name, student, cost, mistake)
        else:
            row = f"{name} {finding.aspect}"
            yield _Loss("row", row, finding.title, name, student, cost, message=finding.message)


def _common_message(findings: Sequence[Finding]) -> str:
    """Return the common message if all rows failed with the same one and no diagnosis; otherwise empty."""
    messages = {finding.message for finding in findings}
    failed = not any(finding.passed or finding.diagnosis for finding in findings)
    return messages.pop() if len(messages) == 1 and failed else ""


def _build_point(losses: Sequence[_Loss]) -> LecturePoint:
    costs: dict[str, float] = defaultdict(float)
    for loss in losses:
        costs[loss.exercise] += loss.points
    exercises = tuple(sorted(costs, key=lambda name: (-costs[name], name)))
    message, times = _most_common_message(losses)
    return LecturePoint(
        kind=losses[0].kind,
        title=losses[0].title,
        exercises=exercises,
        students=tuple(dict.fromkeys(loss.student for loss in losses)),
        points=round(sum(loss.points for loss in losses), 2),
        diagnosis=next(loss.diagnosis for loss in losses if loss.exercise == exercises[0]),
        message=message,
        times=times,
    )


def _most_common_message(losses: Sequence[_Loss]) -> tuple[str, int]:
    """Return the most frequent message and its count; ties go to the first in alphabetical order."""
    messages = Counter(loss.message for loss in losses if loss.message)
    if not messages:
        return "", 0
    message, times = min(messages.items(), key=lambda item: (-item[1], item[0]))
    message = message.rstrip(" :")  # an error without a text
    short = message if len(message) <= _LONGEST_MESSAGE else f"{message[:_LONGEST_MESSAGE].rstrip()} …"
    return short, times
