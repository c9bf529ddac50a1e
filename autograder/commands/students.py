"""Run ``tfcourse students``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from autograder.commands.console import EXIT_FAILED, CommandResult, command
from autograder.commands.options import OTHER_COURSE, course_option
from autograder.course.paths import course_folder, require_writable, shell_command
from autograder.errors import CourseError, list_first

if TYPE_CHECKING:
    from autograder.course.folder import Course
    from autograder.intake.people.enrol import Enrolment
    from autograder.intake.people.standing import Attendance
    from autograder.intake.people.worksheet import Worksheet
    from autograder.intake.roster import Student


# The options that decide something about a student, in the order in which they are carried out.
_DECISIONS = ("same", "add", "withdraw", "ignore", "excuse", "include", "joined")


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--chapter", metavar="CHAPTER", help="The chapter of a grading worksheet, or of a table of submission times."
)
@click.option("--dry-run", is_flag=True, help="Write nothing; only say what would change.")
@click.option(
    "--remove-missing", is_flag=True, help="FILE is the whole class: students who are not in it have withdrawn."
)
@click.option(
    "--same", nargs=2, metavar="STRANGER STUDENT", help="Give the work of a stranger to a student on the class list."
)
@click.option("--add", metavar="STUDENT", help="Put a stranger on the class list, or take a withdrawn student back.")
@click.option(
    "--withdraw", metavar="STUDENT", help="Leave a student out of averages, totals and exports; keep the work."
)
@click.option("--ignore", metavar="STRANGER", help="Ignore a stranger that is not a student, such as a test account.")
@click.option("--excuse", nargs=2, metavar="STUDENT CHAPTER", help="This chapter does not count for the student.")
@click.option("--include", nargs=2, metavar="STUDENT CHAPTER", help="The chapter counts again.")
@click.option(
    "--joined",
    nargs=2,
    metavar="STUDENT DAY",
    help="The student joined on this day (2026-11-02): what was due before does not count.",
)
@click.option(
    "--erase",
    metavar="STUDENT",
    help="Remove the student and everything about them permanently. Takes the id, not the name.",
)
@course_option
@command
def students(
    file: Path | None,
    chapter: str | None,
    dry_run: bool,
    remove_missing: bool,
    erase: str | None,
    course_dir: Path | None,
    **decisions: Any,
) -> CommandResult:
    """Import a class list, withdraw or erase a student, or list the class and what each student has handed in.

    FILE is the people export of Canvas or Moodle, nbgrader's list, or a CSV table with id, name, email, number and group. The command adds
    and updates students; it removes none without --remove-missing. Moodle's grading worksheet and a table of student and time belong to
    one chapter (--chapter) and add submission times. Without FILE and options, the command changes nothing.

    A stranger is an id that handed something in and is not on the class list.

    Example:
      tfcourse students ~/Downloads/participants.csv --dry-run
      tfcourse students worksheet.csv --chapter 03
      tfcourse students --withdraw "Jörg Müller"
    """
    from autograder.course.folder import Course

    course = Course.open(course_folder(course_dir))
    decided = {name: decisions[name] for name in _DECISIONS if decisions[name]}
    if file is not None and decided:
        raise click.UsageError(f"FILE and --{next(iter(decided))} cannot be combined; pass one of them")
    if file is None and (remove_missing or dry_run or chapter):
        raise click.UsageError("--chapter, --dry-run and --remove-missing need a FILE")
    if erase and (file is not None or decided):
        raise click.UsageError("--erase excludes FILE and the other options")
    if file is None and not decided and not erase:
        return _list_class(course)
    require_writable(course.root, OTHER_COURSE)
    if erase:
        return _erase(course, erase)
    return _decide(course, decided) if file is None else _enrol(course, file, chapter, remove_missing, dry_run)


def _list_class(course: Course) -> CommandResult:
    from autograder.intake.people.standing import list_attendance

    everyone = list_attendance(course)
    return CommandResult([_to_data(entry) for entry in everyone], _class_text(everyone))


def _enrol(course: Course, file: Path, chapter: str | None, remove_missing: bool, dry_run: bool) -> CommandResult:
    from autograder.course.gradebook.reader import released_chapters
    from autograder.course.lock import course_lock
    from autograder.grading.reassign import reassign
    from autograder.intake.people.enrol import enrol
    from autograder.intake.people.worksheet import enrol_worksheet

    if chapter and remove_missing:
        raise click.UsageError("a list for one chapter cannot remove students; leave out --remove-missing or --chapter")
    lines, data = list[str](), dict[str, Any]()
    with course_lock(course):
        if chapter:
            worksheet = enrol_worksheet(course, file, released_chapters(course, [chapter])[0], dry_run=dry_run)
            enrolment = worksheet.enrolment
            data = {
                "chapter": worksheet.chapter,
                "times": worksheet.times,
                "timed": worksheet.timed,
                "extended": worksheet.extended,
            }
            if worksheet.revealed:
                data["revealed"] = worksheet.revealed
                lines.append(f"{len(worksheet.revealed)} participants have names now")
            for participant, student in worksheet.revealed.items() if not dry_run else ():
                reassign(course, participant, student)
            lines.append(_times_message(worksheet))
            lines += [
                f"extension of {name} until {until}: into course.toml" for name, until in worksheet.extended.items()
            ]
        else:
            enrolment = enrol(course, file, remove_missing=remove_missing, dry_run=dry_run)
    data |= asdict(enrolment) | {"problems": [problem.to_dict() for problem in enrolment.problems], "dry_run": dry_run}
    text = "\n".join([*lines, _changes_text(enrolment, dry_run, of_chapter=bool(chapter))])
    return CommandResult(data, text, EXIT_FAILED if enrolment.problems else 0)


def _times_message(worksheet: Worksheet) -> str:
    waiting = len(worksheet.times) - len(worksheet.timed)
    return (
        f"{worksheet.chapter}: {len(worksheet.times)} submission times, {len(worksheet.timed)} written beside submissions, "
        f"{waiting} kept for the next collection"
    )


def _decide(course: Course, decided: Mapping[str, Any]) -> CommandResult:
    """Apply decisions about students in one step."""
    from autograder.course.lock import course_lock
    from autograder.intake.people.find_student import find_student

    lines = []
    with course_lock(course):
        for option, value in decided.items():
            typed, *others = value if isinstance(value, tuple) else (value,)
            student = find_student(course, typed)
            lines.append(_apply_decision(course, option, student, *others))
    return CommandResult({"decided": lines}, "\n".join(lines))


def _erase(course: Course, typed: str) -> CommandResult:
    from autograder.course.lock import course_lock
    from autograder.grading.erase import erase
    from autograder.intake.people.find_student import find_student
    from autograder.intake.people.standing import list_represented_members

    with course_lock(course):
        student = find_student(course, typed)
        if student != typed:
            do = f"Pass the id: {shell_command(course, 'students', '--erase', student)}"
            raise CourseError(f"this would erase {student} permanently", do=do)
        partners = list_represented_members(course, student)
        removed, remaining = erase(course, student)
    lines = [
        f"{student}: erased from {', '.join(removed)}",
        "report, exports and viva pages were removed; the commands write them again",
        "not erased: backups, the downloads that you collected from, and what the learning platform has",
    ]
    lines += [f"handed in for others, who have no grade for it any more: {list_first(partners)}"] if partners else []
    lines += [f"still named in {list_first(remaining)}: look there"] if remaining else []
    return CommandResult(
        {"removed": removed, "remaining": remaining}, "\n".join(lines), EXIT_FAILED if remaining else 0
    )


def _apply_decision(course: Course, option: str, student: str, other: str = "") -> str:
    from autograder.course.gradebook.reader import released_chapters
    from autograder.intake.people import standing
    from autograder.intake.people.find_student import display_name, find_student

    if option == "same":
        from autograder.grading.reassign import reassign

        owner = find_student(course, other)
        chapters = reassign(course, student, owner)
        return f"{student} is {owner}; grade the work under this name: tfcourse autograde {' '.join(chapters)}"
    if option in ("excuse", "include"):
        (chapter,) = released_chapters(course, [other])
        entry = standing.excuse_chapter(course, student, chapter, excused=option == "excuse")
        return f"{display_name(entry)}: {chapter} {'does not count' if option == 'excuse' else 'counts'}"
    if option == "joined":
        entry = standing.record_joining(course, student, _parse_day(other))
        return f"{display_name(entry)} joined on {entry.joined}: what was due before does not count"
    change = {"add": standing.add_student, "withdraw": standing.withdraw_student, "ignore": standing.ignore_submitter}[
        option
    ]
    return f"{display_name(change(course, student))}: {_EFFECTS[option]}"


_EFFECTS = {
    "add": "on the class list",
    "withdraw": "withdrawn; in no average, total or export, and the work is kept",
    "ignore": "no student; in no average, total or export",
}


def _parse_day(text: str) -> Any:
    try:
        return datetime.strptime(text, "%Y-%m-%d").date()
    except ValueError:
        raise click.UsageError(f"{text!r} is not a date; write it like 2026-11-02") from None


def _to_data(entry: Attendance) -> dict[str, object]:
    return asdict(entry.student) | {"handed_in": entry.chapters}


def _class_text(everyone: Sequence[Attendance]) -> str:
    counted = [entry for entry in everyone if entry.student.counts]
    decided = [entry for entry in everyone if entry.student.state]
    others = [entry for entry in everyone if not (entry.student.enrolled or entry.student.state)]
    if not any(entry.student.enrolled for entry in everyone):
        head = "no class list yet: tfcourse students FILE"
    else:
        present = sum(bool(entry.chapters) for entry in counted)
        head = f"{len(counted)} on the class list, {present} of them handed in something"
    lines = [head, *_student_lines(counted)]
    if others:
        lines += [f"{len(others)} not on the class list", *_student_lines(others)]
    if decided:
        lines += [f"{len(decided)} withdrawn or ignored", *_student_lines(decided)]
    return "\n".join(lines)


def _student_lines(entries: Iterable[Attendance]) -> list[str]:
    cells = [
        (entry.student.id, entry.student.name, ", ".join(entry.chapters) or "nothing", _standing_text(entry.student))
        for entry in entries
    ]
    widths = [max((len(row[column]) for row in cells), default=0) for column in range(2)]
    return [
        f"  {name:{widths[0]}}  {full:{widths[1]}}  {chapters}{standing}".rstrip()
        for name, full, chapters, standing in cells
    ]


def _standing_text(student: Student) -> str:
    """Return a student's state, joining date and excused chapters in brackets, or an empty string."""
    parts = [student.state, f"joined {student.joined}" if student.joined else ""]
    parts.append(f"excused from {', '.join(student.excused)}" if student.excused else "")
    return f"  ({'; '.join(filter(None, parts))})" if any(parts) else ""


