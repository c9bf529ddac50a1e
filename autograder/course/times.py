"""Parse times of platforms, nbgrader and people, and count late days in the course's time zone.

A time that can be read in two ways is refused: nothing guesses whether ``03.11.2026`` is in March or in November.
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from email.utils import parsedate_to_datetime
from functools import lru_cache

HOW_TO_WRITE = "Write it as 2026-11-03 18:00, with a zone if it is not the course's: 2026-11-03 18:00 +0100."

_ZONE = r"[+-]\d{2}:?\d{2}|\(?[A-Za-z][A-Za-z0-9_+/:-]*\)?"
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?: ?[AaPp]\.?[Mm]\.?(?![A-Za-z]))?"
_WITH_ZONE = re.compile(rf"(?P<local>.*?{_CLOCK})(?: ?(?P<zone>{_ZONE}))?")
# The obsolete zones of RFC 2822 (EST, PST …) have one meaning in this form alone.
_RFC_2822 = re.compile(
    r"(?:[A-Z][a-z]{2}, )?\d{1,2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}(?::\d{2})? (?:[ECMP][SD]T|[+-]\d{4})"
)
_BY_COMMAND_DATE = re.compile(rf"(?P<day>[A-Za-z]+ \d{{1,2}}) (?P<clock>[\d:]+) (?P<zone>{_ZONE}) (?P<year>\d{{4}})")
_WEEKDAY = re.compile(r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*\.?,? ", re.IGNORECASE)
_DATES = ("%d %b %Y", "%d %B %Y", "%b %d %Y", "%B %d %Y", "%Y-%m-%d")
_CLOCKS = ("%H:%M", "%H:%M:%S", "%I:%M %p", "%I:%M:%S %p")


def read_time(text: str, zone: tzinfo) -> datetime:
    """Parse a date and time; the result has a time zone.

    Args:
        text: ISO 8601, RFC 2822, or a platform's English format, with an offset or an unambiguous zone name.
        zone: the course's zone, for times without a zone. An ambiguous time at the end of daylight saving means the earlier moment.

    Raises:
        ValueError: if the text has another format or is ambiguous; the message lists the interpretations.
    """
    text = " ".join(text.lstrip("\ufeff").split())
    if _RFC_2822.fullmatch(text):
        with suppress(ValueError):
            moment = parsedate_to_datetime(text)
            return moment if moment.tzinfo else moment.replace(tzinfo=UTC)  # "-0000"
    plain = _WEEKDAY.sub("", text, count=1)
    plain = _BY_COMMAND_DATE.sub(r"\g<day> \g<year> \g<clock> \g<zone>", plain)
    parts = _WITH_ZONE.fullmatch(plain)
    local = _parse_local(parts["local"]) if parts else None
    if parts is None or local is None:
        raise ValueError(f"{text[:60]!r} is not a time that can be read in one way.")
    name = (parts["zone"] or "").strip("()")
    return local.replace(tzinfo=_parse_zone(name, local.year, zone) if name else zone)


def _parse_local(text: str) -> datetime | None:
    """Parse a date and a time of day without a zone; None for other texts."""
    if re.match(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:", text):
        with suppress(ValueError):
            return datetime.fromisoformat(text)
    text = re.sub(r",? at |, | ", " ", text)
    text = re.sub(r"(?<=\d) ?([AaPp])\.?([Mm])\.?$", r" \1\2", text)
    text = re.sub(r"(?<=[A-Za-z])\. ", " ", re.sub(r"^(\d{1,2})(?:\.|st|nd|rd|th) ", r"\1 ", text))
    for form in (f"{date} {clock}" for date in _DATES for clock in _CLOCKS):
        with suppress(ValueError):
            return datetime.strptime(text, form)
    return None


def _parse_zone(name: str, year: int, course: tzinfo) -> tzinfo:
    """Return the zone with a name: an offset, an IANA name, or an abbreviation that has one meaning."""
    if match := re.fullmatch(r"(?:(?:UTC|GMT)(?=.))?([+-])(\d{1,2})(?::?(\d{2}))?", name, re.IGNORECASE):
        offset = timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
        if offset >= timedelta(days=1):
            raise ValueError(f"{name!r} is not an offset from UTC.")
        return timezone(-offset if match[1] == "-" else offset)
    if name.upper() in ("Z", "UT", "UTC", "GMT"):
        return UTC
    if "/" in name:
        try:
            return zoneinfo.ZoneInfo(name)
        except (KeyError, ValueError, OSError):
            raise ValueError(f"There is no time zone {name!r}.") from None
    # A platform that is set to the course's zone uses the abbreviations of that zone.
    offsets = dict(_list_abbreviations(course, year)).get(name.upper()) or _abbreviation_offsets(year).get(
        name.upper(), frozenset()
    )
    if len(offsets) != 1:
        many = "names several time zones" if offsets else "is not the name of a time zone"
        raise ValueError(f"{name!r} {many}.")
    return timezone(next(iter(offsets)))


@lru_cache(maxsize=8)
def _abbreviation_offsets(year: int) -> dict[str, frozenset[timedelta]]:
    """Return the offsets from UTC that each abbreviation had in a year, anywhere in the world."""
    meanings: dict[str, frozenset[timedelta]] = {}
    for key in sorted(zoneinfo.available_timezones()):
        if not key.startswith(("Etc/", "SystemV/")) and key != "localtime":
            for name, offsets in _list_abbreviations(zoneinfo.ZoneInfo(key), year):
                meanings[name] = meanings.get(name, frozenset()) | offsets
    return meanings


def _list_abbreviations(zone: tzinfo, year: int) -> Iterator[tuple[str, frozenset[timedelta]]]:
    for month in (1, 7):
        moment = datetime(year, month, 1, tzinfo=zone)
        name, offset = moment.tzname(), moment.utcoffset()
        if name and name.isalpha() and offset is not None:
            yield name.upper(), frozenset({offset})


def whole_days_late(handed_in: datetime, due: datetime, zone: tzinfo) -> int:
    """Return the number of days, each begun one counted, by which a moment is later than another.

    A day is one of the calendar in a time zone: from 20:00 to 20:00 of the next day, even if the clocks change between.

    Args:
        handed_in: the later moment, with a time zone.
        due: the earlier moment, with a time zone.
        zone: the zone whose days are counted.
    """
    local = due.astimezone(zone)
    handed_in = handed_in.astimezone(UTC)
    days = max(0, (handed_in - local.astimezone(UTC)).days - 1)
    # Adding days to a local time keeps the clock's reading; the comparison in UTC sees the change of clocks.
    while handed_in > (local + timedelta(days=days)).astimezone(UTC):
        days += 1
    return days
