"""Read ``course.toml``, which states the exercises that a course uses, their deadlines and its rules.

The file is in the course folder, next to ``nbgrader_config.py``. The first ``tfcourse assign`` writes it with every key as a comment, and
every command reads it. A course without the file uses every exercise of every chapter and has no deadlines.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, TypeVar
from zoneinfo import ZoneInfo

import msgspec
from msgspec import Meta, Struct, structs

from autograder.course.chapter_names import resolve_chapter
from autograder.course.course_rules import ExerciseRule, TotalRule, VivaPlan, viva_assignment
from autograder.course.known_names import expand_dates, known_assignments, read_student_entries
from autograder.course.times import whole_days_late
from autograder.errors import CourseError

FILE_NAME = "course.toml"

_Value = TypeVar("_Value")
Share = Annotated[float, Meta(ge=0, le=1)]
Weight = Annotated[float, Meta(ge=0, le=1000)]
Minutes = Annotated[int, Meta(ge=0, le=60 * 24 * 31)]


class LateRule(Struct, frozen=True, forbid_unknown_fields=True):
    """The rule for penalties for late submissions."""

    grace_minutes: Minutes = 15  # minutes after the deadline that do not count as late
    per_day: Share = 0.0  # the fraction of the points deducted per day or part of a day
    cap: Share = 1.0  # the largest fraction that can be deducted
    # days after which a submission scores 0; ``None`` for no limit
    closed_after_days: Annotated[int, Meta(ge=0, le=366)] | None = None


class ChapterPlan(Struct, frozen=True, forbid_unknown_fields=True):
    """A course's plan for one chapter."""

    only: tuple[str, ...] | None = None  # the exercises and questions that are assigned; ``None`` for all
    without: tuple[str, ...] | None = None  # exercises and questions that are left out; never together with ``only``
    # the deadline, in the course's time zone unless it has its own offset; ``None`` for no deadline
    due: datetime | None = None
    late: LateRule | None = None  # the chapter's own rule for late work, if any
    # whether one member hands in for a group on the class list; the other members get the same grade
    groups: bool = False
    weight: Weight | None = None  # the chapter's weight in the total; ``None`` for 1
    # the heading of the chapter's column in Canvas's gradebook, such as ``Chapter 01 (88121)``; empty for the chapter's name
    canvas: str = ""
    # rules for single exercises and questions, by name; all others count as in the notebook
    exercises: dict[str, ExerciseRule] = {}


