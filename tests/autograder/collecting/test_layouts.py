"""Real downloads are read, and lists of submitters are read from the download's own place alone."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.intake.downloads.archive import Entry
from autograder.intake.downloads.download import read_download, rename_to_submitters
from autograder.intake.downloads.platform_names import (
    assignment_title,
    possible_readings,
    rank_kinds,
    resolve_name,
    strip_platform_prefix,
)
from autograder.intake.downloads.student_ids import assign_students
from autograder.intake.roster import Student, write_roster

CASES = Path(__file__).parents[2] / "corpus" / "cases"
CHAPTER = "03_scaled_dot_product"
CLASS = {
    student.id: student
    for student in (
        Student("aberg", "Ada Berg", number="s1001", enrolled=True),
        Student("blind", "Bo Lind", number="s1002", enrolled=True),
    )
}


def test_blackboards_download_finds_students_by_their_login_and_their_last_attempt(course: Course) -> None:
    write_roster(course, CLASS)
    download = read_download(course, CHAPTER, CASES / "blackboard.zip")
    owned, problems = assign_students(download.uploads, CLASS, CHAPTER)
    assert (sorted(owned), download.unowned, problems) == (["aberg", "blind", "s1003"], [], [])
    first, last = sorted(owned["aberg"], key=lambda upload: upload.order)
    assert (first.submitted, last.submitted) == ("2026-10-23 18:00:00", "2026-10-24 18:00:00")
    assert first.series == last.series == (CHAPTER,)
    assert download.files == []


def test_the_title_of_an_assignment_on_blackboard_is_what_names_share() -> None:
    names = [f"Sheet_3_{login}_attempt_2026-10-24-18-00-00_a.ipynb" for login in ("bob_ada", "s1001")]
    assert assignment_title(names) == "Sheet_3"


def test_a_list_of_submitters_that_is_no_yaml_is_refused() -> None:
    broken = Entry(PurePosixPath("submission_metadata.yml"), None, lambda: b"a: [")
    with pytest.raises(CourseError, match="submitters"):
        rename_to_submitters([broken], CLASS)


CHAPTERS = ("03_scaled_dot_product", "10_t5")
MOODLE = "Ann Berg_41_assignsubmission_file_03_scaled_dot_product.ipynb"
CANVAS = "bergann_41_9001_03_scaled_dot_product.ipynb"


def owners(name: str, beside: str) -> list[tuple[str, str, str]]:
    """Return how a name is read in a download that holds another one besides."""
    kinds = rank_kinds([name, beside], CHAPTERS)
    return [(way.owner, way.user, way.upload) for way in resolve_name(name, kinds, CHAPTERS)]


@pytest.mark.parametrize(
    ("name", "beside", "owner"),
    [
        (MOODLE, MOODLE, ("Ann Berg", "", "41")),
        ("Ann Berg_41_assignsubmission_file_", MOODLE, ("Ann Berg", "", "41")),
        ("Participant_41_assignsubmission_file_x.ipynb", MOODLE, ("Participant", "", "41")),
        (CANVAS, CANVAS, ("bergann", "41", "9001")),
        ("bergann_LATE_41_9001_x.ipynb", CANVAS, ("bergann", "41", "9001")),
        ("van_der_berg_41_9001_x.ipynb", CANVAS, ("van_der_berg", "41", "9001")),
        ("bergann_41_9001_10_t5-2.ipynb", CANVAS, ("bergann", "41", "9001")),
        ("anon_x7Gq_9001_x.ipynb", "anon_y1_9002_x.ipynb", ("anon-x7Gq", "", "9001")),
        ("LATE_anon_x7Gq_9001_x.ipynb", "anon_y1_9002_x.ipynb", ("anon-x7Gq", "", "9001")),
        ("anon_12345_9001_x.ipynb", "anon_y1_9002_x.ipynb", ("anon-12345", "", "9001")),
        ("anon_12345_9001_x.ipynb", CANVAS, ("anon", "12345", "9001")),
    ],
)
def test_what_a_platform_writes_is_read(name: str, beside: str, owner: tuple[str, str, str]) -> None:
    assert owners(name, beside) == [owner]


@pytest.mark.parametrize(
    "file",
    [
        "Bob Lind_42_assignsubmission_file_x.ipynb",
        "boblind_42_9002_x.ipynb",
        "anon_42_9002_x.ipynb",
        "_42_assignsubmission_file_Bob Lind_42_assignsubmission_onlinetext_x.ipynb",
    ],
)
@pytest.mark.parametrize(
    ("prefix", "beside", "owner"),
    [
        ("Eve Adams_99_assignsubmission_file_", MOODLE, ("Eve Adams", "", "99")),
        ("adamseve_99_7001_", CANVAS, ("adamseve", "99", "7001")),
    ],
)
def test_a_file_name_never_changes_the_owner(prefix: str, file: str, beside: str, owner: tuple[str, str, str]) -> None:
    read_as = owners(prefix + file, beside)
    assert read_as == [owner] or len(read_as) > 1, "another student would get this"
    assert owner in read_as


@pytest.mark.parametrize(
    "name",
    [
        "boblind_42_99_7001_x.ipynb",
        "boblind_42_LATE_99_7001_x.ipynb",
        "boblind_42_9002_hw_99_7001_x.ipynb",
        "boblind_42_99_7001_10_t5.ipynb",
    ],
)
def test_a_display_name_like_a_prefix_takes_nothing(name: str) -> None:
    found = owners(name, CANVAS)
    assert found != [("boblind", "42"), ("99",)]
    assert len(found) != 1 or found[0][1] == "99"


def test_alone_a_name_of_two_platforms_is_doubtful() -> None:
    name = "Eve_99_assignsubmission_file_boblind_42_9002_x.ipynb"
    assert len(owners(name, name)) == 2
    assert owners(name, MOODLE) == [("Eve", "", "99")]


@pytest.mark.parametrize("digits", ["４２", "٤٢"])
def test_digits_of_other_scripts_are_no_numbers(digits: str) -> None:
    assert possible_readings(f"bob_{digits}_9002_x.ipynb") == {}
    assert possible_readings(f"Bob Lind_{digits}_assignsubmission_file_x.ipynb") == {}


def test_own_names_lose_the_outermost_prefix_alone() -> None:
    assert strip_platform_prefix(MOODLE) == strip_platform_prefix(CANVAS) == "03_scaled_dot_product.ipynb"
    assert (
        strip_platform_prefix("Eve_9_assignsubmission_file_Bob_4_assignsubmission_file_x")
        == "Bob_4_assignsubmission_file_x"
    )
    assert strip_platform_prefix("03_scaled_dot_product.ipynb") == "03_scaled_dot_product.ipynb"
