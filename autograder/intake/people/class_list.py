"""Read a class list: Canvas's or Moodle's export of people, Moodle's grading worksheet, or a plain CSV table.

- Canvas: the gradebook's export (``Student, ID, SIS User ID, SIS Login ID, Section``), and the export of its groups;
- Moodle: the participants, with headings in several languages;
- Moodle's grading worksheet, in any language: a participant's number, the state and time of the submission, and, unless marking is blind,
  name, ID number and address;
- a table of submission times, with ``student`` and ``time``;
- any other table with a column ``id`` or ``name``, and perhaps ``email``, ``number`` and ``group``, such as nbgrader's.

Columns are separated by commas, semicolons or tabs. The text is UTF-8 with or without a byte order mark, or UTF-16 with one. Workbooks are
not read, nor encodings such as Windows-1250, which nothing in a file tells from Windows-1252.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from autograder.errors import CourseError
from autograder.intake.notebook.problem import Problem
from autograder.intake.roster import Student, fold_name, is_safe

_POINTS = re.compile(r"[0-9]+(?:[.,][0-9]+)?")
_NUMBER = re.compile(r"[0-9]+$")
_LARGEST = 20_000_000
_SAVE_AS_CSV = "In your spreadsheet program, choose Save as, CSV UTF-8; or export the list from the platform once more."
_COLUMNS = "The first line names the columns: those of Canvas's gradebook or of Moodle's participants, or id,name,email,number,group."
# By field, the headings that stand for it, in small letters. Moodle translates its own.
_HEADINGS = {
    "id": ("id", "canvas_user_id"),
    "name": ("student", "student name", "full name", "name", "vollständiger name", "nom complet", "imię i nazwisko"),
    "first name": ("first name", "first_name", "vorname", "prénom", "imię"),
    "last name": ("last name", "last_name", "surname", "nachname", "nom", "nom de famille", "nazwisko"),
    "email": (
        *("email", "e-mail", "email address", "e-mail address", "e-mail-adresse", "mail", "courriel"),
        *("adresse de courriel", "adresse e-mail", "adres e-mail", "adres email"),
    ),
    "number": (
        *("number", "sis user id", "user_id", "id number", "student number", "id-nummer", "matrikelnummer"),
        *("numéro d'identification", "numéro d'étudiant", "numer id", "numer identyfikacyjny", "numer albumu"),
    ),
    "login": (
        *("login", "sis login id", "login_id", "username", "anmeldename", "benutzername"),
        *("nom d'utilisateur", "nazwa użytkownika"),
    ),
    "group": ("group", "groups", "group_name", "gruppe", "gruppen", "groupe", "groupes", "grupa", "grupy"),
    "group number": ("canvas_group_id",),
    "section": ("section", "sections"),
    "role": ("role", "roles", "rolle", "rollen", "rôle", "rôles", "ruolo", "ruoli"),
    # In a grading worksheet columns are found by their cells, too, whatever their headings: see _worksheet_fields.
    "participant": ("identifier",),
    "status": ("status", "statut", "estado", "stato"),
    "time": (
        *("time", "submitted", "timestamp", "submission time", "last modified (submission)"),
        *(
            "zuletzt geändert (abgabe)",
            "dernière modification (travail remis)",
            "ostatnia modyfikacja (przesłane zadanie)",
        ),
    ),
}
_FIELDS = {heading: name for name, headings in _HEADINGS.items() for heading in headings}
_CANVAS = frozenset({"sis user id", "sis login id", "canvas_user_id"})


@dataclass(frozen=True)
class WorksheetForm:
    """The wording of a grading worksheet, which Moodle reads in the uploading person's language."""

    identifier: str = "Identifier"  # the heading of the participants' numbers
    prefix: str = "Participant "  # what stands before each number, such as ``"Participant "`` or ``"Teilnehmer/in"``
    grade: str = "Grade"  # the heading of the grades
    changed: str = "Last modified (grade)"  # the heading of the time at which a grade was changed
    maximum: float | None = None  # the assignment's maximum grade