class CourseFile(Struct, frozen=True, forbid_unknown_fields=True):
    """The parsed contents of ``course.toml``."""

    title: str = ""  # the name of the class in reports; empty for the course's own name
    contact: str = ""  # where students can ask questions; printed in the instructions of an assignment
    # an IANA name, for deadlines and submission times without a time zone, and for the length of a day
    time_zone: str = "UTC"
    late: LateRule = LateRule()  # the rule for late work in chapters without their own rule
    chapters: dict[str, ChapterPlan] = {}  # the plan of each chapter, by its name (``07_decoding``)
    viva: dict[str, VivaPlan] = {}  # the plan of the conversations about each chapter, by the chapter's name
    # later deadlines, by student, section or group, then by chapter. Reading the file expands sections and groups to their members.
    extensions: dict[str, dict[str, datetime]] = {}
    # deadlines that replace the chapter's, earlier or later, by student, section or group, then by chapter
    deadlines: dict[str, dict[str, datetime]] = {}
    total: TotalRule | None = None  # the rule that converts the total to a grade; ``None`` to report only percentages

    @property
    def zone(self) -> ZoneInfo:
        """The course's time zone."""
        return ZoneInfo(self.time_zone)

    def chapter(self, name: str) -> ChapterPlan:
        """Return a chapter's plan; the default plan if the file does not name the chapter."""
        return self.chapters.get(name, ChapterPlan())

    def weights(self, chapters: Iterable[str]) -> dict[str, float]:
        """Return the weights of each chapter, and of its conversations, in the total.

        Nothing is returned if the file has neither weights nor a total. A chapter without a weight counts 1, its conversations 0.
        """
        weighted = [plan.weight is not None for plan in self.chapters.values()]
        weighted += [plan.weight > 0 for plan in self.viva.values()]
        if self.total is None and not any(weighted):
            return {}
        names = list(chapters)
        weights = {name: self.chapter(name).weight for name in names}
        vivas = {viva_assignment(name): self.viva[name].weight for name in names if name in self.viva}
        return {name: 1.0 if weight is None else weight for name, weight in weights.items()} | vivas

    def canvas_columns(self) -> dict[str, str]:
        """Return the column headings in Canvas's gradebook that differ from the assignments' names."""
        vivas = {viva_assignment(name): plan.canvas for name, plan in self.viva.items() if plan.canvas}
        return {name: plan.canvas for name, plan in self.chapters.items() if plan.canvas} | vivas

    def late_rule(self, chapter: str) -> LateRule:
        """Return a chapter's rule for late submissions."""
        return self.chapter(chapter).late or self.late

    def due(self, chapter: str, student: str | None = None) -> datetime | None:
        """Return a chapter's deadline with its time zone, including a student's extension; ``None`` without one.

        An extension never brings a deadline forward.
        """
        general = self.chapter(chapter).due
        if general is not None and student is not None:
            general = self.deadlines.get(student, {}).get(chapter, general)
        extended = self.extensions.get(student, {}).get(chapter) if student is not None else None
        dates = [date if date.tzinfo else date.replace(tzinfo=self.zone) for date in (general, extended) if date]
        return max(dates) if general is not None and dates else None

    def late_penalty(self, chapter: str, student: str, points: float, handed_in: datetime | None) -> float:
        """Return the points to deduct for lateness by the student's own deadline; 0 without a deadline or a time.

        Args:
            points: points before the penalty.
            handed_in: when the work was handed in, with a time zone.
        """
        due, rule = self.due(chapter, student), self.late_rule(chapter)
        if due is None or handed_in is None:
            return 0.0
        # Exports show the number as it is stored: 1.4, not 1.4000000000000001.
        return round(points * late_penalty_fraction(count_late_days(handed_in, due, rule, self.zone), rule), 6)

    def selects(self, chapter: str, name: str) -> bool:
        """Return whether a chapter assigns an exercise or a question."""
        plan = self.chapter(chapter)
        return (plan.only is None or name in plan.only) and name not in (plan.without or ())


def course_file_path(root: Path) -> Path:
    """Return the path of ``course.toml`` in a course folder."""
    return root / FILE_NAME


def read_course_file(root: Path, chapters: Iterable[str] | None = None) -> CourseFile:
    """Read and validate a course folder's ``course.toml``.

    Args:
        chapters: names of assignments; by default all that the course folder knows. The file may abbreviate a name as on the command
            line, and may name an assignment in two tables, which count together.

    Returns:
        The contents of the file, with full names; the default plan if the file does not exist.

    Raises:
        CourseError: if the file cannot be read, is not valid TOML, or has an invalid key or value; the message states line and key.
    """
    path = course_file_path(root)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return CourseFile()
    except (OSError, UnicodeDecodeError) as error:
        raise CourseError(f"this file cannot be read: {error}", where=path, do="Save it as UTF-8 text.") from error
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CourseError(f"this is not TOML: {error}", where=path, do="Correct the line that it names.") from error
    try:
        plan = msgspec.convert(table, CourseFile)
    except msgspec.ValidationError as error:
        raise _validation_error(path, text, str(error)) from error
    _check_meaning(path, text, plan)
    plan = _resolve_names(path, text, plan, known_assignments(root) if chapters is None else frozenset(chapters))
    _refuse_lone_deadlines(path, text, plan)
    plan = _expand_dates(root, plan)
    _refuse_strangers(path, text, plan)
    return plan


def _expand_dates(root: Path, plan: CourseFile) -> CourseFile:
    """Return a plan in which the dates of sections and groups are expanded to their members."""
    if not (plan.extensions or plan.deadlines):
        return plan
    students = read_student_entries(root)
    return structs.replace(
        plan,
        extensions=expand_dates(plan.extensions, students),
        deadlines=expand_dates(plan.deadlines, students),
    )