def _changes_text(enrolment: Enrolment, dry_run: bool, *, of_chapter: bool) -> str:
    total = len(enrolment.added) + len(enrolment.updated) + len(enrolment.unchanged)
    lines = [
        f"{total} on this list: {len(enrolment.added)} new, {len(enrolment.updated)} updated, "
        f"{len(enrolment.unchanged)} unchanged"
    ]
    if enrolment.added and total > len(enrolment.added):
        lines.append(f"new: {list_first(enrolment.added)}")
    if enrolment.absent:
        hint = "is a teacher among them? --withdraw" if of_chapter else "--remove-missing takes them out"
        lines.append(f"not on this list, and still in the class ({hint}): {list_first(enrolment.absent)}")
    if enrolment.departed:
        lines.append(f"not on this list, withdrawn, with their work kept: {list_first(enrolment.departed)}")
    if enrolment.removed:
        lines.append(f"not on this list, removed without work: {list_first([*enrolment.removed])}")
    if enrolment.withdrawn:
        who = list_first([*enrolment.withdrawn])
        lines.append(f"on this list, and withdrawn or ignored in this course (--add takes them back): {who}")
    for name, chapters in enrolment.kept_groups.items():
        lines.append(
            f"{name} is in another group, and keeps the grade of the former one in {', '.join(chapters)} "
            f"(to change that: the same list with --chapter)"
        )
    if enrolment.moved_groups:
        moves = [f"{name} ({before} → {after or 'alone'})" for name, (before, after) in enrolment.moved_groups.items()]
        lines.append(
            f"in another group in this chapter than before, and with the grade of that one: {list_first(moves)}"
        )
    if dry_run:
        lines.append("this was a dry run: nothing was written")
    return "\n".join([*lines, *map(str, enrolment.problems)])
