"""Read a list of one assignment: Moodle's grading worksheet, a table of student and time, or hand-in groups.

The worksheet has a participant's number in the assignment, beside name, ID number and address. So it tells apart two students of one name,
whose downloads Moodle tells apart by that number alone. It adds students, and never removes any.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path

from autograder.atomic_files import write_atomically
from autograder.course.course_file import course_file_path, read_course_file
from autograder.course.course_file_edits import set_extension
from autograder.course.folder import Course
from autograder.course.paths import shell_command
from autograder.errors import CourseError, list_first
from autograder.intake.identity import build_identity, match_identities
from autograder.intake.notebook.problem import Problem
from autograder.intake.people.class_list import ClassList, WorksheetForm, read_class_list
from autograder.intake.people.enrol import Enrolment, merge_list, save_roster
from autograder.intake.people.find_student import display_name
from autograder.intake.people.times import apply_times, is_draft, parse_column_times, parse_extension
from autograder.intake.roster import Student, fold_name, merge_collected, read_roster, submitted_folders


@dataclass(frozen=True)
class Worksheet:
    """The changes that a list of one assignment made."""

    chapter: str
    enrolment: Enrolment  # what it has changed in the class
    times: Mapping[str, str]  # the submission times that it has, by student
    # the students whose submission has got its time; the other times wait for the collection
    timed: tuple[str, ...] = ()
    # the students to whom Moodle has granted an extension that ``course.toml`` did not have, with its end
    extended: Mapping[str, str] = field(default_factory=dict)
    # the ids of participants of a blind assignment whose name it has, with the students whom they are
    revealed: Mapping[str, str] = field(default_factory=dict)


def enrol_worksheet(course: Course, path: Path, chapter: str, *, dry_run: bool = False) -> Worksheet:
    """Merge a list of one assignment into the roster, and write its times to the submissions.

    Args:
        course: the course; the caller holds its lock.
        path: the list.
        dry_run: whether to write nothing.

    Raises:
        CourseError: if the list cannot be read, or has neither participants nor times.
    """
    class_list = read_class_list(path)
    if not (class_list.is_for_one_chapter or "group" in class_list.fields):
        raise CourseError(
            "this list has neither participant numbers nor submission times nor groups",
            where=path,
            do="Read it without --chapter. Moodle's worksheet: the assignment, Submissions, Actions, Download grading worksheet.",
        )
    _refuse_other_assignment(course, class_list, chapter, path)
    read = parse_column_times(class_list.times, read_course_file(course.root).time_zone, path)
    revealed: Mapping[str, str] = {}
    if class_list.has_only_times:
        ids: Mapping[int, str]
        ids, problems = _match_times(course, class_list, path.name)
        enrolment = Enrolment(class_list.platform, problems=(*class_list.problems, *problems))
    else:
        ids, enrolment, revealed = _merge_worksheet(course, class_list, chapter, path, dry_run)
    times = {ids[line]: time for line, time in read.items() if time is not None and line in ids}
    unread = [
        Problem(
            "no time",
            f"{class_list.times[line]!r} is no time that can be read, so this submission has none.",
            f"{path.name}, line {line}",
            "Write it like 2026-10-24 18:00.",
        )
        for line, time in read.items()
        if time is None
    ]
    timed = apply_times(course, chapter, times, dry_run=dry_run) if times else []
    if class_list.form is not None and not dry_run:
        write_atomically(
            _form_path(course, chapter),
            (json.dumps(asdict(class_list.form), indent=1, ensure_ascii=False) + "\n").encode(),
        )
    extended, undated = _granted_extensions(course, class_list, ids, chapter)
    if not dry_run:
        for student, until in extended.items():
            set_extension(course.root, student, chapter, until)
    enrolment = replace(enrolment, problems=(*enrolment.problems, *unread, *undated))
    spelled = [{name: time.isoformat(" ") for name, time in table.items()} for table in (times, extended)]
    return Worksheet(chapter, enrolment, spelled[0], tuple(timed), spelled[1], revealed)


def _refuse_other_assignment(course: Course, class_list: ClassList, chapter: str, path: Path) -> None:
    """Refuse a worksheet without any of the chapter's participant numbers from an earlier worksheet."""
    earlier = {
        student.participants[chapter] for student in read_roster(course).values() if chapter in student.participants
    }
    numbers = {*class_list.participants.values()}
    if earlier and numbers and not earlier & numbers and _form_path(course, chapter).exists():
        raise CourseError(
            f"none of its participants' numbers is one of {chapter}: this is the worksheet of another assignment",
            where=path,
            do=f"Read it for its own chapter. If the assignment was made again in Moodle, remove {_form_path(course, chapter)} first.",
        )


