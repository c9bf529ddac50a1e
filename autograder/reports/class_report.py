"""The class report: what a lecturer wants to know after grading, on one page that needs no network."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

import jinja2

from autograder.checking.verdict import Diagnosis, Verdict
from autograder.errors import CourseError
from autograder.reports.grades import Grade

BINS = 10
SLOWEST = 5


@dataclass(frozen=True)
class Work:
    """One student's work in one chapter, with everything that grading found out.

    Attributes:
        grade: the grade, from the gradebook.
        verdicts: one per exercise.
        seconds: how long the notebook ran, or None if it was not run.
        problems: what went wrong with the file or its run, one sentence each.
        feedback: the feedback page, or None.
    """

    grade: Grade
    verdicts: tuple[Verdict, ...] = ()
    seconds: float | None = None
    problems: tuple[str, ...] = ()
    feedback: Path | None = None

    @property
    def share(self) -> float:
        """Score over best, between 0 and 1."""
        return min(1.0, self.grade.score / self.grade.best) if self.grade.best else 0.0


@dataclass(frozen=True)
class Bin:
    """One bar of the distribution: the students between two percentages."""

    low: int
    high: int
    students: tuple[str, ...]


@dataclass(frozen=True)
class ExerciseSummary:
    """How a class did in one exercise. Students are named by id."""

    name: str
    best: float
    average: float
    full: tuple[str, ...]
    partial: tuple[str, ...]
    none: tuple[str, ...]

    @property
    def pass_rate(self) -> float:
        """Share of the class with full marks."""
        total = len(self.full) + len(self.partial) + len(self.none)
        return len(self.full) / total if total else 0.0


@dataclass(frozen=True)
class MisconceptionSummary:
    """How often one mistake was seen, and in whose work."""

    exercise: str
    diagnosis: Diagnosis
    students: tuple[str, ...]


@dataclass(frozen=True)
class ChapterSummary:
    """Everything about one chapter."""

    chapter: str
    works: tuple[Work, ...]
    bins: tuple[Bin, ...]
    exercises: tuple[ExerciseSummary, ...]
    misconceptions: tuple[MisconceptionSummary, ...]
    slowest: tuple[Work, ...]
    failed: tuple[Work, ...]
    absent: tuple[str, ...]
    pending: tuple[str, ...]
    late: tuple[str, ...]
    average: float
    middle: float

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as plain data, ready for JSON."""
        return {
            "chapter": self.chapter,
            "handed_in": sum(work.grade.handed_in for work in self.works),
            "students": len(self.works),
            "average": self.average,
            "median": self.middle,
            "distribution": [vars(bin_) for bin_ in self.bins],
            "exercises": [vars(exercise) | {"pass_rate": exercise.pass_rate} for exercise in self.exercises],
            "misconceptions": [
                {"exercise": seen.exercise, "name": seen.diagnosis.name, "students": seen.students}
                for seen in self.misconceptions
            ],
            "failed": {work.grade.student: work.problems for work in self.failed},
            "absent": self.absent,
            "pending": self.pending,
            "late": self.late,
        }


def summarise(works: Iterable[Work]) -> list[ChapterSummary]:
    """Return a summary per chapter, in the order of chapters; students are ordered by id everywhere."""
    by_chapter: dict[str, list[Work]] = defaultdict(list)
    for work in works:
        by_chapter[work.grade.chapter].append(work)
    return [
        _chapter(chapter, sorted(own, key=lambda w: w.grade.student)) for chapter, own in sorted(by_chapter.items())
    ]


def _chapter(chapter: str, works: Sequence[Work]) -> ChapterSummary:
    present = [work for work in works if work.grade.handed_in]
    shares = [work.share for work in present]
    timed = sorted(
        (work for work in present if work.seconds is not None), key=lambda w: (-(w.seconds or 0.0), w.grade.student)
    )
    return ChapterSummary(
        chapter=chapter,
        works=tuple(works),
        bins=_distribution(present),
        exercises=_exercises(present),
        misconceptions=_misconceptions(present),
        slowest=tuple(timed[:SLOWEST]),
        failed=tuple(work for work in present if work.problems),
        absent=tuple(work.grade.student for work in works if not work.grade.handed_in),
        pending=tuple(work.grade.student for work in present if work.grade.pending),
        late=tuple(work.grade.student for work in present if work.grade.penalty > 0),
        average=mean(shares) if shares else 0.0,
        middle=median(shares) if shares else 0.0,
    )


def _distribution(works: Sequence[Work]) -> tuple[Bin, ...]:
    inside: list[list[str]] = [[] for _ in range(BINS)]
    for work in works:
        inside[min(BINS - 1, int(work.share * BINS))].append(work.grade.student)
    width = 100 // BINS
    return tuple(Bin(i * width, (i + 1) * width, tuple(students)) for i, students in enumerate(inside))


def _exercises(works: Sequence[Work]) -> tuple[ExerciseSummary, ...]:
    best: dict[str, float] = {}
    for work in works:
        for verdict in work.verdicts:
            best.setdefault(verdict.exercise, verdict.max_score)
    summaries = []
    for name, points in best.items():
        scores = {w.grade.student: next((v.score for v in w.verdicts if v.exercise == name), 0.0) for w in works}
        summaries.append(
            ExerciseSummary(
                name=name,
                best=points,
                average=mean(scores.values()),
                full=tuple(student for student, score in scores.items() if score >= points),
                partial=tuple(student for student, score in scores.items() if 0 < score < points),
                none=tuple(student for student, score in scores.items() if score <= 0),
            )
        )
    return tuple(summaries)


def _misconceptions(works: Sequence[Work]) -> tuple[MisconceptionSummary, ...]:
    seen: dict[tuple[str, Diagnosis], list[str]] = defaultdict(list)
    for work in works:
        for verdict in work.verdicts:
            for diagnosis in verdict.diagnoses:
                seen[verdict.exercise, diagnosis].append(work.grade.student)
    found = [MisconceptionSummary(exercise, diagnosis, tuple(who)) for (exercise, diagnosis), who in seen.items()]
    return tuple(sorted(found, key=lambda m: (-len(m.students), m.exercise, m.diagnosis.name)))


def render(summaries: Sequence[ChapterSummary], *, title: str, folder: Path) -> str:
    """Return the report as one HTML page.

    Args:
        summaries: one per chapter.
        title: the page's title.
        folder: where the page will lie; links to feedback are relative to it.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("autograder.reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    names = {work.grade.student: work.grade.full_name for summary in summaries for work in summary.works}
    links = {
        (work.grade.student, summary.chapter): _relative(work.feedback, folder)
        for summary in summaries
        for work in summary.works
        if work.feedback is not None
    }
    return environment.get_template("class_report.html").render(
        title=title, summaries=summaries, names=names, links=links
    )


def _relative(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path.resolve(), folder)).as_posix()


def write_report(summaries: Sequence[ChapterSummary], path: Path, *, title: str) -> Path:
    """Write the report and return its path.

    Raises:
        CourseError: if it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        partial.write_text(render(summaries, title=title, folder=path.parent.resolve()), encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise CourseError(
            f"the report cannot be written ({error.strerror})", where=path, do="Choose another file with --output."
        ) from error
    return path
