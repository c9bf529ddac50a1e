"""Compute each student's total: the fraction of the points in all chapters, with the weights of ``course.toml``."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from autograder.course.course_rules import TotalRule
from autograder.grading.reports.grades import Grade


@dataclass(frozen=True)
class Total:
    """A student's total."""

    grade: Grade  # one of the student's grades, for names and address
    # score divided by maximum, from 0 to 1, by chapter; 0 without a submission. None for a chapter that does not count for the student, or
    # in which no points can be earned, and for a missing conversation.
    shares: Mapping[str, float | None]
    share: float  # their weighted mean, from 0 to 1
    open_chapters: tuple[str, ...]  # chapters of which a person has still to decide something; they count as they stand
    dropped: tuple[str, ...] = ()  # chapters that do not count, because they have the student's lowest shares
    rule: TotalRule | None = None  # how the total becomes a grade, or None
    missing: tuple[str, ...] = ()  # the conversations that did not take place; they do not count

    @property
    def points(self) -> float | None:
        """The total in points of the grading scale; None without a rule."""
        return None if self.rule is None else self.rule.points(self.share)

    @property
    def grade_name(self) -> str:
        """The grade for the total; empty without a rule."""
        return "" if self.rule is None else self.rule.grade(self.share)

    @property
    def passed(self) -> bool | None:
        """Whether the total passes; None without a pass mark."""
        return None if self.rule is None else self.rule.passed(self.share)


def compute_totals(grades: Iterable[Grade], weights: Mapping[str, float], rule: TotalRule | None = None) -> list[Total]:
    """Return the totals of all students for whom a chapter counts, ordered by id; empty without weights.

    Chapters without any submission do not count yet. A missing conversation does not count, and no conversation is dropped.

    Args:
        weights: the weight of each chapter; chapters without a weight do not count.
        rule: the conversion of a total to a grade, and the number of dropped chapters.
    """
    everyone = list(grades)
    begun = sorted({grade.chapter for grade in everyone if grade.handed_in and weights.get(grade.chapter)})
    by_student: dict[str, dict[str, Grade]] = defaultdict(dict)
    for grade in everyone:
        by_student[grade.student][grade.chapter] = grade
    results = [_student_total(by_student[student], begun, weights, rule) for student in sorted(by_student)]
    return [total for total in results if any(share is not None for share in total.shares.values())]


def _student_total(
    grades: Mapping[str, Grade], chapters: Sequence[str], weights: Mapping[str, float], rule: TotalRule | None
) -> Total:
    shares = {chapter: _chapter_share(grades[chapter]) if chapter in grades else None for chapter in chapters}
    counted = {chapter: share for chapter, share in shares.items() if share is not None}
    of_chapters = {chapter: share for chapter, share in counted.items() if not grades[chapter].viva}
    dropped = rule.dropped_chapters(of_chapters, weights) if rule is not None else ()
    counted = {chapter: share for chapter, share in counted.items() if chapter not in dropped}
    weighted = sum(weights[chapter] * share for chapter, share in counted.items())
    weight = sum(weights[chapter] for chapter in counted)
    return Total(
        grade=next(iter(grades.values())),
        shares=shares,
        share=weighted / weight if weight else 0.0,
        open_chapters=tuple(chapter for chapter in chapters if chapter in grades and _is_open(grades[chapter])),
        dropped=dropped,
        rule=rule,
        missing=tuple(name for name in chapters if name in grades and _is_missing(grades[name])),
    )


def _chapter_share(grade: Grade) -> float | None:
    if not grade.best or _is_missing(grade) or grade.not_yet:
        return None
    if not grade.handed_in or grade.waits_for:
        return 0.0
    return min(1.0, grade.score / grade.best)


def _is_missing(grade: Grade) -> bool:
    return grade.viva and not grade.handed_in


def _is_open(grade: Grade) -> bool:
    return grade.handed_in and (grade.pending > 0 or not grade.graded)


def grade_counts_text(overall: Sequence[Total]) -> str:
    """Describe how many students have each grade and how many pass; empty if the rule has neither."""
    rule = overall[0].rule if overall else None
    if rule is None or not (rule.grades or rule.pass_mark is not None):
        return ""
    counts = Counter(total.grade_name for total in overall)
    parts = [f"{counts[name]} × {name}" for name, _ in sorted(rule.grades.items(), key=lambda item: -item[1])]
    parts += [f"{counts['']} without a grade"] if rule.grades and counts[""] else []
    if rule.pass_mark is not None:
        parts.append(f"{sum(total.passed is True for total in overall)} of {len(overall)} pass")
    return f"As it stands: {', '.join(parts)}."
