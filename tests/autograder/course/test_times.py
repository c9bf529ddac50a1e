"""Times are read in one way or refused, and late days are days of the calendar."""

from __future__ import annotations

import calendar
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autograder.course.times import read_time, whole_days_late

WARSAW = ZoneInfo("Europe/Warsaw")
# Warsaw is two hours ahead of UTC in the evening of 24 October 2026, and one hour from the next morning on.
MOMENT = datetime(2026, 10, 24, 17, 50, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "2026-10-24 19:50",
        "2026-10-24T19:50:00",
        "2026-10-24T19:50:00+02:00",
        "2026-10-24 19:50:00 +0200",
        "2026-10-24 17:50:00 UTC",
        "2026-10-24 17:50:00.000000 UTC",
        "2026-10-24 17:50:00.000000000 Z",
        "2026-10-24T17:50:00Z",
        "2026-10-24 19:50:00 CEST",
        "2026-10-24 18:50:00 CET",
        "2026-10-24 13:50:00 EDT",
        "2026-10-24 19:50:00 Europe/Warsaw",
        "2026-10-24 10:50:00 America/Los_Angeles",
        "2026-10-24 19:50:00 UTC+2",
        "2026-10-24 19:50:00 GMT+02:00",
        "Sat, 24 Oct 2026 19:50:00 +0200",
        "Sat, 24 Oct 2026 17:50:00 GMT",
        "Sat, 24 Oct 2026 12:50:00 EST",
        "24 Oct 2026 17:50:00 -0000",
        "Saturday, 24 October 2026, 7:50 PM",
        "24 October 2026, 19:50",
        "October 24, 2026 7:50:00 PM CEST",
        "Saturday, October 24, 2026 7:50:00 PM CEST",
        "Oct 24, 2026 at 7:50pm",
        "Sat Oct 24 19:50:00 CEST 2026",
        "\ufeff2026-10-24 19:50:00 CEST\r\n",
    ],
)
def test_what_platforms_write_is_one_moment(text: str) -> None:
    assert read_time(text, WARSAW) == MOMENT


@pytest.mark.parametrize(
    "text",
    [
        "03.11.2026",
        "03.11.2026 18:00",
        "3/11/2026 18:00",
        "03-11-2026 18:00",
        "2026-10-24",
        "20:00",
        "yesterday",
        "1793000000",
        "",
        "2026-13-01 10:00",
        "2026-02-30 10:00",
        "2026-10-24 24:50",
        "2026-10-24 13:50 PM",
        "2026-10-24 0:50 AM",
        "2026-10-24 19:50 CST",
        "2026-10-24 19:50 IST",
        "2026-10-24 19:50 XYZ",
        "2026-10-24 19:50 Europe/Warschau",
        "2026-10-24 19:50 ../../etc/passwd",
        "2026-10-24 19:50 +9900",
        "Sat, 24 Okt 2026 19:50:00 +0200",
        "2026-10-24 19:50 CEST 2026-10-25 19:50 CEST",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_time(text, WARSAW)


def test_an_abbreviation_of_the_courses_own_zone_means_that_zone() -> None:
    assert read_time("2026-01-24 12:00 CST", ZoneInfo("America/Chicago")).utcoffset() == timedelta(hours=-6)
    assert read_time("2026-01-24 12:00 CST", ZoneInfo("Asia/Shanghai")).utcoffset() == timedelta(hours=8)
    assert read_time("2026-01-24 12:00 IST", ZoneInfo("Asia/Kolkata")).utcoffset() == timedelta(hours=5, minutes=30)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.datetimes(datetime(2001, 1, 1), datetime(2037, 1, 1)), st.integers(-12 * 4, 14 * 4))
def test_iso_and_rfc_2822_with_an_offset_are_read_exactly(local: datetime, quarters: int) -> None:
    moment = local.replace(tzinfo=timezone(timedelta(minutes=15 * quarters)))
    assert read_time(moment.isoformat(), WARSAW) == moment
    seconds = moment.replace(microsecond=0)
    assert read_time(format_datetime(seconds), WARSAW) == seconds


@pytest.mark.parametrize(
    ("handed_in", "days"),
    [
        ("2026-10-24T20:00:00+02:00", 0),
        ("2026-10-24T20:00:01+02:00", 1),
        # 24 and a half hours later, the clock shows 19:30 of the next day.
        ("2026-10-25T19:30:00+01:00", 1),
        ("2026-10-25T20:00:00+01:00", 1),
        ("2026-10-25T20:00:01+01:00", 2),
        ("2026-10-31T20:00:00+01:00", 7),
    ],
)
def test_the_day_on_which_clocks_go_back_has_25_hours(handed_in: str, days: int) -> None:
    due = datetime(2026, 10, 24, 20, tzinfo=WARSAW)
    assert whole_days_late(datetime.fromisoformat(handed_in), due, WARSAW) == days


def test_the_day_on_which_clocks_go_forward_has_23_hours() -> None:
    due = datetime(2026, 3, 28, 20, tzinfo=WARSAW)
    assert whole_days_late(datetime.fromisoformat("2026-03-29T20:00:00+02:00"), due, WARSAW) == 1
    assert whole_days_late(datetime.fromisoformat("2026-03-29T20:00:01+02:00"), due, WARSAW) == 2


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1)), st.integers(0, 40 * 24 * 60), st.integers(0, 23))
def test_late_days_are_those_that_a_calendar_shows(due: datetime, minutes: int, hour: int) -> None:
    """A second computation: compare the date and the clock, as a person with a calendar would."""
    due = due.replace(hour=hour, minute=30, second=0, microsecond=0)
    # In the two nights in which the clocks change, a reading of the clock is no moment or two.
    start = due.replace(tzinfo=WARSAW)
    handed_in = (start.astimezone(UTC) + timedelta(minutes=minutes)).astimezone(WARSAW)
    if 2 <= hour <= 3 or 2 <= handed_in.hour <= 3:
        return
    as_dates = calendar.timegm(handed_in.date().timetuple()) // 86400 - calendar.timegm(due.date().timetuple()) // 86400
    expected = as_dates + (handed_in.time() > due.time())
    assert whole_days_late(handed_in, start, WARSAW) == expected
