"""Count a grade by the rules of ``course.toml`` for single exercises, from the points in the gradebook."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from autograder.course.course_file import CourseFile, course_file_error
from autograder.course.course_rules import ExerciseRule, graded_exercise
from autograder.course.folder import Course

if TYPE_CHECKING:
    from autograder.grading.reports.grades import Grade

_DIGITS = 6


@dataclass(frozen=True)
class GradedCell:
    """A graded cell of a chapter and its points."""

    name: str  # its exercise or question
    best: float  # the points that can be earned


def cells_with_rules(
    course: Course, chapter: str, assignment: Any, rules: Mapping[str, ExerciseRule]
) -> list[GradedCell]:
    """Return a chapter's graded cells for which ``course.toml`` has a rule.

    Args:
        assignment: nbgrader's assignment.
        rules: by exercise or question, how it counts.

    Raises:
        CourseError: if a rule names no exercise or question of the chapter.
    """
    if not rules:
        return []
    cells = [cell for notebook in assignment.notebooks for cell in (*notebook.grade_cells, *notebook.task_cells)]
    names = {graded_exercise(cell.name) for cell in cells}
    for name in rules:
        if name not in names:
            raise course_file_error(
                course.root,
                f"chapters.{chapter}.exercises.{name}",
                f"{chapter} has no exercise or question {name!r}",
                f"Its exercises and questions: {', '.join(sorted(names))}.",
            )
    return [
        GradedCell(graded_exercise(cell.name), float(cell.max_score))
        for cell in cells
        if graded_exercise(cell.name) in rules
    ]


def apply_counting_rules(grade: Grade, submission: Any, cells: list[GradedCell], plan: CourseFile) -> Grade:
    """Return a grade counted by the rules, with the penalty for its new points.

    Args:
        grade: the grade as the gradebook has it.
        submission: nbgrader's submission, or None if nothing was handed in.
        cells: the cells that a rule counts otherwise.
        plan: the contents of ``course.toml``.
    """
    if not cells:
        return grade
    rules = plan.chapter(grade.chapter).exercises
    grades = [] if submission is None else [row for notebook in submission.notebooks for row in notebook.grades]
    rows = {graded_exercise(row.name): row for row in grades}
    raw, best, pending = grade.raw, grade.best, grade.pending
    for cell in cells:
        row = rows.get(cell.name)
        score = float(row.score) if row is not None else 0.0
        earned, worth = rules[cell.name].count_points(score, cell.best)
        best += worth - cell.best
        if submission is not None:
            raw += earned - score
        if row is not None and row.needs_manual_grade and not rules[cell.name].counts_manual_points:
            pending -= 1
    raw, best = round(raw, _DIGITS), round(best, _DIGITS)
    return replace(grade, raw=raw, best=best, pending=pending, penalty=_penalty_under_rules(grade, raw, plan))


def _penalty_under_rules(grade: Grade, raw: float, plan: CourseFile) -> float:
    """Return the late penalty for the new points: the same share as for the old points."""
    if grade.raw:
        return round(grade.penalty * raw / grade.raw, _DIGITS)
    return plan.late_penalty(grade.chapter, grade.student, raw, grade.submitted_utc)
