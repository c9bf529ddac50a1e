"""What a real Moodle 4.5 wrote: its lists, its worksheets and its downloads, with invented names. Who gets what, and what goes back."""

from __future__ import annotations

import csv
import shutil
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from autograder.course.course_file import course_file_path, read_course_file
from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.grading.reports.export import export, other_maxima
from autograder.grading.reports.grades import read_grades
from autograder.intake.downloads.collect import collect
from autograder.intake.downloads.store import Collection
from autograder.intake.people.attendance import group_submitters
from autograder.intake.people.class_list import WorksheetForm
from autograder.intake.people.enrol import enrol
from autograder.intake.people.worksheet import enrol_worksheet, worksheet_form
from autograder.intake.roster import read_roster
from tests.corpus.conftest import release

FILES = Path(__file__).parent
CHAPTER = "03_scaled_dot_product"
TEAMS = f"[chapters.{CHAPTER}]\ngroups = true\n"


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course in which the chapter is released. Do not write into it."""
    root = tmp_path_factory.mktemp("moodle") / "course"
    release(root, {CHAPTER: ("soft_lookup", "causal_mask", "padding_mask")}, wheels=False)
    return root


@pytest.fixture
def course(pristine: Path, tmp_path: Path) -> Course:
    """A course of one's own, with Moodle's list of participants."""
    course = Course.open(Path(shutil.copytree(pristine, tmp_path / "course")))
    enrol(course, FILES / "participants_en.csv")
    return course


def told(collection: Collection) -> list[str]:
    return sorted(f"{problem.kind}: {problem.where}" for problem in collection.problems)


def holders(course: Course) -> list[str]:
    return sorted(path.parent.name for path in course.folder("submitted").glob(f"*/{CHAPTER}"))


def test_a_teams_work_is_its_members_and_no_participant_has_the_teams_number(course: Course) -> None:
    enrol_worksheet(course, FILES / "worksheet_teams_en.csv", CHAPTER)
    course_file_path(course.root).write_text(TEAMS)
    collected = collect(course, CHAPTER, FILES / "teams_folders_cut.zip")
    assert told(collected) == []
    # Team 5; Team_2 Ünï; Team Z, whose number is that of a participant of another team; students without a team.
    assert holders(course) == ["dora-draft", "emil-leer", "john-smith-jr", "u96f7-u674e"]
    roster = read_roster(course)
    assert {name: roster[name].uploads[CHAPTER] for name in holders(course)} == {
        "dora-draft": "Team Z_100",
        "emil-leer": "Default group",
        "john-smith-jr": "Team 5_7",
        "u96f7-u674e": "Team 2 Ünï_4",
    }
    members = group_submitters(course, CHAPTER, roster, holders(course))
    assert members == {
        "maria-del-carmen-garcia-lopez-hernandez": "john-smith-jr",
        "nora-nichts": "emil-leer",
        "petra-papier": "dora-draft",
        "van-a-nguyen": "u96f7-u674e",
    }
    grades = {grade.student: grade for grade in read_grades(course, [CHAPTER])}
    waiting = {name: grade.moodle_id for name, grade in grades.items() if grade.waits_for == "grading"}
    assert waiting == {
        "dora-draft": "101",
        "petra-papier": "108",
        "john-smith-jr": "112",
        "maria-del-carmen-garcia-lopez-hernandez": "111",
        "emil-leer": "88",
        "nora-nichts": "90",
        "u96f7-u674e": "87",
        "van-a-nguyen": "109",
    }
    # Another list of the class, with all groups of everybody, and a second collection: nobody's grade moves.
    enrol(course, FILES / "participants_en.csv")
    again = collect(course, CHAPTER, FILES / "teams_folders_cut.zip")
    assert (again.new, again.replaced, read_grades(course, [CHAPTER])) == ([], [], list(grades.values()))


def test_without_a_worksheet_nobody_has_a_number_that_grades_go_back_to(pristine: Path, tmp_path: Path) -> None:
    course = Course.open(Path(shutil.copytree(pristine, tmp_path / "course")))
    collect(course, CHAPTER, FILES / "teams_folders_cut.zip")
    grades = read_grades(course, [CHAPTER])
    assert len(grades) == 4
    assert {grade.moodle_id for grade in grades} == {""}


def test_teams_are_refused_where_everybody_hands_in_alone(course: Course) -> None:
    enrol_worksheet(course, FILES / "worksheet_teams_en.csv", CHAPTER)
    with pytest.raises(CourseError) as error:
        collect(course, CHAPTER, FILES / "teams_folders_cut.zip")
    assert "groups = true" in error.value.do
    assert holders(course) == []


def test_a_draft_is_not_brought_in_and_an_extension_counts(course: Course) -> None:
    course_file_path(course.root).write_text(
        "# ours\ntime_zone = 'Europe/Warsaw'\n[chapters.03]\ndue = 2026-11-16T23:59:00\n"
    )
    sheet = enrol_worksheet(course, FILES / "worksheet_en.csv", CHAPTER)
    anna = next(name for name, student in read_roster(course).items() if student.number == "300105")
    assert list(sheet.extended) == [anna]
    assert read_course_file(course.root).due(CHAPTER, anna) == datetime(
        2026, 11, 20, 23, 59, tzinfo=ZoneInfo("Europe/Warsaw")
    )
    assert "# ours" in course_file_path(course.root).read_text()
    assert enrol_worksheet(course, FILES / "worksheet_en.csv", CHAPTER).extended == {}
    collected = collect(course, CHAPTER, FILES / "individual_folders_cut.zip")
    assert told(collected) == [
        "draft: Dora Draft_4_assignsubmission_file/03_scaled_dot_product.ipynb",
        "no notebook: Sukarno -_18_assignsubmission_onlinetext/onlinetext.html",
    ]
    assert "dora-draft" not in holders(course)
    assert anna in holders(course)
    dora = next(grade for grade in read_grades(course, [CHAPTER]) if grade.student == "dora-draft")
    assert (dora.handed_in, dora.waits_for) == (True, "hand-in")
    # A list of groups for the chapter tells nothing of drafts.
    (course.root / "groups.csv").write_text("email,name,group\ndraftonly@example.org,Dora Draft,Team Z\n")
    enrol_worksheet(course, course.root / "groups.csv", CHAPTER)
    dora = read_roster(course)["dora-draft"]
    assert (dora.drafts, dora.teams) == ((CHAPTER,), {CHAPTER: "Team Z"})


@pytest.mark.parametrize("worksheet", [False, True])
def test_names_are_found_without_the_signs_that_moodle_leaves_out(course: Course, worksheet: bool) -> None:
    if worksheet:
        enrol_worksheet(course, FILES / "worksheet_en.csv", CHAPTER)
    collect(course, CHAPTER, FILES / "individual_folders_cut.zip")
    assert {"sean-o-brien", "kim-lee-park", "john-smith-jr", "dwayne-the-rock-johnson"} <= set(holders(course))
    assert ("dora-draft" in holders(course)) != worksheet


def test_a_worksheet_in_another_language_is_read_and_goes_back_in_it(course: Course, tmp_path: Path) -> None:
    sheet = enrol_worksheet(course, FILES / "worksheet_de.csv", CHAPTER)
    assert (len(sheet.times), sheet.enrolment.added, sheet.enrolment.problems) == (27, (), ())
    assert {student.participants[CHAPTER] for student in read_roster(course).values()} == set(map(str, range(1, 29)))
    form = worksheet_form(course, CHAPTER)
    assert form == WorksheetForm("ID", "Teilnehmer/in", "Bewertung", "Zuletzt geändert (Bewertung)", 21.0)
    jose = next(grade for grade in read_grades(course, [CHAPTER]) if grade.email == "jnunez@example.org")
    (written,) = export([replace(jose, handed_in=True, raw=15.5)], "moodle", tmp_path, forms={CHAPTER: form})
    (row,) = csv.DictReader(written.path.open(encoding="utf-8"))
    assert (row["ID"], row["Bewertung"], row["Zuletzt geändert (Bewertung)"]) == ("Teilnehmer/in6", "15.50", "")
    assert "21" in "".join(other_maxima([jose], {CHAPTER: form}))
