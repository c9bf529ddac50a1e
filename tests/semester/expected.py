"""Compute every number of a course a second time, from the rules in the docs alone.

Nothing of the autograder is imported here. What goes in is what happened: who handed in what and when, which rows passed, what a person
marked, and ``course.toml`` as plain data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from statistics import mean, median
from typing import Any
from zoneinfo import ZoneInfo

Key = tuple[str, str]

GRACE_MINUTES = 15


@dataclass(frozen=True)
class Listed:
    """A student of the class list, with section and group.

    Attributes:
        section: the section, or empty.
        group: the group, or empty.
    """

    section: str = ""
    group: str = ""


@dataclass(frozen=True)
class Work:
    """A submission.

    Attributes:
        handed_in: when, with a time zone; None if nobody knows.
        earned: by exercise, the points of the rows that passed.
        answered: the questions with an answer.
        platform: the platform that it came from.
        gradable: False for a file that is not a notebook.
    """

    handed_in: datetime | None
    earned: Mapping[str, float]
    answered: frozenset[str] = frozenset()
    platform: str = ""
    gradable: bool = True


@dataclass
class Happened:
    """What has happened in a course so far.

    Attributes:
        plan: the contents of ``course.toml``.
        worth: by chapter, the points of each exercise and question in the notebook.
        listed: the students on the class list, by id.
        works: the submissions, by chapter and student.
        marks: the points that a person gave, by chapter, student, and exercise or question.
        reopened: the marks of answers that have changed since; they count until a person has confirmed them.
        ignored: the submissions that are no student's.
        withdrawn: the students who left.
        excused: the chapters that do not count for a student.
        joined: the day on which a student joined late.
    """

    plan: Mapping[str, Any] = field(default_factory=dict)
    worth: dict[str, dict[str, float]] = field(default_factory=dict)
    listed: dict[str, Listed] = field(default_factory=dict)
    works: dict[Key, Work] = field(default_factory=dict)
    marks: dict[tuple[str, str, str], float] = field(default_factory=dict)
    reopened: set[tuple[str, str, str]] = field(default_factory=set)
    ignored: set[str] = field(default_factory=set)
    withdrawn: set[str] = field(default_factory=set)
    excused: set[Key] = field(default_factory=set)
    joined: dict[str, date] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """A student's numbers in a chapter.

    Attributes:
        raw: points before the penalty.
        penalty: the points that lateness costs.
        best: the points to be earned.
        due: the student's deadline, or None.
        work: the submission, the student's own or the group's; None if nothing was handed in.
        submitter: who handed it in.
        waiting: the exercises and questions that wait for a person.
        waiting_raw: the points that these have meanwhile.
        waiting_worth: the points to be earned by these.
        plain_raw: points before the penalty, if no rule counted an exercise otherwise.
        plain_penalty: the penalty of these.
    """

    raw: float
    penalty: float
    best: float
    due: datetime | None
    work: Work | None
    submitter: str
    waiting: tuple[str, ...]
    waiting_raw: float
    waiting_worth: float
    plain_raw: float
    plain_penalty: float

    @property
    def score(self) -> float:
        """Points after the penalty."""
        return max(0.0, self.raw - self.penalty)

    @property
    def settled(self) -> float:
        """Points after the penalty, without those that wait for a person."""
        return (self.raw - self.waiting_raw) * (1 - self.penalty / self.raw) if self.raw else 0.0

    @property
    def graded(self) -> bool:
        """Whether the score is valid."""
        return self.work is not None and self.work.gradable

    @property
    def late_by(self) -> timedelta:
        """The time from the deadline to the submission; zero if it came in time."""
        if self.work is None or self.work.handed_in is None or self.due is None:
            return timedelta()
        return max(timedelta(), self.work.handed_in.astimezone(UTC) - self.due.astimezone(UTC))


@dataclass(frozen=True)
class Total:
    """A student's total.

    Attributes:
        shares: by chapter, the share of its points; None for a chapter that does not count.
        share: their weighted mean; None if no chapter counts.
        dropped: the chapters with the lowest shares, which do not count.
        points: the share in points of the scale; None without a rule that makes grades of totals.
        grade: the grade, or empty.
        passed: whether the student passes; None if there is no total.
    """

    shares: dict[str, float | None]
    share: float | None
    dropped: tuple[str, ...]
    points: float | None
    grade: str
    passed: bool | None


class Expected:
    """The numbers that a course must show.

    Args:
        happened: what has happened.
    """

    def __init__(self, happened: Happened) -> None:
        self.happened = happened
        # Everybody's, for the feedback page of a student who does not count is still the student's.
        self.everyone = {key: self._row(*key) for key in self._keys()}
        self.rows = {key: row for key, row in self.everyone.items() if self._counts(*key, row)}

    @property
    def has_grades(self) -> bool:
        """Whether a rule makes grades of the totals."""
        return "total" in self.happened.plan

    @property
    def begun(self) -> list[str]:
        """The chapters for which somebody who counts has handed in something."""
        return sorted({chapter for (chapter, _), row in self.rows.items() if row.work is not None})

    def of_chapter(self, chapter: str) -> dict[str, Row]:
        """Return the rows of a chapter by student."""
        return {student: row for (name, student), row in self.rows.items() if name == chapter}

    def shares(self, chapter: str) -> list[float]:
        """Return the shares of the points of those who are graded."""
        return [min(1.0, row.score / row.best) for row in self.of_chapter(chapter).values() if row.graded and row.best]

    def average(self, chapter: str) -> float:
        """Return the mean share of a chapter."""
        return mean(self.shares(chapter) or [0.0])

    def median(self, chapter: str) -> float:
        """Return the median share of a chapter."""
        return median(self.shares(chapter) or [0.0])

    def exercise_average(self, chapter: str, exercise: str) -> float:
        """Return the mean points of those who are graded in an exercise, as the notebook counts them."""
        graded = [(student, row) for student, row in self.of_chapter(chapter).items() if row.graded]
        return mean(self._earned(chapter, row.submitter, exercise) for _, row in graded)

    def totals(self) -> dict[str, Total]:
        """Return the total of each student for whom a chapter counts that has begun."""
        everyone = {student: self._total(student) for student in sorted({student for _, student in self.rows})}
        return {student: total for student, total in everyone.items() if total.share is not None}

    def not_counted(self) -> dict[Key, str]:
        """Return why somebody does not count in a chapter."""
        return {key: self._reason(*key) for key in self.everyone.keys() - self.rows.keys()}

    def _reason(self, chapter: str, student: str) -> str:
        happened = self.happened
        if student not in happened.listed:
            return "ignored: not a student" if student in happened.ignored else "not on the class list"
        if student in happened.withdrawn:
            return "withdrawn"
        if (chapter, student) in happened.excused:
            return "excused"
        return f"joined on {happened.joined[student]}, after the deadline"

    def _keys(self) -> Iterator[Key]:
        happened = self.happened
        for chapter in happened.worth:
            own = {student for name, student in happened.works if name == chapter}
            yield from ((chapter, student) for student in sorted(own | happened.listed.keys()))

    def _counts(self, chapter: str, student: str, row: Row) -> bool:
        happened = self.happened
        if student not in happened.listed or student in happened.withdrawn or (chapter, student) in happened.excused:
            return False
        joined = happened.joined.get(student)
        return joined is None or row.due is None or row.work is not None or row.due.date() >= joined

    def _row(self, chapter: str, student: str) -> Row:
        happened = self.happened
        submitter = self._submitter(chapter, student)
        work, due = happened.works.get((chapter, submitter)), self._due(chapter, student)
        raw, best, plain_raw, waiting, waiting_raw, waiting_worth = 0.0, 0.0, 0.0, list[str](), 0.0, 0.0
        for name, worth in happened.worth[chapter].items():
            earned = self._earned(chapter, submitter, name)
            counted, counted_worth = self._by_rule(chapter, name, earned, worth)
            plain_raw, best = plain_raw + earned, best + counted_worth
            raw += counted if work is not None else 0.0
            is_open = work is not None and name in work.answered and (chapter, submitter, name) not in happened.marks
            is_open = is_open or (chapter, submitter, name) in happened.reopened
            if is_open and self._rule(chapter, name).get("count") not in ("drop", "full"):
                waiting.append(name)
                waiting_raw, waiting_worth = waiting_raw + counted, waiting_worth + counted_worth
        share = self._late_share(chapter, work, due)
        return Row(
            *(raw, share * raw, best, due, work, submitter, tuple(waiting), waiting_raw, waiting_worth),
            *(plain_raw, share * plain_raw),
        )

    def _submitter(self, chapter: str, student: str) -> str:
        """Return the one member of the group who handed in, if groups hand in and this student did not."""
        works, listed = self.happened.works, self.happened.listed
        group = listed.get(student, Listed()).group
        if (chapter, student) in works or not group or not self._chapter(chapter).get("groups"):
            return student
        members = [name for name, other in listed.items() if other.group == group and (chapter, name) in works]
        return members[0] if len(members) == 1 and student not in self.happened.withdrawn else student

    def _earned(self, chapter: str, student: str, name: str) -> float:
        work = self.happened.works.get((chapter, student))
        by_check = work.earned.get(name, 0.0) if work is not None else 0.0
        return self.happened.marks.get((chapter, student, name), by_check)

    def _by_rule(self, chapter: str, name: str, earned: float, worth: float) -> tuple[float, float]:
        rule = self._rule(chapter, name)
        new_worth = rule.get("points", worth)
        earned = earned * new_worth / worth
        return {
            "drop": (0.0, 0.0),
            "full": (new_worth, new_worth),
            "bonus": (earned, 0.0),
        }.get(rule.get("count", ""), (earned, new_worth))

    def _rule(self, chapter: str, name: str) -> Mapping[str, Any]:
        rule: Mapping[str, Any] = self._chapter(chapter).get("exercises", {}).get(name, {})
        return rule

    def _chapter(self, chapter: str) -> Mapping[str, Any]:
        plan: Mapping[str, Any] = self.happened.plan["chapters"].get(chapter, {})
        return plan

    def _due(self, chapter: str, student: str) -> datetime | None:
        zone, general = ZoneInfo(self.happened.plan["time_zone"]), self._chapter(chapter).get("due")
        if general is None:
            return None
        due: datetime = self._own_date("deadlines", chapter, student) or general
        extension = self._own_date("extensions", chapter, student)
        return max(due, extension or due).replace(tzinfo=zone)

    def _own_date(self, table: str, chapter: str, student: str) -> datetime | None:
        """Return a student's own date; or else the latest of those of section and group."""
        dates = self.happened.plan.get(table, {})
        if chapter in dates.get(student, {}):
            own: datetime = dates[student][chapter]
            return own
        about = self.happened.listed.get(student, Listed())
        shared = [dates[name][chapter] for name in (about.section, about.group) if chapter in dates.get(name, {})]
        return max(shared, default=None)

    def _late_share(self, chapter: str, work: Work | None, due: datetime | None) -> float:
        rule = self._chapter(chapter).get("late", self.happened.plan.get("late", {}))
        if work is None or work.handed_in is None or due is None:
            return 0.0
        handed_in = work.handed_in.astimezone(UTC)
        if handed_in <= due.astimezone(UTC) + timedelta(minutes=rule.get("grace_minutes", GRACE_MINUTES)):
            return 0.0
        days = 1
        # The end of each late day has the deadline's reading of the clock.
        while handed_in > (due + timedelta(days=days)).astimezone(UTC):
            days += 1
        if days > rule.get("closed_after_days", days):
            return 1.0
        return float(min(rule.get("cap", 1.0), days * rule.get("per_day", 0.0)))

    def _total(self, student: str) -> Total:
        rule = self.happened.plan.get("total", {})
        shares: dict[str, float | None] = {}
        for chapter in self.begun:
            row = self.rows.get((chapter, student))
            shares[chapter] = min(1.0, row.score / row.best) if row is not None and row.best else None
        weights = {chapter: self._chapter(chapter).get("weight", 1) for chapter in shares}
        counted = {chapter: share for chapter, share in shares.items() if share is not None and weights[chapter]}
        lowest = sorted(counted, key=lambda chapter: (counted[chapter], -weights[chapter], chapter))
        dropped = lowest[: max(0, min(rule.get("drop_lowest", 0), len(counted) - 1))]
        kept = [chapter for chapter in counted if chapter not in dropped]
        if not kept:
            return Total(shares, None, (), None, "", None)
        share = sum(weights[name] * counted[name] for name in kept) / sum(weights[name] for name in kept)
        percent = 100 * share + 1e-9
        reached = [(low, name) for name, low in rule.get("grades", {}).items() if percent >= low]
        passed = percent >= rule["pass_mark"] if "pass_mark" in rule else None
        points = share * rule.get("scale", 100) if rule else None
        return Total(shares, share, tuple(sorted(dropped)), points, max(reached, default=(0, ""))[1], passed)