@dataclass(frozen=True)
class ClassList:
    """A parsed class list."""

    platform: str  # ``"canvas"``, ``"moodle"`` or empty
    members: Mapping[int, Student]  # the students by the number of their line, with an empty id where the list has none
    fields: frozenset[str]  # what it has columns for: ``"email"``, ``"group"`` and so on
    problems: Sequence[Problem] = ()  # the lines that are no student's, and why
    # in a grading worksheet, each line's number of the participant in the assignment
    participants: Mapping[int, str] = field(default_factory=dict)
    # in a worksheet or a table of times, the submission time of each line
    times: Mapping[int, str] = field(default_factory=dict)
    # in a worksheet, the state of each line's submission, in Moodle's language
    statuses: Mapping[int, str] = field(default_factory=dict)
    # the words and the maximum of a worksheet; None if the list is none, or they cannot be told
    form: WorksheetForm | None = None

    @property
    def is_for_one_chapter(self) -> bool:
        """Whether the list belongs to one assignment: a grading worksheet or a table of times."""
        return bool({"participant", "time"} & self.fields)

    @property
    def has_only_times(self) -> bool:
        """Whether the list contains submission times and does not define the class."""
        return "time" in self.fields and "participant" not in self.fields


def read_class_list(path: Path) -> ClassList:
    """Read a class list.

    Raises:
        CourseError: if the file cannot be read, is no table of students, names two students by one id or number of the platform, or two
            groups alike.
    """
    text = _decode_text(path, _read_bytes(path))
    rows = _parse_rows(path, text)
    if not rows:
        raise CourseError("the file is empty", where=path, do=_COLUMNS)
    (_, header), *lines = rows
    headings = [_fold_heading(cell) for cell in header]
    worksheet, form = _worksheet_columns(header, [cells for _, cells in lines])
    platform = "moodle" if worksheet else _detect_platform(headings)
    fields = worksheet or _column_fields(path, header, headings)
    named = {
        line: {name: _plain_text(cell) for name, cell in zip(fields, cells, strict=False) if name}
        for line, cells in lines
    }
    roles = Counter(role for values in named.values() for role in _find_roles(values))
    students_role = max(roles, key=lambda role: roles[role], default="")
    members: dict[int, Student] = {}
    problems: list[Problem] = []
    for line, values in named.items():
        if not any(values.values()) or _is_no_person(platform, values):
            continue
        member = _build_student(platform, values)
        if problem := _line_problem(f"{path.name}, line {line}", member, values, students_role):
            problems.append(problem)
        elif member not in members.values() or "participant" in fields:
            members[line] = member
    _refuse_shared(path, members, named)
    if not members and not problems:
        raise CourseError("there is no student in this list", where=path, do=_COLUMNS)
    return ClassList(
        platform,
        members,
        frozenset(fields) - {""},
        problems,
        {line: number[0] for line in members if (number := _NUMBER.findall(named[line].get("participant", "")))},
        {line: time for line in members if (time := named[line].get("time", "-")) not in ("", "-")},
        {line: named[line].get("status", "") for line in members},
        form,
    )


def _read_bytes(path: Path) -> bytes:
    try:
        if path.stat().st_size > _LARGEST:
            raise CourseError("this is too large for a class list", where=path, do=_SAVE_AS_CSV)
        return path.read_bytes()
    except OSError as error:
        raise CourseError(f"it cannot be read: {error.strerror or error}", where=path, do="Check the path.") from error


