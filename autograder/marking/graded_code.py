"""Read a chapter's code answers that lost points from results, notebooks and signatures, grouped by behaviour."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from autograder.course.folder import Course
from autograder.grading.feedback.follow_ups import Outcome, find_causes
from autograder.grading.record.results import ExerciseResult, GradeResult, read_results
from autograder.grading.record.signatures import Signature, read_signatures
from autograder.marking.behaviour_groups import BehaviourGroup, CodeAnswer, group_answers
from autograder.marking.graded_notebooks import GradedNotebooks, fold_text, source_text


class GradedCode:
    """The results of grading a chapter, read once from the course folder; create a new object to see changes.

    Args:
        course: the course.
        chapter: the chapter's full name.
        notebooks: the graded notebooks, if some were read before.
    """

    def __init__(self, course: Course, chapter: str, notebooks: GradedNotebooks | None = None) -> None:
        self._course, self._chapter = course, chapter
        self._notebooks = notebooks or GradedNotebooks(course, chapter)
        self._groups: dict[tuple[str, str], list[BehaviourGroup]] = {}

    @cached_property
    def results(self) -> list[GradeResult]:
        """The chapter's results, ordered by student."""
        return read_results(self._course, self._chapter)

    @cached_property
    def answers(self) -> dict[str, list[CodeAnswer]]:
        """The answers that lost points, by exercise in the chapter's order, each list ordered by student."""
        answers: dict[str, list[CodeAnswer]] = {}
        for result in self.results:
            if result.status == "graded":
                for exercise in result.exercises:
                    answers.setdefault(exercise.name, [])
                for answer in self._find_wrong_answers(result):
                    answers[answer.exercise].append(answer)
        return {name: sorted(group, key=lambda answer: answer.student) for name, group in answers.items() if group}

    def groups(self, exercise: str, stub: str) -> list[BehaviourGroup]:
        """Return the behaviour groups of an exercise's answers, without unchanged stubs."""
        if (exercise, stub) not in self._groups:
            written = [answer for answer in self.answers.get(exercise, []) if not is_blank(answer, stub)]
            self._groups[exercise, stub] = group_answers(written)
        return self._groups[exercise, stub]

    def blank_students(self, exercise: str, stub: str) -> set[str]:
        """Return the students who left an exercise's stub unchanged."""
        return {answer.student for answer in self.answers.get(exercise, []) if is_blank(answer, stub)}

    def outcomes(self, exercise: str) -> dict[str, ExerciseResult]:
        """Return an exercise's results by student."""
        graded = (result for result in self.results if result.status == "graded")
        return {result.student: part for result in graded for part in result.exercises if part.name == exercise}

    def _find_wrong_answers(self, result: GradeResult) -> Iterator[CodeAnswer]:
        wrong = [exercise for exercise in result.exercises if exercise.score < exercise.max_score]
        if not wrong:
            return
        sources = {name: source_text(cell) for name, cell in self._notebooks.cells(result.student).items()}
        signatures = read_signatures(self._course, result.chapter, result.student, result.submission)
        causes = find_causes(
            [Outcome(part.name, sources.get(part.name, ""), part.verdict) for part in result.exercises]
        )
        for part in wrong:
            source, cause = sources.get(part.name, ""), causes.get(part.name, "")
            yield _code_answer(result.student, part, source, signatures.get(part.name), cause)


def is_blank(answer: CodeAnswer, stub: str) -> bool:
    """Return whether an answer is empty or the unchanged stub."""
    return fold_text(answer.source) in ("", fold_text(stub))


def _code_answer(
    student: str, exercise: ExerciseResult, source: str, signature: Signature | None, cause: str
) -> CodeAnswer:
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
