"""Enrol a class: merge a class list into the roster.

A list adds and updates; it removes only with ``remove_missing``. A list that is read twice, or in another order, changes no id. A list of
another course adds its students, whom the summary names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.intake.identity import build_identity, match_identities
from autograder.intake.notebook.problem import Problem
from autograder.intake.people.class_list import ClassList, read_class_list
from autograder.intake.roster import (
    Student,
    fold_name,
    group_names,
    is_safe,
    read_roster,
    roster_path,
    safe_id,
    submitted_folders,
    write_roster,
)


@dataclass(frozen=True)
class Enrolment:
    """The changes that a class list made, with students listed by id."""

    platform: str  # the platform that exported the list, ``"canvas"`` or ``"moodle"``; empty for a plain table
    added: tuple[str, ...] = ()  # students whom the course did not know
    # students whom the course knew, from submissions or an earlier list, with something new
    updated: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()  # students with nothing new
    # students who were on the earlier list and are not on this one. They stay on the class list.
    absent: tuple[str, ...] = ()
    # students whom ``remove_missing`` has marked as withdrawn, because they handed in something
    departed: tuple[str, ...] = ()
    # students whom ``remove_missing`` has removed, because they handed in nothing; by id with their name
    removed: Mapping[str, str] = field(default_factory=dict)
    withdrawn: tuple[str, ...] = ()  # students on this list who have withdrawn, according to the course
    # students who are in another group than the one they handed in a chapter with, which stays; with those chapters
    kept_groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # students who hand in a chapter with another group after its worksheet, with the former and the new one. Their grade moves.
    moved_groups: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    # lines that were left out, and students whose submissions could not be determined
    problems: tuple[Problem, ...] = ()


def enrol(course: Course, path: Path, *, remove_missing: bool = False, dry_run: bool = False) -> Enrolment:
    """Merge a class list into the roster, and return the changes.

    Args:
        path: the list.
        remove_missing: whether the list is the whole class. Then students who are not on it have withdrawn; students who handed
            in nothing leave the roster. By default, they stay.
        dry_run: whether to write nothing.

    Raises:
        CourseError: if the list cannot be read, or the roster cannot be read or written. Nothing is changed then.
    """
    class_list = read_class_list(path)
    if class_list.is_for_one_chapter:
        raise CourseError(
            "this list belongs to one assignment: it has submission times, or participant numbers",
            where=path,
            do="Name its chapter with --chapter.",
        )
    before, folders = read_roster(course), submitted_folders(course)
    _, enrolment, entries = merge_list(course, class_list, path.name)
    absent = {name: student for name, student in before.items() if student.counts and name not in entries}
    leaving = absent if remove_missing else {}
    departed = {
        name: replace(leaving[name], state="withdrawn") for name in leaving if leaving[name].uploads or name in folders
    }
    others = {name: student for name, student in before.items() if name not in leaving}
    if not dry_run:
        save_roster(course, {**others, **departed, **entries})
    return replace(
        enrolment,
        absent=tuple(sorted(absent.keys() - leaving.keys())),
        departed=tuple(sorted(departed)),
        removed={name: leaving[name].name for name in sorted(leaving.keys() - departed.keys())},
    )


def merge_list(
    course: Course, class_list: ClassList, file: str
) -> tuple[dict[int, str], Enrolment, dict[str, Student]]:
    """Match a list to the course's students; return each line's student, the changes and the updated entries.

    Nothing is written.

    Args:
        class_list: the list.
        file: its name, for messages.
    """
    before, members = read_roster(course), class_list.members
    people = before | {name: Student(name) for name in submitted_folders(course) - before.keys()}
    matched, open_ = match_identities(
        {line: build_identity(member) for line, member in members.items()},
        {name: build_identity(student) for name, student in people.items()},
    )
    doubts = [_doubt_problem(members[line], names) for line, names in sorted(open_.items())]
    ids, unnamed = _assign_new_ids(class_list, matched, people, file)
    entries = {
        name: _merge_entry(people.get(name, Student(name)), members[line], class_list.fields)
        for line, name in ids.items()
    }
    enrolment = Enrolment(
        class_list.platform,
        added=tuple(sorted(entries.keys() - people.keys())),
        updated=tuple(sorted(name for name in entries if name in people and entries[name] != before.get(name))),
        unchanged=tuple(sorted(name for name in entries if entries[name] == before.get(name))),
        withdrawn=tuple(sorted(name for name in entries if entries[name].state)),
        kept_groups={
            name: chapters
            for name in sorted(entries)
            if (chapters := _chapters_with_old_group(entries[name], before.get(name)))
        },
        problems=(*class_list.problems, *doubts, *unnamed),
    )
    return ids, enrolment, entries


def _chapters_with_old_group(student: Student, before: Student | None) -> tuple[str, ...]:
    """Return the chapters that a student handed in with a group that the list has changed."""
    if before is None or fold_name(student.group) == fold_name(before.group):
        return ()
    now = group_names(student)
    return tuple(sorted(chapter for chapter, team in student.teams.items() if fold_name(team) not in now))


def _doubt_problem(member: Student, candidates: Sequence[str]) -> Problem:
    identified_by = member.number or member.email or member.id or "no number"
    message = f"It is open whether {member.name or member.id} ({identified_by}) is {' or '.join(sorted(candidates))}."
    do = (
        "Read the grading worksheet of a chapter that they handed in: tfcourse students WORKSHEET.csv --chapter CHAPTER"
    )
    if member.platform != "moodle":
        do = "Write number or login of the right one into students.json, and read the list again."
    return Problem("same name", message, "students.json", do)


def _assign_new_ids(
    class_list: ClassList, ids: Mapping[int, str], people: Mapping[str, Student], file: str
) -> tuple[dict[int, str], list[Problem]]:
    """Assign an id to each member, and return problems for members without a possible id."""
    everyone, problems = dict(ids), []
    taken = {name.casefold() for name in (*people, *ids.values())}
    names = [safe_id(member.name) for member in class_list.members.values()]
    for line, member in class_list.members.items():
        if line in everyone:
            continue
        alone = names.count(safe_id(member.name)) == 1
        wish = next(
            (wish for wish in _candidate_ids(member, alone) if is_safe(wish) and wish.casefold() not in taken), None
        )
        if wish is None:
            message = f"No id can be made for {member.name or member.id!r} that nobody else has, so this student was left out."
            do = "Add a column id to the list, or complete the student's number."
            problems.append(Problem("no id", message, f"{file}, line {line}", do))
            continue
        everyone[line] = wish
        taken.add(wish.casefold())
    return everyone, problems


def _candidate_ids(member: Student, alone: bool) -> Iterator[str]:
    """Yield the possible ids of a new member, the plainest first.

    Args:
        alone: whether no other member would get the id that the name makes. A student who hands in under a shared name must not get it.
    """
    if member.id:
        yield member.id
        return
    if member.login:
        yield member.login
    plain = safe_id(member.name)
    if alone:
        yield plain
    yield from (f"{plain}-{safe_id(part)}" for part in (member.user, member.number, member.email) if safe_id(part))


def _merge_entry(student: Student, member: Student, fields: frozenset[str]) -> Student:
    """Return a roster entry updated with the student's line of the class list.

    Args:
        student: the entry.
        member: the student as the list has them; an empty cell takes nothing away, but for the group and the section.
        fields: the columns of the list.
    """
    names = ("name", "platform", "user", "email", "number", "login")
    texts = {name: getattr(member, name) or getattr(student, name) for name in names}
    if member.id and member.id != student.id:
        # The submission was there first, and its folder has another name.
        texts["login"] = member.login or member.id
    # Groups change, and an empty cell says that there is none any more.
    texts |= {name: getattr(member if name in fields else student, name) for name in ("group", "section")}
    if student.platform and student.uploads:
        # The numbers of the uploads are that platform's, whichever one the list comes from.
        texts["platform"] = student.platform
    surname, blind = member.surname, member.blind and (student.blind or not student.enrolled)
    first, last = member.first_and_last_name
    # Worksheets and Canvas's list of groups have whole names, which do not tell surnames, nor that "Smith, Jr." is one.
    keeps_name = "participant" in fields and bool(student.surname)
    if not blind and (
        keeps_name
        or member.blind
        or not member.name
        or fold_name(student.name) in {fold_name(member.name), fold_name(f"{last}, {first}")}
    ):
        texts["name"], surname = student.name, student.surname or surname
    return replace(student, **texts, surname=surname, enrolled=True, blind=blind)


def save_roster(course: Course, roster: Mapping[str, Student]) -> None:
    """Write the roster.

    Raises:
        CourseError: if it cannot be written.
    """
    try:
        write_roster(course, roster)
    except OSError as error:
        raise CourseError(
            f"the list of students could not be written ({error.strerror or error})",
            where=roster_path(course),
            do="Nothing was changed. Make sure that the course folder is writable, and run the command again.",
        ) from error