def count_late_days(handed_in: datetime, due: datetime, rule: LateRule, zone: tzinfo) -> int:
    """Return the number of days by which a submission is late, rounded up; 0 within the grace period.

    Args:
        handed_in: when it was handed in, with a time zone.
        zone: the course's zone, in which a day goes from one hour to the same hour of the next day.
    """
    late = handed_in.astimezone(UTC) - due.astimezone(UTC)
    return 0 if late <= timedelta(minutes=rule.grace_minutes) else whole_days_late(handed_in, due, zone)


def late_penalty_fraction(days: int, rule: LateRule) -> float:
    """Return the fraction of the points to deduct for a number of late days, from 0 to 1."""
    if rule.closed_after_days is not None and days > rule.closed_after_days:
        return 1.0
    return min(rule.cap, days * rule.per_day)


def _check_meaning(path: Path, text: str, plan: CourseFile) -> None:
    """Refuse values that have the right types but are invalid or contradictory."""
    try:
        ZoneInfo(plan.time_zone)
    except (KeyError, ValueError, OSError) as error:
        raise _key_error(
            path, text, "time_zone", f"there is no time zone {plan.time_zone!r}", "Write a name such as Europe/Warsaw."
        ) from error
    for name, chapter in plan.chapters.items():
        if chapter.only is not None and chapter.without is not None:
            raise _key_error(
                path, text, f"chapters.{name}.only", "only and without exclude each other", "Keep one of the two."
            )


def _resolve_names(path: Path, text: str, plan: CourseFile, assignments: frozenset[str]) -> CourseFile:
    """Return a plan with the full name of every assignment.

    Raises:
        CourseError: if a name means no assignment, or several, or two names mean the same one.
    """
    if not assignments:
        return plan  # neither a project nor a release says which assignments there are

    def rename_keys(table: Mapping[str, _Value], where: str) -> dict[str, _Value]:
        full: dict[str, _Value] = {}
        for typed, value in table.items():
            name = _resolve_name(path, text, f"{where}.{typed}", typed, assignments)
            try:
                full[name] = _merge_plans(full[name], value) if name in full else value
            except ValueError as error:
                key = f"{where}.{typed}.{error}".rstrip(".")
                raise _key_error(path, text, key, f"{name} has this already", "Keep one of the two.") from error
        return full

    extensions = {who: rename_keys(table, f"extensions.{who}") for who, table in plan.extensions.items()}
    deadlines = {who: rename_keys(table, f"deadlines.{who}") for who, table in plan.deadlines.items()}
    chapters, viva = rename_keys(plan.chapters, "chapters"), rename_keys(plan.viva, "viva")
    return structs.replace(plan, chapters=chapters, viva=viva, extensions=extensions, deadlines=deadlines)


def _merge_plans(one: Any, other: Any, key: str = "") -> Any:
    """Merge two tables of the same assignment.

    Raises:
        ValueError: if both have the same key; the error's text is that key.
    """
    if isinstance(one, dict) and isinstance(other, dict):
        both = {name: _merge_plans(one[name], other[name], name) for name in one.keys() & other.keys()}
        return {**one, **other, **both}
    if not isinstance(one, Struct) or isinstance(one, LateRule | ExerciseRule):
        raise ValueError(key)
    empty = type(one)()
    values = {}
    for field in one.__struct_fields__:
        first, second, default = (getattr(plan, field) for plan in (one, other, empty))
        values[field] = (
            first if second == default else second if first == default else _merge_plans(first, second, field)
        )
    return type(one)(**values)


def _refuse_lone_deadlines(path: Path, text: str, plan: CourseFile) -> None:
    """Refuse an individual deadline for a chapter without a general one."""
    for who, dates in plan.deadlines.items():
        for name in dates:
            if plan.chapter(name).due is None:
                message = "the chapter has no deadline of its own, from which this one could differ"
                raise _key_error(path, text, f"deadlines.{who}.{name}", message, f"Write due into [chapters.{name}].")


def _resolve_name(path: Path, text: str, key: str, typed: str, assignments: frozenset[str]) -> str:
    try:
        return resolve_chapter(typed, assignments, "", do=f"Known chapters: {', '.join(sorted(assignments))}.")
    except CourseError as error:
        raise _key_error(path, text, key, error.what, error.do) from error


