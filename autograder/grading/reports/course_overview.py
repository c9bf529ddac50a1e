"""Summarise the course: each student's share of the points in each chapter, its change in the last chapter, and who falls behind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import mean

from autograder.grading.reports.class_report import ChapterSummary, StudentWork

LOW = 0.5
"""Below this share of the points of exercises, a chapter counts as low."""
DROP = 0.25
"""A last chapter that lies by this share below a student's average before it counts as a drop."""
IN_A_ROW = 2
"""So many chapters in a row, missing or low, make a student fall behind; the only one does, while there is no more than one."""


@dataclass(frozen=True)
class Cell:
    """One student's result in one chapter."""

    chapter: str
    # points after penalties over points to be earned, between 0 and 1; None if there is no grade
    share: float | None = None
    # the same of the exercises alone, before penalties. Answers that wait for a person do not lower it. None if not known.
    exercises: float | None = None
    # why there is no share: ``"not handed in"``, ``"open"`` while there is time, ``"not graded"``, ``"to decide"``, ``"not collected"`` or
    # ``"not in this chapter"``; empty if there is one
    status: str = ""
    waiting: bool = False  # whether answers wait for a person, which count as zero in ``share``


@dataclass(frozen=True)
class StudentRow:
    """One student's results in all chapters."""

    student: str  # the id
    cells: tuple[Cell, ...]  # one per chapter, in the course's order
    # share of the exercises' points in the last graded chapter, less the average of those before; None with fewer than two
    change: float | None
    reasons: tuple[str, ...]  # why this student falls behind, one phrase each; empty if not


@dataclass(frozen=True)
class CourseOverview:
    """All students' results in all chapters, ordered by id."""

    chapters: tuple[str, ...]
    rows: tuple[StudentRow, ...]

    @property
    def behind(self) -> tuple[StudentRow, ...]:
        """The students who fall behind, sorted by their number of reasons, highest first."""
        return tuple(
            sorted((row for row in self.rows if row.reasons), key=lambda row: (-len(row.reasons), row.student))
        )


def build_course_overview(summaries: Sequence[ChapterSummary], now: datetime | None = None) -> CourseOverview:
    """Build the course overview from chapter summaries.

    Args:
        summaries: one per chapter, in the course's order.
        now: the present in UTC, without a time zone, as deadlines are kept. None: all deadlines have passed.
    """
    cells: dict[str, dict[str, Cell]] = {}
    for summary in summaries:
        for work in summary.works:
            cells.setdefault(work.grade.student, {})[summary.chapter] = _chapter_cell(work, summary, now)
    chapters = tuple(summary.chapter for summary in summaries)
    return CourseOverview(chapters, tuple(_student_row(student, cells[student], chapters) for student in sorted(cells)))


def _student_row(student: str, graded: dict[str, Cell], chapters: Iterable[str]) -> StudentRow:
    cells = tuple(graded.get(chapter, Cell(chapter, status="not in this chapter")) for chapter in chapters)
    change = _share_change(cells)
    return StudentRow(student, cells, change, tuple(_list_reasons(cells, change)))


def _chapter_cell(work: StudentWork, summary: ChapterSummary, now: datetime | None) -> Cell:
    if not work.graded:
        return Cell(summary.chapter, status=_cell_status(work, summary, now))
    return Cell(summary.chapter, work.share, _exercise_share(work), waiting=work.grade.pending > 0)


def _cell_status(work: StudentWork, summary: ChapterSummary, now: datetime | None) -> str:
    if work.grade.student in summary.not_brought_in:
        return "not collected"
    if work.grade.handed_in:
        return "not graded" if work.grade.decided else "to decide"
    return "not handed in" if _is_over(work, summary, now) else "open"


def _is_over(work: StudentWork, summary: ChapterSummary, now: datetime | None) -> bool:
    """Return whether the deadline has passed or, without a deadline, half of the class has handed in."""
    if work.grade.due is not None:
        return now is None or work.grade.due <= now
    return 2 * summary.handed_in >= len(summary.works)


def _exercise_share(work: StudentWork) -> float | None:
    best = sum(result.max_score for result in work.exercises)
    if best:
        return min(1.0, sum(result.score for result in work.exercises) / best)
    return None if work.grade.pending else work.share


def _share_change(cells: Sequence[Cell]) -> float | None:
    shares = [cell.exercises for cell in cells if cell.exercises is not None]
    return shares[-1] - mean(shares[:-1]) if len(shares) > 1 else None


def _list_reasons(cells: Sequence[Cell], change: float | None) -> Iterable[str]:
    closed = [cell for cell in cells if cell.share is not None or cell.status == "not handed in"]
    if missing := _trailing_run(closed, [cell.status == "not handed in" for cell in closed]):
        yield f"nothing handed in for {_join_chapters(missing)}"
    judged = [cell for cell in cells if cell.exercises is not None]
    if low := _trailing_run(judged, [(cell.exercises or 0.0) < LOW for cell in judged]):
        yield f"under {LOW:.0%} of the exercises' points in {_join_chapters(low)}".replace("%", " %")
    # A hair is not a quarter: sums of tenths do not add up.
    if change is not None and change <= -DROP + 1e-9:
        yield f"{-100 * change:.0f} percentage points below their average in {judged[-1].chapter}"


def _trailing_run(cells: Sequence[Cell], holds: Sequence[bool]) -> Sequence[Cell]:
    """Return the longest run of cells at the end for which ``holds`` is true; empty if it is too short."""
    length = next((i for i, held in enumerate(reversed(holds)) if not held), len(holds))
    enough = min(IN_A_ROW, len(holds))
    return cells[len(cells) - length :] if enough and length >= enough else ()


def _join_chapters(cells: Sequence[Cell]) -> str:
    *others, last = [cell.chapter for cell in cells]
    return f"{', '.join(others)} and {last}" if others else last
