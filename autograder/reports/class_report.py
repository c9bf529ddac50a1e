"""The class report: what a lecturer wants to know after grading, on one page that needs no network."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

import jinja2

from autograder.atomic_files import write_all_or_none
from autograder.checking.verdict import Diagnosis
from autograder.errors import CourseError
from autograder.feedback.markup import duration_text, in_code, points_text
from autograder.record.results import ExerciseResult
from autograder.reports.grades import Grade

BINS = 10
SLOWEST = 5


@dataclass(frozen=True)
class Work:
    """One student's work in one chapter, with everything that grading found out.

    Attributes:
        grade: the grade, from the gradebook.
        exercises: what came of each exercise; empty if the work was not graded by ``tfcourse``.
        seconds: how long the notebook ran, or None if it was not run.
        problems: what went wrong with the file or its run, one sentence each.
        remarks: what is worth knowing about it, but cost nothing and needs nobody.
        recorded: False if there is no grade although something was handed in: the grader failed, or what it has found out is lost.
        feedback: the feedback page, or None.
    """

    grade: Grade
    exercises: tuple[ExerciseResult, ...] = ()
    seconds: float | None = None
    problems: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    recorded: bool = True
    feedback: Path | None = None

    @property
    def graded(self) -> bool:
        """Whether its score says something: it was handed in, could be graded, and the grader did not fail."""
        return self.grade.handed_in and self.recorded and self.grade.gradable is True and self.grade.decided

    @property
    def share(self) -> float:
        """Score over best, between 0 and 1."""
        return min(1.0, self.grade.score / self.grade.best) if self.grade.best else 0.0


@dataclass(frozen=True)
class Bin:
    """One bar of the distribution: the students between two percentages, the upper one excluded but for 100."""

    low: int
    high: int
    students: tuple[str, ...]


@dataclass(frozen=True)
class ExerciseSummary:
    """How a class did in one exercise. Students are named by id.

    Attributes:
        name: the exercise.
        best: points that could be earned.
        average: points earned on average.
        full: who earned all points.
        partial: who earned some.
        none: who earned none.
        errors: by student, why the check came to no verdict.
    """

    name: str
    best: float
    average: float
    full: tuple[str, ...]
    partial: tuple[str, ...]
    none: tuple[str, ...]
    errors: dict[str, str]

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
    """Everything about one chapter. Average, median and distribution are of the graded works, as shares of the points.

    ``refused`` are those whose file could not be graded and who stand at 0 until a person decides; ``ungraded`` those on whom the grader
    itself failed, or of whose work it is not known any more whether it could be graded; ``undecided`` those of whose notebooks nobody has
    chosen one yet. None of them are among the graded. ``not_brought_in`` are those whose submission is in a download and did not get
    into the course folder; they are not absent.
    """

    chapter: str
    works: tuple[Work, ...]
    bins: tuple[Bin, ...]
    exercises: tuple[ExerciseSummary, ...]
    misconceptions: tuple[MisconceptionSummary, ...]
    slowest: tuple[Work, ...]
    failed: tuple[Work, ...]
    remarked: tuple[Work, ...]
    graded: tuple[str, ...]
    ungraded: tuple[str, ...]
    refused: tuple[str, ...]
    undecided: tuple[str, ...]
    absent: tuple[str, ...]
    pending: tuple[str, ...]
    late: tuple[str, ...]
    average: float
    middle: float
    not_brought_in: tuple[str, ...] = ()

    @property
    def handed_in(self) -> int:
        """How many students have handed in something."""
        return len(self.graded) + len(self.refused) + len(self.ungraded) + len(self.undecided)

    @property
    def waiting(self) -> int:
        """How many answers wait for manual grading."""
        return sum(work.grade.pending for work in self.works)

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as plain data, ready for JSON."""
        return {
            "chapter": self.chapter,
            "students": len(self.works),
            "handed_in": self.handed_in,
            "graded": len(self.graded),
            "average": self.average,
            "median": self.middle,
            "distribution": [vars(bin_) for bin_ in self.bins],
            "exercises": [vars(exercise) | {"pass_rate": exercise.pass_rate} for exercise in self.exercises],
            "misconceptions": [
                {"exercise": seen.exercise, "name": seen.diagnosis.name, "students": seen.students}
                for seen in self.misconceptions
            ],
            "failed": {work.grade.student: work.problems for work in self.failed},
            "remarks": {work.grade.student: work.remarks for work in self.remarked},
            "not_gradable": self.refused,
            "to_decide": self.undecided,
            "ungraded": self.ungraded,
            "absent": self.absent,
            "not_brought_in": self.not_brought_in,
            "pending": self.pending,
            "answers_pending": self.waiting,
            "late": self.late,
            "lateness": {
                work.grade.student: {"seconds": work.grade.late_by.total_seconds(), "points": work.grade.penalty}
                for work in self.works
                if work.grade.student in self.late
            },
        }


