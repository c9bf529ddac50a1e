"""Times of platforms and tables are read where they have one meaning, in the course's time zone."""

from __future__ import annotations

import pytest

from autograder.course.folder import Course
from autograder.enrolment.times import apply_times, platform_time
from autograder.errors import CourseError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-10-24 18:00", "2026-10-24T18:00:00+02:00"),
        ("2026-10-24T18:00:00Z", "2026-10-24T18:00:00+00:00"),
        ("2026-10-24 18:00:00 UTC", "2026-10-24T18:00:00+00:00"),
        ("2026-11-24T18:00:00", "2026-11-24T18:00:00+01:00"),
        ("Saturday, 24 October 2026, 6:00 PM", "2026-10-24T18:00:00+02:00"),
        ("Saturday, 24 October 2026, 12:05\u202fAM", "2026-10-24T00:05:00+02:00"),
        ("Samstag, 24. Oktober 2026, 18:00", "2026-10-24T18:00:00+02:00"),
        ("samedi 24 octobre 2026, 18:00", "2026-10-24T18:00:00+02:00"),
        ("sobota, 24 października 2026, 18:00", "2026-10-24T18:00:00+02:00"),
    ],
)
def test_a_time_is_read(text: str, expected: str) -> None:
    time = platform_time(text, "Europe/Warsaw")
    assert time is not None
    assert time.isoformat() == expected


@pytest.mark.parametrize(
    "text",
    [
        "03.11.2026",
        "10/11/2026 18:00",
        "24 Octember 2026, 18:00",
        "24 October 2026, 13:00 PM",
        "31 April 2026, 6:00",
        "",
    ],
)
def test_a_time_that_may_mean_two_things_or_none_is_not_read(text: str) -> None:
    assert platform_time(text, "UTC") is None


def test_times_that_cannot_be_read_are_refused(course: Course) -> None:
    (course.root / "times").mkdir()
    (course.root / "times" / "03.json").write_text("[")
    with pytest.raises(CourseError, match="these submission times cannot be read"):
        apply_times(course, "03")
