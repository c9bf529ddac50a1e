"""Read the code answers of a chapter that lost points, from results, graded notebooks and signatures."""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

from autograder.course.folder import Course
from autograder.record.results import ExerciseResult, GradeResult, read_results
from autograder.record.signatures import Signature, read_signatures

# A syntax tree takes a hundred times the memory of its text, and 200,000 characters of one f-string 13 seconds; no answer is that long.
_LONGEST_SOURCE = 20_000


@dataclass(frozen=True)
class CodeAnswer:
    """One student's code for one exercise, which lost points.

    Attributes:
        student: the student's id.
        exercise: the exercise.
        score: points that the check gave.
        max_score: points that the exercise is worth.
        failed_rows: titles of the rows of the check that did not pass, in order; none if the check came to no verdict.
        message: the messages of these rows, one per line, equal ones once; or why there is no verdict.
        diagnosis: what the student was told about a known mistake; several explanations are joined. None if there is none.
        source: the text of the answer's cell; empty if the graded notebook cannot be read.
        signature: what the code returned to the visible questions; None if that was not recorded.
        wrong_calls: other exercises whose names the cell uses and which the same student got wrong too, sorted.
    """

    student: str
    exercise: str
    score: float
    max_score: float
    failed_rows: tuple[str, ...]
    message: str
    diagnosis: str | None
    source: str
    signature: Signature | None
    wrong_calls: tuple[str, ...] = ()

    @property
    def lost_points(self) -> float:
        """The points that the check did not give."""
        return max(0.0, self.max_score - self.score)


def read_code_answers(course: Course, chapter: str) -> dict[str, list[CodeAnswer]]:
    """Return the code answers that lost points, by exercise in the order of the chapter, each list ordered by student.

    Args:
        course: the course.
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
    sources = _sources(course, result.chapter, result.student)
    signatures = read_signatures(course, result.chapter, result.student, result.submission)
    names = frozenset(exercise.name for exercise in wrong)
    return [
        _answer(result.student, exercise, sources.get(exercise.name, ""), signatures.get(exercise.name), names)
        for exercise in wrong
    ]


def _answer(
    student: str, exercise: ExerciseResult, source: str, signature: Signature | None, wrong: frozenset[str]
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
        wrong_calls=tuple(sorted((wrong - {exercise.name}) & used_names(source))),
    )


def used_names(source: str) -> frozenset[str]:
    """Return the names that a cell reads, without those that it defines itself; none if Python cannot parse it."""
    if len(source) > _LONGEST_SOURCE:
        return frozenset()
    try:
        with warnings.catch_warnings():
            # What Python thinks of a student's escapes is not for the lecturer's terminal.
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    read: set[str] = set()
    defined: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else defined).add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            defined.add(node.name)
        elif isinstance(node, ast.arg):
            defined.add(node.arg)
    return frozenset(read - defined)


def _sources(course: Course, chapter: str, student: str) -> Mapping[str, str]:
    """Return the sources of a graded notebook's cells by grade id; none if it cannot be read."""
    path = course.folder("autograded", student, chapter) / f"{chapter}.ipynb"
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        named = ((cell["metadata"].get("nbgrader", {}).get("grade_id"), cell["source"]) for cell in cells)
        return {str(name): text if isinstance(text, str) else "".join(text) for name, text in named if name}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