def summarise(works: Iterable[Work], not_brought_in: Mapping[str, Sequence[str]] = {}) -> list[ChapterSummary]:
    """Return a summary per chapter, in the order of chapters; students are ordered by id everywhere.

    Args:
        works: what was handed in, and what was not.
        not_brought_in: by chapter, the students whose submission did not get into the course folder.
    """
    by_chapter: dict[str, list[Work]] = defaultdict(list)
    for work in works:
        by_chapter[work.grade.chapter].append(work)
    return [
        _chapter(chapter, sorted(own, key=lambda w: w.grade.student), tuple(not_brought_in.get(chapter, ())))
        for chapter, own in sorted(by_chapter.items())
    ]


def _chapter(chapter: str, works: Sequence[Work], not_brought_in: tuple[str, ...]) -> ChapterSummary:
    present = [work for work in works if work.grade.handed_in]
    graded = [work for work in present if work.graded]
    shares = [work.share for work in graded]
    timed = sorted(
        (work for work in present if work.seconds is not None), key=lambda w: (-(w.seconds or 0.0), w.grade.student)
    )
    return ChapterSummary(
        chapter=chapter,
        works=tuple(works),
        bins=_distribution(graded),
        exercises=_exercises(graded),
        misconceptions=_misconceptions(graded),
        slowest=tuple(timed[:SLOWEST]),
        failed=tuple(work for work in present if work.problems),
        remarked=tuple(work for work in present if work.remarks),
        graded=_students(graded),
        ungraded=_students(work for work in present if not work.recorded),
        refused=_students(w for w in present if w.recorded and w.grade.decided and not w.grade.gradable),
        undecided=_students(work for work in present if not work.grade.decided),
        absent=_students(
            work for work in works if not work.grade.handed_in and work.grade.student not in not_brought_in
        ),
        pending=_students(work for work in present if work.grade.pending),
        late=_students(work for work in graded if work.grade.penalty > 0),
        average=mean(shares) if shares else 0.0,
        middle=median(shares) if shares else 0.0,
        not_brought_in=not_brought_in,
    )


def _students(works: Iterable[Work]) -> tuple[str, ...]:
    return tuple(work.grade.student for work in works)


def _distribution(works: Sequence[Work]) -> tuple[Bin, ...]:
    inside: list[list[str]] = [[] for _ in range(BINS)]
    for work in works:
        # Sums of tenths come out a hair below the edge that they mean.
        inside[min(BINS - 1, int(work.share * BINS + 1e-9))].append(work.grade.student)
    width = 100 // BINS
    return tuple(Bin(i * width, (i + 1) * width, tuple(students)) for i, students in enumerate(inside))


def _exercises(works: Sequence[Work]) -> tuple[ExerciseSummary, ...]:
    found: dict[str, dict[str, ExerciseResult]] = {}
    for work in works:
        for result in work.exercises:
            found.setdefault(result.name, {})[work.grade.student] = result
    return tuple(_exercise(name, results) for name, results in found.items())


def _exercise(name: str, results: dict[str, ExerciseResult]) -> ExerciseSummary:
    who: dict[str, list[str]] = {"full": [], "some": [], "none": []}
    for student, result in results.items():
        who[mark(result)].append(student)
    return ExerciseSummary(
        name=name,
        best=max(result.max_score for result in results.values()),
        average=mean(result.score for result in results.values()),
        full=tuple(who["full"]),
        partial=tuple(who["some"]),
        none=tuple(who["none"]),
        errors={student: result.error for student, result in results.items() if result.error},
    )


def mark(result: ExerciseResult) -> str:
    """Return ``"full"``, ``"some"`` or ``"none"``: how much of an exercise's points was earned."""
    if result.score >= result.max_score:
        return "full"
    return "some" if result.score > 0 else "none"


def _misconceptions(works: Sequence[Work]) -> tuple[MisconceptionSummary, ...]:
    seen: dict[tuple[str, Diagnosis], list[str]] = defaultdict(list)
    for work in works:
        for result in work.exercises:
            for diagnosis in result.verdict.diagnoses if result.verdict else ():
                seen[result.name, diagnosis].append(work.grade.student)
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
        lstrip_blocks=True,
    )
    environment.filters["mark"] = mark
    environment.filters["in_code"] = in_code
    environment.filters["points"] = points_text
    environment.filters["duration"] = duration_text
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
    page = render(summaries, title=title, folder=path.parent.resolve())
    try:
        write_all_or_none({path: page.encode()})
    except CourseError as error:
        raise CourseError(
            f"the report: {error.what}", where=path, do="Nothing was written. Choose another file with --output."
        ) from error
    return path
