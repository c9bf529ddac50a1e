"""Read the code answers of a chapter that lost points, from results, graded notebooks and signatures."""

from __future__ import annotations

from dataclasses import dataclass

from autograder.course.folder import Course
from autograder.grading.feedback.follow_ups import Outcome, follow_ups
from autograder.grading.record.results import ExerciseResult, GradeResult, read_results
from autograder.grading.record.signatures import Signature, read_signatures
from autograder.marking.questions import notebook_cells, source_text


@dataclass(frozen=True)
class CodeAnswer:
    """One student's code for an exercise, if it lost points."""

    student: str
    exercise: str
    score: float  # the check's points
    max_score: float  # points that the exercise is worth
    failed_rows: tuple[str, ...]  # titles of the failed rows, in order; empty without a verdict
    message: str  # the different messages of these rows, one per line; or the reason for a missing verdict
    # the explanation of the known mistake that the student got; several are joined. None without a known mistake.
    diagnosis: str | None
    source: str  # the source of the answer's cell; empty if the graded notebook cannot be read
    signature: Signature | None  # the signature of the code's outputs on the visible tests; None if it was not recorded
    # the exercise from which this failure follows, as on the feedback page; empty if the failure is independent
    cause: str = ""

    @property
    def lost_points(self) -> float:
        """The points that the check did not give."""
        return max(0.0, self.max_score - self.score)


def read_code_answers(course: Course, chapter: str) -> dict[str, list[CodeAnswer]]:
    """Return the code answers that lost points, by exercise in the order of the chapter, each list ordered by student.

    Args:
        chapter: the chapter's full name.
    """
    answers: dict[str, list[CodeAnswer]] = {}
    for result in read_results(course, chapter):
        if result.status != "graded":
            continue
        for exercise in result.exercises:
            answers.setdefault(exercise.name, [])
        for answer in _answers_of(course, result):
            answers[answer.exercise].append(answer)
    return {name: sorted(group, key=lambda answer: answer.student) for name, group in answers.items() if group}


def _answers_of(course: Course, result: GradeResult) -> list[CodeAnswer]:
    wrong = [exercise for exercise in result.exercises if exercise.score < exercise.max_score]
    if not wrong:
        return []
    cells = notebook_cells(course, result.chapter, result.student)
    sources = {name: source_text(cell) for name, cell in cells.items()}
    signatures = read_signatures(course, result.chapter, result.student, result.submission)
    parts = [Outcome(part.name, sources.get(part.name, ""), part.verdict) for part in result.exercises]
    causes = follow_ups(parts)
    return [
        _answer(
            result.student,
            exercise,
            sources.get(exercise.name, ""),
            signatures.get(exercise.name),
            causes.get(exercise.name, ""),
        )
        for exercise in wrong
    ]


def _answer(student: str, exercise: ExerciseResult, source: str, signature: Signature | None, cause: str) -> CodeAnswer:
    verdict = exercise.verdict
    failed = [finding for finding in verdict.findings if not finding.passed] if verdict else []
    explanations = [diagnosis.explanation for diagnosis in verdict.diagnoses] if verdict else []
    return CodeAnswer(
        student=student,
        exercise=exercise.name,
        score=exercise.score,
        max_score=exercise.max_score,
        failed_rows=tuple(finding.title for finding in failed),
        message="\n".join(dict.fromkeys(finding.message for finding in failed)) or exercise.error,
        diagnosis=" ".join(explanations) or None,
        source=source,
        signature=signature,
        cause=cause,
    )
