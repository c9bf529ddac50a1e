"""Say who moves by the rules that ``course.toml`` gives for single exercises. Nothing is run, and nothing is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from autograder.course.course_file import read_course_file
from autograder.course.folder import Course
from autograder.grading.reports.grades import Grade, read_grades


@dataclass(frozen=True)
class Recount:
    """A chapter, counted without the rules and with them."""

    chapter: str
    rules: dict[str, str]  # by exercise, its rule in words
    moves: tuple[tuple[Grade, Grade], ...]  # the grades that change: before, and after
    stayed: int  # how many submissions keep their points

    def lines(self) -> list[str]:
        """Return who moves as lines of text; none if the chapter has no rules."""
        if not self.rules:
            return []
        counts = "; ".join(f"{name}: {rule}" for name, rule in self.rules.items())
        width = max((len(after.student) for _, after in self.moves), default=0)
        return [
            f"{self.chapter}: by course.toml, {counts}. {len(self.moves)} move, {self.stayed} stay",
            *(
                f"  {after.student:<{width}}  {before.score:g} of {before.best:g} → {after.score:g} of {after.best:g}"
                for before, after in self.moves
            ),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return this as plain data, ready for JSON."""
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
    """Compare the grades of a chapter with its grades without rules.

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
