"""Run ``tfcourse students``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from autograder.commands.console import EXIT_FAILED, CommandResult, command
from autograder.commands.options import OTHER_COURSE, course_option
from autograder.course.paths import course_folder, require_writable

if TYPE_CHECKING:
    from autograder.collecting.enrolment import Attendance, Enrolment


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@course_option
@command
def students(file: Path | None, course_dir: Path | None) -> CommandResult:
    """Read a class list, or list the class and what each student has handed in.

    FILE is the people export of Canvas or Moodle, or a CSV table with id, name, email, number and group. Reading it again updates the
    roster. Without FILE, the command changes nothing.

    Example:
      tfcourse students ~/Downloads/participants.csv
    """
    from autograder.collecting.enrolment import attendance, enrol
    from autograder.course.folder import Course
    from autograder.course.lock import course_lock

    course = Course.open(course_folder(course_dir))
    if file is None:
        everyone = attendance(course)
        return CommandResult([_as_data(entry) for entry in everyone], _listing(everyone))
    require_writable(course.root, OTHER_COURSE)
    with course_lock(course):
        enrolment = enrol(course, file)
    data = asdict(enrolment) | {"problems": [problem.to_dict() for problem in enrolment.problems]}
    return CommandResult(data, _changes(enrolment), EXIT_FAILED if enrolment.problems else 0)


def _as_data(entry: Attendance) -> dict[str, object]:
    return asdict(entry.student) | {"handed_in": entry.chapters}


def _listing(everyone: Sequence[Attendance]) -> str:
    enrolled = [entry for entry in everyone if entry.student.enrolled]
    others = [entry for entry in everyone if not entry.student.enrolled]
    if not enrolled:
        head = "no class list yet: tfcourse students FILE"
    else:
        present = sum(bool(entry.chapters) for entry in enrolled)
        head = f"{len(enrolled)} on the class list, {present} of them handed in something"
    lines = [head, *_rows(enrolled)]
    if others:
        lines += [f"{len(others)} not on the class list", *_rows(others)]
    return "\n".join(lines)


def _rows(entries: Iterable[Attendance]) -> list[str]:
    cells = [(entry.student.id, entry.student.name, ", ".join(entry.chapters) or "nothing") for entry in entries]
    widths = [max((len(row[column]) for row in cells), default=0) for column in range(2)]
    return [f"  {name:{widths[0]}}  {full:{widths[1]}}  {chapters}".rstrip() for name, full, chapters in cells]


def _changes(enrolment: Enrolment) -> str:
    total = len(enrolment.added) + len(enrolment.updated) + len(enrolment.unchanged)
    lines = [
        f"{total} on the class list: {len(enrolment.added)} new, {len(enrolment.updated)} updated, "
        f"{len(enrolment.unchanged)} unchanged"
    ]
    if enrolment.departed:
        lines.append(f"no longer on the list, kept with their work: {', '.join(enrolment.departed)}")
    if enrolment.removed:
        lines.append(f"no longer on the list, removed without work: {', '.join(enrolment.removed)}")
    return "\n".join([*lines, *map(str, enrolment.problems)])
