"""Bring submission times along: from Moodle's grading worksheet, or from a table of student and time.

A time is written into ``timestamp.txt`` of the submission, as nbgrader keeps it. If the submission is missing, the time waits in
the journal of the chapter's intake until the next collection brings one; then it is used once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from autograder.atomic_files import write_atomically
from autograder.course.course_file import read_course_file
from autograder.course.folder import Course
from autograder.intake.downloads.journal import read_journal, write_journal

# How Moodle writes a time in the languages whose lists are read: 24 October 2026, 6:00 PM; Samstag, 24. Oktober 2026, 18:00;
# sábado, 24 de octubre de 2026, 18:00.
_MOODLE = re.compile(
    r"(?:[^\W\d]+\.?,? )?(?P<day>\d{1,2})\.? (?:de )?(?P<month>[^\W\d]+)\.? (?:de )?(?P<year>\d{4}),? "
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


def platform_time(text: str, zone: str) -> datetime | None:
    """Return a time as a platform or a table writes it; None if it is in no form that has one meaning.

    Args:
        text: ISO 8601, or as Moodle writes it in English, German, French, Spanish, Italian, Dutch or Polish.
        zone: the time zone of a time without an offset.
    """
    plain = " ".join(text.replace("\u202f", " ").split())
    try:
        time = datetime.fromisoformat(plain.removesuffix(" UTC") + ("+00:00" if plain.endswith(" UTC") else ""))
    except ValueError:
        match = _MOODLE.fullmatch(plain)
        written = _of_moodle(match) if match else None
        if written is None:
            return None
        time = written
    return time if time.tzinfo else time.replace(tzinfo=ZoneInfo(zone))


def _of_moodle(match: re.Match[str]) -> datetime | None:
    month, hour, half = _MONTH_OF.get(match["month"].casefold()), int(match["hour"]), (match["half"] or "").upper()
    if month is None or (half and not 1 <= hour <= 12):
        return None
    if half:
        hour = hour % 12 + 12 * (half == "PM")
    try:
        return datetime(
            int(match["year"]), month, int(match["day"]), hour, int(match["minute"]), int(match["second"] or 0)
        )
    except ValueError:
        return None


def extension_in(status: str, zone: str) -> datetime | None:
    """Return until when Moodle has granted an extension; None if the status in a worksheet has no date.

    No other status has one: work that is late or missing has a duration. The date is read in the languages of :func:`platform_time`.
    """
    match = _MOODLE.search(" ".join(status.replace("\u202f", " ").split()))
    time = _of_moodle(match) if match else None
    return None if time is None else time.replace(tzinfo=ZoneInfo(zone))


def is_draft(status: str) -> bool:
    """Return whether the status in a worksheet is that of a draft, which was not handed in."""
    return status.casefold().startswith(_DRAFT)


def record_times(course: Course, chapter: str, times: Mapping[str, datetime]) -> list[str]:
    """Write submission times of a chapter, or keep them for submissions that are still to come; return the students whose time is written.

    Args:
        course: the course; the caller holds its lock.
        times: by student.
    """
    waiting = {
        **read_journal(course, chapter).times,
        **{student: time.isoformat(" ") for student, time in times.items()},
    }
    return _apply(course, chapter, waiting)


def apply_times(course: Course, chapter: str) -> list[str]:
    """Write the times that were kept for submissions that have come since; return those students."""
    return _apply(course, chapter, read_journal(course, chapter).times)


def _apply(course: Course, chapter: str, waiting: Mapping[str, str]) -> list[str]:
    applied = [student for student, _ in _present(course, chapter, waiting)]
    for _, path in _present(course, chapter, waiting):
        write_atomically(path, waiting[path.parents[1].name].encode())
    journal = read_journal(course, chapter)
    journal.times = {student: time for student, time in waiting.items() if student not in applied}
    write_journal(course, chapter, journal)
    return applied


def _present(course: Course, chapter: str, students: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """Yield the students of some who have a submission, with the file of its time."""
    for student in sorted(students):
        folder = course.folder("submitted", student, chapter)
        if folder.is_dir() and not folder.is_symlink():
            yield student, folder / "timestamp.txt"


def course_zone(course: Course) -> str:
    """Return the time zone in which the course's times without an offset are."""
    return read_course_file(course.root).time_zone
