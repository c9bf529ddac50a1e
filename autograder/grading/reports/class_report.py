"""Summarise each chapter for the class report: scores, students, exercises and misconceptions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING, Any

from autograder.checking.verdict import Diagnosis
from autograder.grading.record.results import ExerciseResult
from autograder.grading.reports.grades import Grade
from autograder.grading.reports.lecture_points import LecturePoint, lecture_points
from autograder.grading.reports.rubric_counts import RubricCount

if TYPE_CHECKING:
    from autograder.grading.reports.viva import VivaSummary


from dataclasses import replace

from autograder.course.folder import Course
from autograder.course.gradebook.reader import open_gradebook
from autograder.grading.record.results import GradeResult, read_results
from autograder.grading.reports.grades import read_grades
from autograder.grading.reports.rubric_counts import read_manual_points

BINS = 10
SLOWEST = 5


@dataclass(frozen=True)
class StudentWork:
    """One student's work in one chapter, with its grading results."""

    grade: Grade  # the grade, from the gradebook
    # the result of each exercise; empty if ``tfcourse`` has not graded the work
    exercises: tuple[ExerciseResult, ...] = ()
    seconds: float | None = None  # the running time of the notebook, or None if it did not run
    problems: tuple[str, ...] = ()  # problems of the file or its run, one sentence each
    remarks: tuple[str, ...] = ()  # remarks that cost no points and need no action
    recorded: bool = True  # False if a submission has no grade: the grader failed, or its result is missing
    feedback: Path | None = None  # the feedback page, or None

    @property
    def graded(self) -> bool:
        """Whether its score is valid: it was handed in, could be graded, and the grader did not fail."""
        return self.recorded and self.grade.graded

    @property
    def share(self) -> float:
        """The score as a share of the maximum, between 0 and 1."""
        return min(1.0, self.grade.score / self.grade.best) if self.grade.best else 0.0


@dataclass(frozen=True)
class Bin:
    """One bar of the score distribution: the students between two percentages. Only 100 is included as upper bound."""

    low: int
    high: int
    students: tuple[str, ...]


@dataclass(frozen=True)
class ExerciseSummary:
    """A class's results in one exercise, with students listed by id."""

    name: str  # the exercise
    best: float  # points that could be earned
    average: float  # points earned on average
    full: tuple[str, ...]  # students with all points
    partial: tuple[str, ...]  # students with some points
    none: tuple[str, ...]  # students without points
    errors: dict[str, str]  # why the check gave no verdict, by student

    @property
    def pass_rate(self) -> float:
        """The fraction of the class with full marks."""
        total = len(self.full) + len(self.partial) + len(self.none)
        return len(self.full) / total if total else 0.0


@dataclass(frozen=True)
class MisconceptionSummary:
    """The students who made one known mistake."""

    exercise: str
    diagnosis: Diagnosis
    students: tuple[str, ...]


@dataclass(frozen=True)
class ChapterSummary:
    """The summary of one chapter. Average, median and distribution cover graded submissions, as fractions of the points.

    Three groups of students are not graded. ``refused``: the file could not be graded, and they have 0 points until a person decides.
    ``ungraded``: the grader failed, or its result is missing. ``undecided``: no notebook has been chosen yet.

    ``not_brought_in`` are students whose submission is in a download but not in the course folder; they are not absent.
    ``next_lecture`` lists what cost the class most points. ``rubrics`` counts the rubric items of questions in words. ``viva`` summarizes
    the conversations about own code, if there were any.
    """

    chapter: str
    works: tuple[StudentWork, ...]
    bins: tuple[Bin, ...]
    exercises: tuple[ExerciseSummary, ...]
    misconceptions: tuple[MisconceptionSummary, ...]
    slowest: tuple[StudentWork, ...]
    failed: tuple[StudentWork, ...]
    remarked: tuple[StudentWork, ...]
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
    next_lecture: tuple[LecturePoint, ...] = ()
    rubrics: tuple[RubricCount, ...] = ()
    viva: VivaSummary | None = None

    @property
    def handed_in(self) -> int:
        """The number of students who handed in."""
        return len(self.graded) + len(self.refused) + len(self.ungraded) + len(self.undecided)

    @property
    def waiting(self) -> int:
        """The number of answers that wait for manual grading."""
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
                {"exercise": summary.exercise, "name": summary.diagnosis.name, "students": summary.students}
                for summary in self.misconceptions
            ],
            "next_lecture": [point.to_dict() for point in self.next_lecture],
            "rubrics": [rubric.to_dict() for rubric in self.rubrics],
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
            **({"conversations": self.viva.to_dict()} if self.viva is not None else {}),
        }


