"""Report how the rules of ``course.toml`` for single exercises, or a regrade, change the total points."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from autograder.course.course_file import read_course_file
from autograder.course.folder import Course
from autograder.course.gradebook.reader import open_gradebook
from autograder.grading.regrade import ScoreChange
from autograder.grading.reports.grades import Grade, read_grades
from autograder.grading.reports.rubric_counts import read_manual_points


@dataclass(frozen=True)
class Recount:
    """A chapter's grades counted with and without the rules."""

    chapter: str
    rules: dict[str, str]  # by exercise, its rule in words
    moves: tuple[tuple[Grade, Grade], ...]  # the grades that differ: without the rules, and with them
    stayed: int  # how many submissions keep their points

    def lines(self, *, each: bool) -> list[str]:
        """Describe the rules' effect as lines of text; empty if the chapter has no rules.

        Args:
            each: whether to list every grade that differs.
        """
        if not self.rules:
            return []
        counts = "; ".join(f"{name}: {rule}" for name, rule in self.rules.items())
        head = f"{self.chapter}: already counted by course.toml, {counts}. It changes {len(self.moves)} of "
        width = max((len(after.student) for _, after in self.moves), default=0)
        return [
            f"{head}{len(self.moves) + self.stayed} grades",
            *(
                f"  {after.student:<{width}}  {before.score:g} of {before.best:g}, counted as {after.score:g} of {after.best:g}"
                for before, after in self.moves
                if each
            ),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the recount as plain data, ready for JSON."""
        moves = [
            {
                "student": after.student,
                "before": before.score,
                "best_before": before.best,
                "after": after.score,
                "best_after": after.best,
            }
            for before, after in self.moves
        ]
        return {"chapter": self.chapter, "rules": self.rules, "moved": moves, "stayed": self.stayed}


def recount(course: Course, chapter: str) -> Recount:
    """Compare a chapter's grades with and without the rules of ``course.toml``.

    Raises:
        CourseError: if the gradebook or ``course.toml`` cannot be read, or a rule is for an exercise that the chapter does not have.
    """
    rules = {name: str(rule) for name, rule in read_course_file(course.root).chapter(chapter).exercises.items()}
    if not rules:
        return Recount(chapter, {}, (), 0)
    before = {grade.student: grade for grade in read_grades(course, [chapter], by_rules=False)}
    after = [grade for grade in read_grades(course, [chapter]) if grade.handed_in and not grade.waits_for]
    moves = tuple(
        (before[grade.student], grade)
        for grade in after
        if (grade.score, grade.best) != (before[grade.student].score, before[grade.student].best)
    )
    return Recount(chapter, rules, moves, len(after) - len(moves))


def convert_to_totals(
    course: Course, chapter: str, moves: Iterable[ScoreChange], before: Iterable[Grade], *, dry_run: bool
) -> tuple[ScoreChange, ...]:
    """Return the score changes with total points, as in report and exports, instead of the checks' points.

    Args:
        moves: the changes of a regrade.
        before: the grades before it.
        dry_run: whether nothing was written; then the points afterwards are computed.
    """
    earlier = {grade.student: grade for grade in before}
    now = {} if dry_run else {grade.student: grade.score for grade in read_grades(course, [chapter])}
    rules = read_course_file(course.root).chapter(chapter).exercises
    with open_gradebook(course) as gradebook:
        by_hand = read_manual_points(gradebook, chapter, waiting=True)

    def total(move: ScoreChange, grade: Grade) -> float:
        raw = grade.raw
        for name, was, becomes in move.exercises:
            if (f"test_{name}", move.student) not in by_hand:
                best = move.best.get(name, 0.0)
                counted = [
                    rules[name].count_points(points, best)[0] if name in rules else points for points in (was, becomes)
                ]
                raw += counted[1] - counted[0]
        return round(raw * (grade.score / grade.raw if grade.raw else 1.0), 6)

    return tuple(
        replace(move, before=grade.score, after=now[move.student] if move.student in now else total(move, grade))
        if (grade := earlier.get(move.student)) is not None and not grade.decision
        else move
        for move in moves
    )
