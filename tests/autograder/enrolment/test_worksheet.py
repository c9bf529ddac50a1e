"""A grading worksheet tells namesakes apart, adds times, and removes nobody; a table of times adds nothing but times."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.intake.downloads.student_ids import assign_students
from autograder.intake.people.enrol import Enrolment, enrol
from autograder.intake.people.times import apply_times, parse_platform_time
from autograder.intake.people.worksheet import Worksheet, enrol_worksheet
from autograder.intake.roster import Student, merge_collected, read_roster, roster_path, write_roster

from .conftest import moodle

CHAPTER = "03_scaled_dot_product"
PARTICIPANTS = (
    "First name,Last name,ID number,Email address\nAnna,Schmidt,s1,a1@x\nAnna,Schmidt,s2,a2@x\nBo,Lind,s3,b@x\n"
)
HEADER = (
    "Identifier,Full name,ID number,Email address,Status,Grade,Maximum grade,Grade can be changed,"
    "Last modified (submission),Last modified (grade),Feedback comments"
)
ROWS = (
    'Participant 103,Anna Schmidt,s1,a1@x,Submitted for grading,,22.00,Yes,"Saturday, 24 October 2026, 6:00 PM",-,\n'
    'Participant 104,Anna Schmidt,s2,a2@x,Submitted for grading,,22.00,Yes,"Sunday, 25 October 2026, 8:05 AM",-,\n'
    "Participant 105,Cy Dahl,s4,c@x,No submission,,22.00,Yes,-,-,\n"
)

Read = Callable[..., Worksheet]


@pytest.fixture
def worksheet(course: Course, tmp_path: Path) -> Read:
    """Return a function that reads a list of the chapter; the course is in Warsaw."""
    (course.root / "course.toml").write_text('time_zone = "Europe/Warsaw"\n', encoding="utf-8")

    def read(text: str, **options: bool) -> Worksheet:
        (tmp_path / "worksheet.csv").write_text(text, encoding="utf-8")
        return enrol_worksheet(course, tmp_path / "worksheet.csv", CHAPTER, **options)

    return read


def test_namesakes_get_their_own_work_and_nobody_is_removed(
    course: Course, enrolled: Callable[..., Enrolment], worksheet: Read
) -> None:
    enrolled(PARTICIPANTS)
    uploads = [moodle("Anna Schmidt", "103"), moodle("Anna Schmidt", "104")]
    assert assign_students(uploads, read_roster(course), CHAPTER)[0] == {}
    result = worksheet(f"{HEADER}\n{ROWS}")
    assert (result.enrolment.added, result.enrolment.problems) == (("cy-dahl",), ())
    roster = read_roster(course)
    assert roster["bo-lind"].counts
    owned, problems = assign_students(uploads, roster, CHAPTER)
    assert problems == []
    assert {student: several[0].upload for student, several in owned.items()} == {
        "anna-schmidt-s1": "103",
        "anna-schmidt-s2": "104",
    }


def test_a_dry_run_writes_nothing(
    course: Course, enrolled: Callable[..., Enrolment], worksheet: Read, hand_in: Callable[..., None]
) -> None:
    enrolled(PARTICIPANTS)
    hand_in("anna-schmidt-s1")
    before = roster_path(course).read_bytes()
    assert worksheet(f"{HEADER}\n{ROWS}", dry_run=True).enrolment.added == ("cy-dahl",)
    assert roster_path(course).read_bytes() == before
    assert list(course.folder("submitted").rglob("timestamp.txt")) == []
    assert not (course.root / "times").exists()


def test_work_that_was_collected_under_another_id_is_named(
    course: Course, enrolled: Callable[..., Enrolment], worksheet: Read
) -> None:
    enrolled(PARTICIPANTS)
    stranger = Student("anna-schmidt", "Anna Schmidt", "moodle", uploads={CHAPTER: "103"})
    write_roster(course, merge_collected(read_roster(course), [stranger]))
    (problem,) = worksheet(f"{HEADER}\n{ROWS}").enrolment.problems
    assert "Participant 103" in problem.what
    assert "students --same anna-schmidt anna-schmidt-s1" in problem.do


def test_a_table_of_times_adds_no_student_and_names_what_it_cannot_place(
    course: Course, enrolled: Callable[..., Enrolment], worksheet: Read
) -> None:
    enrolled(PARTICIPANTS)
    table = "student,time\ns3,2026-10-24 18:00\nAnna Schmidt,2026-10-24 18:00\nEve,2026-10-24 18:00\ns1,03.11.2026\n"
    result = worksheet(table)
    assert result.times == {"bo-lind": "2026-10-24 18:00:00+02:00"}
    assert sorted(read_roster(course)) == ["anna-schmidt-s1", "anna-schmidt-s2", "bo-lind"]
    assert [(problem.kind, problem.where) for problem in result.enrolment.problems] == [
        ("unknown student", "worksheet.csv, line 3"),
        ("unknown student", "worksheet.csv, line 4"),
        ("no time", "worksheet.csv, line 5"),
    ]


def test_a_list_of_one_chapter_needs_its_chapter_and_a_class_list_has_none(
    course: Course, tmp_path: Path, worksheet: Read
) -> None:
    (tmp_path / "sheet.csv").write_text(f"{HEADER}\n{ROWS}", encoding="utf-8")
    with pytest.raises(CourseError, match="assignment"):
        enrol(course, tmp_path / "sheet.csv")
    with pytest.raises(CourseError, match="neither"):
        worksheet(PARTICIPANTS)


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
    time = parse_platform_time(text, "Europe/Warsaw")
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
    assert parse_platform_time(text, "UTC") is None


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (("13/10/2026 14:05", "01/11/2026 18:00"), ["2026-10-13 14:05:00+02:00", "2026-11-01 18:00:00+01:00"]),
        (("10/13/2026 2:05 PM", "11/01/2026 6:00 PM"), ["2026-10-13 14:05:00+02:00", "2026-11-01 18:00:00+01:00"]),
        (("13/10/2026 14:05", "2026-10-13 14:06"), ["2026-10-13 14:05:00+02:00", "2026-10-13 14:06:00+02:00"]),
        (("01/11/2026 14:05", "02/11/2026 18:00"), None),
        (("13/10/2026 14:05", "10/13/2026 14:05"), None),
    ],
)
def test_a_column_tells_whether_the_day_or_the_month_comes_first(
    enrolled: Callable[..., Enrolment], worksheet: Read, times: tuple[str, str], expected: list[str] | None
) -> None:
    enrolled(PARTICIPANTS)
    table = f"\ufeffstudent,time\ns3,{times[0]}\ns1,{times[1]}\n"
    if expected is None:
        with pytest.raises(CourseError, match="day or the month"):
            worksheet(table)
    else:
        found = worksheet(table).times
        assert [found["bo-lind"], found["anna-schmidt-s1"]] == expected


def test_a_time_that_is_read_again_before_the_work_comes_replaces_the_first(
    course: Course, enrolled: Callable[..., Enrolment], worksheet: Read, hand_in: Callable[..., None]
) -> None:
    enrolled(PARTICIPANTS)
    for clock in ("18:00", "20:00"):
        worksheet(f"student,time\ns3,2026-10-24 {clock}\n")
    hand_in("bo-lind")
    assert apply_times(course, CHAPTER) == ["bo-lind"]
    stamp = course.folder("submitted", "bo-lind", CHAPTER) / "timestamp.txt"
    assert stamp.read_text() == "2026-10-24 20:00:00+02:00"
