"""Import submission times from Moodle's grading worksheet, or from a table of student and time.

A time is written into ``timestamp.txt`` of the submission, as nbgrader keeps it. If the submission is missing, the time waits in
the journal of the chapter's intake until the next collection brings one; then it is used once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from autograder.atomic_files import write_atomically
from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.intake.downloads.journal import read_journal, write_journal

# How Moodle writes a time in the languages whose lists are read: 24 October 2026, 6:00 PM; Samstag, 24. Oktober 2026, 18:00;
# sábado, 24 de octubre de 2026, 18:00.
_MOODLE = re.compile(
    r"(?:[^\W\d]+\.?,? )?(?P<day>\d{1,2})\.? (?:de )?(?P<month>[^\W\d]+)\.? (?:de )?(?P<year>\d{4}),? "
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}))? ?(?P<half>[AaPp][Mm])?"
)
# How Brightspace does: 13/10/2026 14:05, or 10/13/2026 2:05 PM.
_NUMBERS = re.compile(
    r"(?P<one>\d{1,2})/(?P<other>\d{1,2})/(?P<year>\d{4}),? "
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}))? ?(?P<half>[AaPp][Mm])?"
)
_MONTHS = (
    ("january", "januar", "janvier", "stycznia", "styczeń", "enero", "gennaio", "januari"),
    ("february", "februar", "février", "lutego", "luty", "febrero", "febbraio", "februari"),
    ("march", "märz", "mars", "marca", "marzec", "marzo", "maart"),
    ("april", "avril", "kwietnia", "kwiecień", "abril", "aprile"),
    ("may", "mai", "maja", "maj", "mayo", "maggio", "mei"),
    ("june", "juni", "juin", "czerwca", "czerwiec", "junio", "giugno"),
    ("july", "juli", "juillet", "lipca", "lipiec", "julio", "luglio"),
    ("august", "août", "sierpnia", "sierpień", "agosto", "augustus"),
    ("september", "septembre", "września", "wrzesień", "septiembre", "settembre"),
    ("october", "oktober", "octobre", "października", "październik", "octubre", "ottobre"),
    ("november", "novembre", "listopada", "listopad", "noviembre"),
    ("december", "dezember", "décembre", "grudnia", "grudzień", "diciembre", "dicembre"),
)
# How Moodle's language packs call a draft in English, German, French, Spanish, Italian and Dutch.
_DRAFT = ("draft", "entwurf", "brouillon", "borrador", "bozza", "kladwerk")
_MONTH_OF = {name: number for number, names in enumerate(_MONTHS, 1) for name in names}


def parse_platform_time(text: str, zone: str) -> datetime | None:
    """Parse a time as a platform or a table writes it; None if its form is unknown or ambiguous.

    Args:
        text: ISO 8601, or as Moodle writes it in English, German, French, Spanish, Italian, Dutch or Polish.
        zone: the time zone of a time without an offset.
    """
    plain = _normalise_blanks(text)
    try:
        time = datetime.fromisoformat(plain.removesuffix(" UTC") + ("+00:00" if plain.endswith(" UTC") else ""))
    except ValueError:
        match = _MOODLE.fullmatch(plain)
        written = _time_from_match(match) if match else None
        if written is None:
            return None
        time = written
    return time if time.tzinfo else time.replace(tzinfo=ZoneInfo(zone))


def parse_column_times(texts: Mapping[int, str], zone: str, path: Path) -> dict[int, datetime | None]:
    """Parse the times of a column, by line; None for cells that are not times.

    Where dates are numbers, such as 13/10/2026 14:05, the whole column tells whether the day or the month comes first.

    Raises:
        CourseError: if it does not tell.
    """
    numbers = {line: match for line, text in texts.items() if (match := _NUMBERS.fullmatch(_normalise_blanks(text)))}
    day_first, month_first = (any(int(match[part]) > 12 for match in numbers.values()) for part in ("one", "other"))
    if numbers and day_first == month_first:
        message = f"it cannot be told whether the dates begin with the day or the month, such as {next(iter(numbers.values()))[0]}"
        raise CourseError(message, where=path, do="Write the times like 2026-10-24 18:00. Nothing was changed.")
    times = {line: parse_platform_time(text, zone) for line, text in texts.items()}
    for line, match in numbers.items():
        day, month = (match["one"], match["other"]) if day_first else (match["other"], match["one"])
        time = _build_time(match, int(month), int(day))
        times[line] = time and time.replace(tzinfo=ZoneInfo(zone))
    return times


def _normalise_blanks(text: str) -> str:
    return " ".join(text.replace("\u202f", " ").split())


def _time_from_match(match: re.Match[str]) -> datetime | None:
    month = _MONTH_OF.get(match["month"].casefold())
    return None if month is None else _build_time(match, month, int(match["day"]))


def _build_time(match: re.Match[str], month: int, day: int) -> datetime | None:
    hour, half = int(match["hour"]), (match["half"] or "").upper()
    if half and not 1 <= hour <= 12:
        return None
    if half:
        hour = hour % 12 + 12 * (half == "PM")
    try:
        return datetime(int(match["year"]), month, day, hour, int(match["minute"]), int(match["second"] or 0))
    except ValueError:
        return None


def parse_extension(status: str, zone: str) -> datetime | None:
    """Return the end of an extension that Moodle granted; None if a worksheet's status has no date.

    No other status has one: work that is late or missing has a duration. The date is read in the languages of :func:`parse_platform_time`.
    """
    match = _MOODLE.search(_normalise_blanks(status))
    time = _time_from_match(match) if match else None
    return None if time is None else time.replace(tzinfo=ZoneInfo(zone))


def is_draft(status: str) -> bool:
    """Return whether a worksheet's status is that of a draft, which was not handed in."""
    return status.casefold().startswith(_DRAFT)


def apply_times(
    course: Course, chapter: str, times: Mapping[str, datetime] | None = None, *, dry_run: bool = False
) -> list[str]:
    """Write a chapter's new and waiting submission times to existing submissions; return their students.

    Args:
        course: the course; the caller holds its lock.
        times: new times by student, which are kept where the submission is still to come.
        dry_run: whether to write nothing.
    """
    journal = read_journal(course, chapter)
    waiting = {**journal.times, **{name: time.isoformat(" ") for name, time in (times or {}).items()}}
    folders = {student: course.folder("submitted", student, chapter) for student in sorted(waiting)}
    applied = [student for student, folder in folders.items() if folder.is_dir() and not folder.is_symlink()]
    if dry_run:
        return applied
    for student in applied:
        write_atomically(folders[student] / "timestamp.txt", waiting[student].encode())
    journal.times = {student: time for student, time in waiting.items() if student not in applied}
    write_journal(course, chapter, journal)
    return applied