def _decode_text(path: Path, data: bytes) -> str:
    if data.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        raise CourseError("this is a workbook of a spreadsheet program, not CSV", where=path, do=_SAVE_AS_CSV)
    utf_16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = data.decode("utf-16" if utf_16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"line {line} is not UTF-8; names with accents would be spoilt"
        raise CourseError(message, where=path, do=_SAVE_AS_CSV) from error
    if "\0" in text:
        raise CourseError("this is not a text in UTF-8", where=path, do=_SAVE_AS_CSV)
    return text


def _parse_rows(path: Path, text: str) -> list[tuple[int, list[str]]]:
    """Return the non-empty rows with their line numbers. The delimiter is the one with the most known headings."""
    tables = (_parse_table(path, text, delimiter) for delimiter in ",;\t")
    return max(tables, key=lambda table: sum(_fold_heading(cell) in _FIELDS for cell in table[0][1]) if table else 0)


def _parse_table(path: Path, text: str, delimiter: str) -> list[tuple[int, list[str]]]:
    # Excel writes the delimiter on a line of its own.
    skipped = 1 if text[:4].casefold() == "sep=" else 0
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    table, begin = [], 1
    try:
        for row in reader:
            if begin > skipped and any(cell.strip() for cell in row):
                table.append((begin, row))
            begin = reader.line_num + 1
    except csv.Error as error:
        message = f"line {reader.line_num} is no line of a CSV table: {error}"
        raise CourseError(message, where=path, do=_SAVE_AS_CSV) from error
    return table


def _fold_heading(cell: str) -> str:
    return _plain_text(cell).casefold().replace("’", "'")


def _plain_text(cell: str) -> str:
    """Return a cell without control characters and redundant blanks."""
    visible = "".join(" " if unicodedata.category(sign) == "Cc" else sign for sign in cell)
    return unicodedata.normalize("NFC", " ".join(visible.split()))


def _detect_platform(headings: Sequence[str]) -> str:
    if _CANVAS & set(headings) or {"student", "id"} <= set(headings):
        return "canvas"
    fields = {_FIELDS.get(heading) for heading in headings}
    if "participant" in fields:
        return "moodle"
    return "moodle" if {"first name", "last name"} <= fields and "id" not in fields else ""


def _column_fields(path: Path, header: Sequence[str], headings: Sequence[str]) -> list[str]:
    """Return each column's field; empty for a column that is not read."""
    fields = [_FIELDS.get(heading, "") for heading in headings]
    if not {"id", "name"} & set(fields) and not {"first name", "last name"} <= set(fields):
        shown = ", ".join(filter(None, map(_plain_text, header)))[:200]
        raise CourseError(f"no column names the students; the first line is: {shown}", where=path, do=_COLUMNS)
    # Assignments follow in a gradebook, and one may be called like a column.
    return [name if name not in fields[:number] else "" for number, name in enumerate(fields)]


def _worksheet_columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[list[str], WorksheetForm | None]:
    """Return each column's field in Moodle's grading worksheet, and its wording; empty for other tables.

    It is in the language of whoever downloaded it. Its first column numbers the participants (``Participant 95``, ``Teilnehmer/in95``).
    Name, address and ID number come next, unless the students are anonymous. Grade and maximum, of which every row has the same, are
    followed by two dates whose headings begin alike: of the submission, and of the grade.
    """
    headings = [_fold_heading(cell) for cell in header]
    columns = [[_plain_text(row[number]) if number < len(row) else "" for row in rows] for number in range(len(header))]
    begins = {number: heading.partition("(")[0] for number, heading in enumerate(headings) if "(" in heading}
    time, changed = next((pair for pair in pairwise(begins) if begins[pair[0]] == begins[pair[1]]), (0, 0))
    if not rows or not changed or len({_NUMBER.sub("", cell) for cell in columns[0]} | {""}) != 2:
        return [], None
    fields = [_FIELDS.get(heading, "") for heading in headings]
    state = next((number for number, cells in enumerate(columns) if all(" - " in cell for cell in cells)), 0)
    for column in range(1, state):
        address = any("@" in cell for cell in columns[column])
        fields[column] = "email" if address else "name" if column == 1 else fields[column]
    if state:
        fields[state] = "status"
    fields[0], fields[time], fields[changed] = "participant", "time", ""
    alike = [number for number in range(2, len(header)) if len(set(columns[number])) == 1]
    maximum = next((number for number in alike if _POINTS.fullmatch(columns[number][0])), 0)
    form = WorksheetForm(
        identifier=_plain_text(header[0]),
        prefix=_NUMBER.sub("", rows[0][0].strip()),
        grade=_plain_text(header[maximum - 1]),
        changed=_plain_text(header[changed]),
        maximum=float(columns[maximum][0].replace(",", ".")) if maximum else None,
    )
    return [
        name if name not in fields[:number] else "" for number, name in enumerate(fields)
    ], form if maximum else None


def _is_no_person(platform: str, values: Mapping[str, str]) -> bool:
    """Return whether a row of Canvas's gradebook holds the points possible, averages, or the test student."""
    if platform != "canvas":
        return False
    return not values.get("id") or (values.get("name") == "Student, Test" and not values.get("number"))


def _build_student(platform: str, values: Mapping[str, str]) -> Student:
    name, surname = _split_name(values)
    number = values.get("id", "")
    blind = bool(values.get("participant")) and "name" not in values
    return Student(
        id="" if platform == "canvas" else number,
        name=values["participant"] if blind else name,
        platform=platform,
        user=number if platform == "canvas" else "",
        surname=surname,
        email=values.get("email", ""),
        number=values.get("number", ""),
        login=values.get("login", ""),
        group=values.get("group", ""),
        section=values.get("section", ""),
        enrolled=True,
        blind=blind,
    )


def _split_name(values: Mapping[str, str]) -> tuple[str, str]:
    """Return the full name and the surname; ``Lovelace, Ada`` is read as surname first."""
    if "first name" in values or "last name" in values:
        first, last = values.get("first name", ""), values.get("last name", "")
    else:
        last, comma, first = values.get("name", "").partition(", ")
        if not comma or "participant" in values:  # Moodle writes "John Smith, Jr." as it is
            return values.get("name", ""), ""
    return f"{first} {last}".strip(), last


def _line_problem(where: str, member: Student, values: Mapping[str, str], students_role: str) -> Problem | None:
    if not member.id and not member.name:
        return Problem("no name", "This line has neither an id nor a name, so it was left out.", where, "Complete it.")
    if member.id and not is_safe(member.id):
        message = f"No folder can be named {member.id!r}, so this student was left out."
        return Problem("unsafe id", message, where, "Write an id of letters, digits, dots, hyphens and underscores.")
    if member.platform == "canvas" and not (member.user.isascii() and member.user.isdecimal()):
        return Problem("no number", f"{member.user!r} is no number of Canvas's.", where, "Export the list once more.")
    if students_role and students_role not in _find_roles(values):
        role = values.get("role", "")
        message = f"{member.name or member.id} has the role {role!r}, and most have {students_role!r}, so this line was left out."
        return Problem("other role", message, where, "If this is a student, change the role on Moodle.")
    return None


def _find_roles(values: Mapping[str, str]) -> list[str]:
    return [role.strip() for role in values.get("role", "").split(",") if role.strip()]


def _refuse_shared(path: Path, members: Mapping[int, Student], named: Mapping[int, Mapping[str, str]]) -> None:
    """Refuse a list in which two students share an id or platform number, or two Canvas groups share a name.

    Students may name their group, and would share another's grade.
    """
    lines: dict[str, list[int]] = defaultdict(list)
    groups: dict[str, dict[str, int]] = defaultdict(dict)
    for line, member in members.items():
        for kind, value in (("id", member.id), ("number", member.user)):
            if value:
                lines[f"give the {kind} {value.casefold()!r} to different students"].append(line)
        if member.group:
            groups[fold_name(member.group)].setdefault(named[line].get("group number", ""), line)
    lines |= {f"are of different groups called {name!r}": [*numbers.values()] for name, numbers in groups.items()}
    for fault, several in lines.items():
        if len(several) > 1:
            message = f"lines {' and '.join(map(str, several))} {fault}"
            raise CourseError(
                message, where=path, do="Correct one of them, and read the list again. Nothing was changed."
            )
