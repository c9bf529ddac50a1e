"""Write the lists that platforms export: Canvas's class and groups, and Moodle's grading worksheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from .downloads import Person
from .expected import Listed


def login(person: Person) -> str:
    """Return a student's id, which is the login on Canvas."""
    return f"u{person.number}"


def write_people(path: Path, people: Iterable[Person], listed: Mapping[str, Listed]) -> None:
    """Write the class as Canvas's gradebook has it.

    Args:
        path: the file.
        people: the students.
        listed: their sections, by id.
    """
    rows = []
    for person in people:
        first, _, last = person.name.rpartition(" ")
        name, section = f"{last}, {first}", listed[login(person)].section
        rows.append((name, person.number, f"s{person.number}", login(person), section))
    write_table(path, ("Student", "ID", "SIS User ID", "SIS Login ID", "Section"), rows)


def write_groups(path: Path, people: Iterable[Person], listed: Mapping[str, Listed]) -> None:
    """Write Canvas's groups.

    Args:
        path: the file.
        people: the students.
        listed: their sections and groups, by id.
    """
    columns = ("name", "canvas_user_id", "user_id", "login_id", "sections", "group_name", "canvas_group_id")
    rows = []
    for person in people:
        about = listed[login(person)]
        number = ord(about.group[0]) if about.group else ""
        ids = (person.number, f"s{person.number}", login(person))
        rows.append((person.name, *ids, about.section, about.group, number))
    write_table(path, columns, rows)


def write_worksheet(path: Path, people: Iterable[Person], times: Mapping[int, datetime]) -> None:
    """Write Moodle's grading worksheet.

    Args:
        path: the file.
        people: the participants.
        times: when they handed in, by number.
    """
    columns = (
        *("Identifier", "Full name", "ID number", "Email address", "Status", "Grade", "Maximum grade"),
        *("Grade can be changed", "Last modified (submission)", "Last modified (grade)", "Feedback comments"),
    )
    rows = []
    for person in people:
        time = times[person.number]
        clock = f"{time.hour % 12 or 12}:{time.minute:02} {'PM' if time.hour >= 12 else 'AM'}"
        shown = f"{time:%A}, {time.day} {time:%B} {time.year}, {clock}"
        about = (f"Participant {person.number + 700}", person.name, f"s{person.number}", f"{login(person)}@uni.example")
        rows.append((*about, "Submitted for grading", "", "17.00", "Yes", shown, "-", ""))
    write_table(path, columns, rows)


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table as CSV."""
    text = io.StringIO()
    csv.writer(text).writerows([columns, *rows])
    path.write_text(text.getvalue(), encoding="utf-8")
