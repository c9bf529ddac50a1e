"""Add up the chapters: each student's share of the points in the whole course, with the weights of ``course.toml``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from autograder.reports.grades import Grade


@dataclass(frozen=True)
class Total:
    """A student's total.

    Attributes:
        grade: one of the student's grades, for names and address.
        shares: by chapter, score over best, from 0 to 1; 0 where nothing was handed in, and None for a chapter that does not count
            for the student.
        share: their weighted mean, from 0 to 1.
        open_chapters: chapters of which a person has still to decide something; they count as they stand.
    """

    grade: Grade
    shares: Mapping[str, float | None]
    share: float
    open_chapters: tuple[str, ...]


def totals(grades: Iterable[Grade], weights: Mapping[str, float]) -> list[Total]:
    """Return the totals of all students, ordered by id; none if there are no weights.

    Chapters for which nobody handed in anything do not count yet.

    Args:
        grades: the grades.
        weights: how much a chapter counts; those that are not named count for nothing.
    """
    everyone = list(grades)
    begun = sorted({grade.chapter for grade in everyone if grade.handed_in and weights.get(grade.chapter)})
    by_student: dict[str, dict[str, Grade]] = defaultdict(dict)
    for grade in everyone:
        by_student[grade.student][grade.chapter] = grade
    return [_total(by_student[student], begun, weights) for student in sorted(by_student)] if begun else []


def _total(grades: Mapping[str, Grade], chapters: Sequence[str], weights: Mapping[str, float]) -> Total:
    shares = {chapter: _share(grades[chapter]) if chapter in grades else None for chapter in chapters}
    counted = {chapter: share for chapter, share in shares.items() if share is not None}
    weighted = sum(weights[chapter] * share for chapter, share in counted.items())
    weight = sum(weights[chapter] for chapter in counted)
    return Total(
        grade=next(iter(grades.values())),
        shares=shares,
        share=weighted / weight if weight else 0.0,
        open_chapters=tuple(chapter for chapter in chapters if chapter in grades and _is_open(grades[chapter])),
    )


def _share(grade: Grade) -> float:
    if not grade.handed_in or not grade.decided or not grade.best:
        return 0.0
    return min(1.0, grade.score / grade.best)


def _is_open(grade: Grade) -> bool:
    return grade.handed_in and (grade.pending > 0 or not grade.decided or not grade.gradable)