def summarise_chapters(
    works: Iterable[StudentWork], not_brought_in: Mapping[str, Sequence[str]] = {}
) -> list[ChapterSummary]:
    """Summarise the works by chapter, in the order of chapters, with students ordered by id.

    Args:
        works: the works of all students.
        not_brought_in: the students whose submission did not get into the course folder, by chapter.
    """
    by_chapter: dict[str, list[StudentWork]] = defaultdict(list)
    for work in works:
        by_chapter[work.grade.chapter].append(work)
    return [
        _summarise_chapter(
            chapter, sorted(chapter_works, key=lambda w: w.grade.student), tuple(not_brought_in.get(chapter, ()))
        )
        for chapter, chapter_works in sorted(by_chapter.items())
    ]


def _summarise_chapter(chapter: str, works: Sequence[StudentWork], not_brought_in: tuple[str, ...]) -> ChapterSummary:
    present = [work for work in works if work.grade.handed_in]
    graded = [work for work in present if work.graded]
    shares = [work.share for work in graded]
    timed = sorted(
        (work for work in present if work.seconds is not None), key=lambda w: (-(w.seconds or 0.0), w.grade.student)
    )
    return ChapterSummary(
        chapter=chapter,
        works=tuple(works),
        bins=_compute_distribution(graded),
        exercises=_summarise_exercises(graded),
        misconceptions=_summarise_misconceptions(graded),
        slowest=tuple(timed[:SLOWEST]),
        failed=tuple(work for work in present if work.problems),
        remarked=tuple(work for work in present if work.remarks),
        graded=_student_ids(graded),
        ungraded=_student_ids(
            w for w in present if not w.recorded and w.grade.waits_for not in ("hand-in", "download")
        ),
        refused=_student_ids(w for w in present if w.recorded and not w.grade.waits_for and not w.grade.gradable),
        undecided=_student_ids(work for work in present if not work.grade.decided),
        absent=_student_ids(
            work for work in works if not work.grade.handed_in and work.grade.student not in not_brought_in
        ),
        pending=_student_ids(work for work in present if work.grade.pending),
        late=_student_ids(work for work in graded if work.grade.penalty > 0),
        average=mean(shares) if shares else 0.0,
        middle=median(shares) if shares else 0.0,
        not_brought_in=not_brought_in,
        next_lecture=lecture_points({work.grade.student: work.exercises for work in graded}),
    )


def _student_ids(works: Iterable[StudentWork]) -> tuple[str, ...]:
    return tuple(work.grade.student for work in works)


def _compute_distribution(works: Sequence[StudentWork]) -> tuple[Bin, ...]:
    inside: list[list[str]] = [[] for _ in range(BINS)]
    for work in works:
        # Sums of tenths are slightly below the exact edge.
        inside[min(BINS - 1, int(work.share * BINS + 1e-9))].append(work.grade.student)
    width = 100 // BINS
    return tuple(Bin(i * width, (i + 1) * width, tuple(students)) for i, students in enumerate(inside))


def _summarise_exercises(works: Sequence[StudentWork]) -> tuple[ExerciseSummary, ...]:
    by_exercise: dict[str, dict[str, ExerciseResult]] = {}
    for work in works:
        for result in work.exercises:
            by_exercise.setdefault(result.name, {})[work.grade.student] = result
    return tuple(_summarise_exercise(name, results) for name, results in by_exercise.items())