def _refuse_strangers(path: Path, text: str, plan: CourseFile) -> None:
    """Refuse an extension or deadline for a name that is not in the course, if there is a class list."""
    students = read_student_entries(path.parent)
    if not any(entry.get("enrolled") for entry in students.values()):
        return
    names = {*students, *(folder.name for folder in (path.parent / "submitted").glob("*/"))}
    named = [(table, who) for table in ("extensions", "deadlines") for who in getattr(plan, table)]
    for table, student in named:
        if student not in names:
            close = get_close_matches(student, names, n=1, cutoff=0.6)
            message = f"there is no student, section or group {student!r} in this course" + (
                f". Did you mean {close[0]}?" if close else ""
            )
            do = "Write the id that `tfcourse students` shows, or add the student to the class list."
            raise _key_error(path, text, f"{table}.{student}", message, do)


def _validation_error(path: Path, text: str, message: str) -> CourseError:
    """Convert msgspec's error message to an error with the key and its line."""
    problem, _, location = message.partition(" - at `")
    key = location.rstrip("`").removeprefix("$").lstrip(".")
    if unknown := re.search(r"unknown field `(.+?)`", problem):
        key = f"{key}.{unknown[1]}".lstrip(".")
        problem = f"there is no key {unknown[1]!r}"
    do = "The comments at the top of a new course.toml show every key."
    if "`datetime" in problem:
        do = "Write day and time: 2027-03-01T23:59:00."
    return _key_error(path, text, key, problem[:1].lower() + problem[1:], do)


def course_file_error(root: Path, key: str, message: str, do: str) -> CourseError:
    """Return an error about a key of ``course.toml``, with its line."""
    path = course_file_path(root)
    return _key_error(path, path.read_text(encoding="utf-8"), key, message, do)


def _key_error(path: Path, text: str, key: str, message: str, do: str) -> CourseError:
    line = _find_line(text, key)
    where = f"{path}, line {line}" if line else str(path)
    return CourseError(f"{key}: {message}" if key else message, where=where, do=do)


def _find_line(text: str, key: str) -> int | None:
    """Return the line number of a dotted key, below its table's header; ``None`` if it is not found."""
    parts = [part for part in re.sub(r"\[(?:\d+|\.\.\.)\]", "", key).split(".") if part]
    remaining = list(parts)
    last = None
    for number, line in enumerate(text.splitlines(), 1):
        code = line.partition("#")[0]
        while remaining and re.search(rf"(?<![\w-]){re.escape(remaining[0])}(?![\w-])", code):
            remaining.pop(0)
            last = number
        if not remaining:
            return last
    return last


def due_sentence(plan: CourseFile, chapter: str) -> str:
    """Return a sentence with a chapter's deadline in the course's time zone; empty without one."""
    due = plan.due(chapter)
    if due is None:
        return ""
    local = due.astimezone(plan.zone)
    return f"Due on {local:%A}, {local.day} {local:%B} {local.year}, {local:%H:%M} ({plan.time_zone})."


def late_sentence(rule: LateRule) -> str:
    """Describe a rule for late submissions in sentences."""
    closed = rule.closed_after_days
    if not rule.per_day and closed is None:
        return "Late work costs no points."
    parts = []
    if rule.per_day:
        cap = "" if rule.cap >= 1 else f", at most {100 * rule.cap:g} %"
        parts.append(f"Late work loses {100 * rule.per_day:g} % of its points for each day, or part of a day{cap}.")
    if closed is not None:
        parts.append(f"Later than {closed} day{'' if closed == 1 else 's'} after the deadline, nothing counts.")
    if rule.grace_minutes:
        parts.append(f"The first {rule.grace_minutes} minutes are not late.")
    return " ".join(parts)


def assignment_sentences(plan: CourseFile, chapter: str) -> list[str]:
    """Return sentences for students about an assignment: deadline, late rule and contact."""
    due = due_sentence(plan, chapter)
    late = late_sentence(plan.late_rule(chapter)) if due else ""
    contact = f"Questions: {plan.contact}" if plan.contact else ""
    return [sentence for sentence in (due, late, contact) if sentence]