def worksheet_form(course: Course, chapter: str) -> WorksheetForm:
    """Return the form of the worksheet that was read for a chapter; by default, Moodle's English form.

    Raises:
        CourseError: if it cannot be read.
    """
    path = _form_path(course, chapter)
    try:
        return WorksheetForm(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return WorksheetForm()
    except (OSError, ValueError, TypeError) as error:
        do = "Remove this file, and pass the worksheet to `tfcourse students` again."
        raise CourseError(
            f"the saved format of the chapter's worksheet cannot be read ({error})", where=path, do=do
        ) from error


def _form_path(course: Course, chapter: str) -> Path:
    return course.root / "worksheets" / f"{chapter}.json"


def _granted_extensions(
    course: Course, class_list: ClassList, ids: Mapping[int, str], chapter: str
) -> tuple[dict[str, datetime], list[Problem]]:
    """Return a worksheet's extensions beyond the course's deadline, by student; or problems without a deadline."""
    plan = read_course_file(course.root)
    granted = {
        ids[line]: until
        for line, status in class_list.statuses.items()
        if line in ids and (until := parse_extension(status, plan.time_zone)) is not None
    }
    if granted and plan.due(chapter) is None:
        message = f"Moodle has extensions for {list_first([*granted])}, and {chapter} has no deadline, so they were not taken."
        do = f"Write `due` of {chapter} into course.toml, and read this worksheet again."
        return {}, [Problem("extension", message, course_file_path(course.root).name, do)]
    return {
        student: until
        for student, until in granted.items()
        if (due := plan.due(chapter, student)) is not None and due < until
    }, []


def _merge_worksheet(
    course: Course, class_list: ClassList, chapter: str, path: Path, dry_run: bool
) -> tuple[Mapping[int, str], Enrolment, Mapping[str, str]]:
    """Merge a worksheet into the roster; return each line's student, the changes, and the revealed participants."""
    before = read_roster(course)
    numbers = class_list.participants
    members = {
        line: replace(member, participants={chapter: numbers[line]}, group="") if line in numbers else member
        for line, member in class_list.members.items()
    }
    # The column says with whom a student hands in here; a class list may name other groups.
    listed = replace(class_list, members=members, fields=class_list.fields - {"group"})
    ids, enrolment, entries = merge_list(course, listed, path.name)
    in_chapter = [
        Student(
            name,
            platform="moodle" if line in numbers else "",
            participants={chapter: numbers[line]} if line in numbers else {},
            teams={chapter: class_list.members[line].group} if "group" in class_list.fields else {},
        )
        for line, name in ids.items()
    ]
    roster = merge_collected({**before, **entries}, in_chapter)
    for line, name in ids.items() if numbers else ():
        open_ = {*roster[name].drafts} - {chapter} | ({chapter} if is_draft(class_list.statuses[line]) else set())
        roster[name] = replace(roster[name], drafts=tuple(sorted(open_)))
    entries = {name: roster[name] for name in entries}
    if not dry_run:
        save_roster(course, roster)
    same = {name for name in entries if entries[name] == before.get(name)}
    updated = tuple(sorted(entries.keys() - same - {*enrolment.added}))
    revealed, shared = _reveal_participants(course, chapter, roster, entries)
    problems = (
        *enrolment.problems,
        *shared,
        *_draft_problems(course, chapter, entries),
        *_holder_problems(course, chapter, entries),
    )
    blind = any(student.blind for student in entries.values())
    absent = [
        name
        for name, student in roster.items()
        if numbers and not blind and student.counts and not student.blind and chapter not in student.participants
    ]
    teams = [{name: one.find_team(chapter) or "" for name, one in people.items()} for people in (before, roster)]
    moved = {
        name: (team, teams[1][name])
        for name, team in teams[0].items()
        if team and fold_name(teams[1][name]) != fold_name(team)
    }
    enrolment = replace(
        enrolment, updated=updated, unchanged=tuple(sorted(same)), absent=tuple(sorted(absent)), moved_groups=moved
    )
    return ids, replace(enrolment, problems=problems), revealed


def _draft_problems(course: Course, chapter: str, entries: Mapping[str, Student]) -> list[Problem]:
    """Return problems for drafts that were collected before the worksheet marked them as drafts."""
    return [
        Problem(
            "draft",
            f"Moodle has the work of {display_name(student)} as a draft that was not handed in, and it was brought in before.",
            f"submitted/{student.id}/{chapter}",
            "Remove the folder, unless it counts as it is.",
        )
        for student in entries.values()
        if chapter in student.drafts and course.folder("submitted", student.id, chapter).is_dir()
    ]


def _holder_problems(course: Course, chapter: str, entries: Mapping[str, Student]) -> list[Problem]:
    """Return problems for students who left the team whose submission is stored under their id."""
    return [
        Problem(
            "team has moved on",
            f"{display_name(student)} is in {student.teams[chapter]} now. The work of {team} lies under this id, and is graded for {team}.",
            f"submitted/{student.id}/{chapter}",
            "If the list is right about that work, too, remove the folder, and collect the download again.",
        )
        for student in entries.values()
        if chapter in student.teams
        and (team := student.find_team(chapter) or "")
        and fold_name(team) != fold_name(student.teams[chapter])
        and course.folder("submitted", student.id, chapter).is_dir()
    ]


def _reveal_participants(
    course: Course, chapter: str, roster: Mapping[str, Student], entries: Mapping[str, Student]
) -> tuple[dict[str, str], list[Problem]]:
    """Return the revealed participants of a blind assignment with their students, and problems.

    Also name the submissions that were collected under another id before the worksheet said whose they are.
    """
    owners = {student.participants[chapter]: student for student in entries.values() if chapter in student.participants}
    teams = {fold_name(student.teams.get(chapter, "")) for student in entries.values()} - {""}
    revealed, problems = {}, []
    for other in roster.values():
        owner = owners.get(other.number_on_moodle(chapter))
        if owner is None or other.id in entries:
            continue
        folders = [course.folder("submitted", name, chapter) for name in (other.id, owner.id)]
        if other.blind and not owner.blind and not all(folder.exists() for folder in folders):
            revealed[other.id] = owner.id
            continue
        message = (
            f"Participant {owner.participants[chapter]} of {chapter} is {display_name(owner)}, "
            f"and was collected as {display_name(other)}."
        )
        do = f"Give the work to its owner: {shell_command(course, 'students', '--same', other.id, owner.id)}"
        if fold_name(other.name) in teams:
            message = (
                f"{display_name(other)} is a team, and was collected as a student, before the course knew its members."
            )
            do = f"Remove submitted/{other.id}/{chapter}, and collect the download again."
        problems.append(Problem("same number", message, f"submitted/{other.id}/{chapter}", do))
    return revealed, problems


def _match_times(course: Course, class_list: ClassList, file: str) -> tuple[dict[int, str], list[Problem]]:
    """Return the student of each line of a table of times, and problems for unmatched lines."""
    people = {name: Student(name) for name in submitted_folders(course)} | read_roster(course)
    identities = {name: build_identity(student) for name, student in people.items()}
    ids, problems = dict[int, str](), []
    for line, member in class_list.members.items():
        # The first column may hold whatever names a student, and several lines the same one.
        identity, text = build_identity(member), member.name or member.id
        matches, doubts = match_identities(
            {line: replace(identity, texts=identity.texts | {text.casefold()})}, identities
        )
        ids |= matches
        if not matches:
            several = " or ".join(doubts.get(line, ()))
            message = f"{text!r} may be {several}" if several else f"No student of this course is called {text!r}"
            where, do = f"{file}, line {line}", "Write the student's id."
            problems.append(Problem("unknown student", f"{message}, so this time was left out.", where, do))
    return ids, problems