def _summarise_exercise(name: str, results: dict[str, ExerciseResult]) -> ExerciseSummary:
    who: dict[str, list[str]] = {"full": [], "some": [], "none": []}
    for student, result in results.items():
        who[score_level(result)].append(student)
    return ExerciseSummary(
        name=name,
        best=max(result.max_score for result in results.values()),
        average=mean(result.score for result in results.values()),
        full=tuple(who["full"]),
        partial=tuple(who["some"]),
        none=tuple(who["none"]),
        errors={student: result.error for student, result in results.items() if result.error},
    )


def score_level(result: ExerciseResult) -> str:
    """Return ``"full"``, ``"some"`` or ``"none"`` for the earned points of an exercise."""
    if result.score >= result.max_score:
        return "full"
    return "some" if result.score > 0 else "none"


def _summarise_misconceptions(works: Sequence[StudentWork]) -> tuple[MisconceptionSummary, ...]:
    students: dict[tuple[str, Diagnosis], list[str]] = defaultdict(list)
    for work in works:
        for result in work.exercises:
            for diagnosis in result.verdict.diagnoses if result.verdict else ():
                students[result.name, diagnosis].append(work.grade.student)
    summaries = [
        MisconceptionSummary(exercise, diagnosis, tuple(who)) for (exercise, diagnosis), who in students.items()
    ]
    return tuple(sorted(summaries, key=lambda m: (-len(m.students), m.exercise, m.diagnosis.name)))


def read_student_work(course: Course, chapters: Sequence[str] = ()) -> list[StudentWork]:
    """Return every student's work in every chapter.

    Args:
        chapters: only these; all released chapters by default.

    Raises:
        CourseError: if a chapter is not in the gradebook, or the gradebook cannot be read.
    """
    grades = read_grades(course, chapters)
    results = {
        (result.student, result.chapter): result
        for chapter in dict.fromkeys(grade.chapter for grade in grades)
        for result in _apply_manual_points(course, chapter, read_results(course, chapter))
    }
    return [
        _group_work(course, grade, results.get((grade.handed_in_by, grade.chapter)))
        if grade.handed_in_by
        else _student_work(course, grade, results.get((grade.student, grade.chapter)))
        for grade in grades
    ]


def _apply_manual_points(course: Course, chapter: str, results: Iterable[GradeResult]) -> list[GradeResult]:
    """Return results in which manual points replace the points of the check."""
    with open_gradebook(course) as gradebook:
        points = read_manual_points(gradebook, chapter, waiting=True)

    def apply_points(student: str, exercise: ExerciseResult) -> ExerciseResult:
        return replace(exercise, score=points.get((f"test_{exercise.name}", student), exercise.score))

    return [
        replace(result, exercises=tuple(apply_points(result.student, exercise) for exercise in result.exercises))
        for result in results
    ]


def _student_work(course: Course, grade: Grade, result: GradeResult | None) -> StudentWork:
    page = _existing_path(course.folder("feedback", grade.student, grade.chapter) / f"{grade.chapter}.html")
    if grade.decision:
        return StudentWork(grade, remarks=(f"Decided by hand: {grade.decision}",), feedback=page)
    if result is None:
        return StudentWork(grade, recorded=grade.gradable is not None and not grade.not_yet, feedback=page)
    gradable = result.status != "not gradable"
    return StudentWork(
        grade=replace(grade, handed_in=True),
        # If nothing could be graded, the zeros are no measure of learning.
        exercises=result.exercises if gradable else (),
        seconds=(result.seconds or None) if gradable else None,
        problems=tuple(str(problem) for problem in result.problems if not problem.remark),
        remarks=tuple(str(problem) for problem in result.problems if problem.remark),
        recorded=result.status != "not recorded" and not grade.not_yet,
        feedback=page,
    )


def _group_work(course: Course, grade: Grade, result: GradeResult | None) -> StudentWork:
    """Return a group's work for a member who did not hand it in, without the problems of the one who did."""
    page = _existing_path(course.folder("feedback", grade.handed_in_by, grade.chapter) / f"{grade.chapter}.html")
    return replace(_student_work(course, grade, result), seconds=None, problems=(), remarks=(), feedback=page)


def _existing_path(path: Path) -> Path | None:
    return path if path.is_file() else None
