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
from autograder.grading.reports.export import export
from autograder.grading.reports.grades import read_grades
from autograder.grading.reports.moodle import last_worksheets, maximum_messages, record_worksheets, scale_grades
from autograder.intake.downloads.collect import collect
from autograder.intake.downloads.store import Collection
from autograder.intake.people.class_list import WorksheetForm
from autograder.intake.people.enrol import enrol
from autograder.intake.people.standing import group_submitters
from autograder.intake.people.worksheet import enrol_worksheet, worksheet_form
from autograder.intake.roster import read_roster

from .conftest import CHAPTER, FILES

TEAMS = f"[chapters.{CHAPTER}]\ngroups = true\n"


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


def test_the_worksheet_of_another_assignment_is_refused(course: Course) -> None:
    enrol_worksheet(course, FILES / "worksheet_teams_en.csv", CHAPTER)
    before = read_roster(course)
    with pytest.raises(CourseError, match=CHAPTER):
        enrol_worksheet(course, FILES / "worksheet_en.csv", CHAPTER)
    assert read_roster(course) == before


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
    dry = enrol_worksheet(course, FILES / "worksheet_en.csv", CHAPTER, dry_run=True)
    assert anna in dry.timed
    assert dry.timed == enrol_worksheet(course, FILES / "worksheet_en.csv", CHAPTER).timed
    dora = next(grade for grade in read_grades(course, [CHAPTER]) if grade.student == "dora-draft")
    assert (dora.handed_in, dora.waits_for) == (True, "hand-in")
    # A list of groups for the chapter tells nothing of drafts.
    (course.root / "groups.csv").write_text("email,name,group\ndraftonly@example.org,Dora Draft,Team Z\n")
    enrol_worksheet(course, course.root / "groups.csv", CHAPTER)
    dora = read_roster(course)["dora-draft"]
    assert (dora.drafts, dora.teams) == ((CHAPTER,), {CHAPTER: "Team Z"})


def test_a_worksheet_changes_no_name_that_two_columns_gave_and_names_whom_it_adds(
    course: Course, tmp_path: Path
) -> None:
    assert enrol_worksheet(course, FILES / "worksheet_en.csv", CHAPTER).enrolment.added == ()
    john = read_roster(course)["john-smith-jr"]
    assert (john.name, john.first_and_last_name) == ("John Smith, Jr.", ("John", "Smith, Jr."))
    # Teachers stand in no worksheet.
    with_teachers = enrol(course, FILES / "participants_en_with_teachers.csv")
    assert len(with_teachers.added) == 3
    sheet = enrol_worksheet(course, FILES / "worksheet_en.csv", CHAPTER)
    assert (sheet.enrolment.absent, sheet.enrolment.unchanged) == (
        with_teachers.added,
        tuple(sorted(sheet_people(course))),
    )


def sheet_people(course: Course) -> list[str]:
    return [name for name, student in read_roster(course).items() if CHAPTER in student.participants]


def test_rows_of_another_role_than_most_are_left_out_and_named(course: Course, tmp_path: Path) -> None:
    rows = ["First name,Last name,Email address,Roles", "Ann,New,new@x.example,Student"]
    rows += [f"Stu{n},Dent,s{n}@x.example,Student" for n in range(3)]
    rows += ["Tea,Cher,t@x.example,Teacher", 'Tu,Tor,u@x.example,"Student, Tutor"']
    (tmp_path / "p.csv").write_text("\n".join(rows), encoding="utf-8")
    enrolment = enrol(course, tmp_path / "p.csv")
    assert [(problem.kind, problem.where) for problem in enrolment.problems] == [("other role", "p.csv, line 6")]
    assert enrolment.added == ("ann-new", "stu0-dent", "stu1-dent", "stu2-dent", "tu-tor")


def test_of_several_groups_in_one_cell_the_smallest_hands_in(course: Course) -> None:
    course_file_path(course.root).write_text(TEAMS)
    mates = group_submitters(course, CHAPTER, read_roster(course), ["jose-nunez"])
    assert mates == {"sean-o-brien": "jose-nunez"}


@pytest.mark.parametrize("worksheet", [False, True])
def test_names_are_found_without_the_signs_that_moodle_leaves_out(course: Course, worksheet: bool) -> None:
    if worksheet:
        enrol_worksheet(course, FILES / "worksheet_en.csv", CHAPTER)
    collect(course, CHAPTER, FILES / "individual_folders_cut.zip")
    assert {"sean-o-brien", "kim-lee-park", "john-smith-jr", "dwayne-the-rock-johnson"} <= set(holders(course))
    assert ("dora-draft" in holders(course)) != worksheet


def test_a_worksheet_in_another_language_is_read_and_goes_back_in_it(course: Course, tmp_path: Path) -> None:
    sheet = enrol_worksheet(course, FILES / "worksheet_de.csv", CHAPTER)
    assert (len(sheet.times), sheet.enrolment.added) == (27, ())
    assert [problem.kind for problem in sheet.enrolment.problems] == ["extension"], "there is no deadline yet"
    assert {student.participants[CHAPTER] for student in read_roster(course).values()} == set(map(str, range(1, 29)))
    form = worksheet_form(course, CHAPTER)
    assert form == WorksheetForm("ID", "Teilnehmer/in", "Bewertung", "Zuletzt geändert (Bewertung)", 21.0)
    jose = next(grade for grade in read_grades(course, [CHAPTER]) if grade.email == "jnunez@example.org")
    (written,) = export(
        [replace(jose, handed_in=True, waits_for="", raw=15.5)], "moodle", tmp_path, forms={CHAPTER: form}
    )
    (row,) = csv.DictReader(written.path.open(encoding="utf-8"))
    assert (row["ID"], row["Bewertung"], row["Zuletzt geändert (Bewertung)"]) == ("Teilnehmer/in6", "15.50", "")
    assert "21" in "".join(maximum_messages([jose], {CHAPTER: form}))


def test_moodle_gets_two_decimals_the_rest_of_the_course_and_what_has_changed(course: Course, tmp_path: Path) -> None:
    enrol_worksheet(course, FILES / "worksheet_en.csv", CHAPTER)
    form = replace(worksheet_form(course, CHAPTER), maximum=98.0)
    some = [
        replace(grade, handed_in=True, waits_for="", best=21.0)
        for grade in read_grades(course, [CHAPTER])
        if grade.moodle_id
    ]
    jose, petra, *_ = (replace(grade, raw=16.497) for grade in some)
    lost = replace(jose, chapter="01_recurrent", moodle_id="", email="", number="")
    first = export([jose, petra, lost], "moodle", tmp_path, forms={CHAPTER: form})
    assert [(one.path.name, len(one.students), len(one.left_out)) for one in first] == [
        ("moodle-import-01_recurrent.csv", 0, 1),
        (f"moodle-{CHAPTER}.csv", 2, 0),
    ]
    assert record_worksheets(course, [jose, petra], {one.path.name: one.students for one in first}, {}) == []
    before = last_worksheets(course, [CHAPTER])
    assert before == {CHAPTER: {jose.moodle_id: "16.50", petra.moodle_id: "16.50"}}
    (gone,) = record_worksheets(course, [jose], {f"moodle-{CHAPTER}.csv": [jose.student]}, before)
    assert f" {petra.moodle_id}." in gone
    assert last_worksheets(course, [CHAPTER]) == {CHAPTER: {jose.moodle_id: "16.50"}}
    better = scale_grades([jose, replace(petra, raw=21.0, penalty=10.5)], {CHAPTER: form})
    assert [(grade.score, grade.best) for grade in better] == [(pytest.approx(16.497 / 21 * 98), 98.0), (49.0, 98.0)]
    again = export([jose, replace(petra, raw=18.0)], "moodle", tmp_path, forms={CHAPTER: form}, last=before)
    assert [(one.path.name, one.students) for one in again] == [
        (f"moodle-{CHAPTER}.csv", tuple(sorted([jose.student, petra.student]))),
        (f"moodle-{CHAPTER}-changed.csv", (petra.student,)),
    ]
    export([jose, petra], "moodle", tmp_path, forms={CHAPTER: form}, last=before)
    assert not (tmp_path / f"moodle-{CHAPTER}-changed.csv").exists()
    export([jose], "csv", tmp_path)
    assert (tmp_path / "grades.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    (row,) = csv.DictReader((tmp_path / "grades.csv").open(encoding="utf-8-sig"))
    assert (row["score"], row["max_score"]) == ("16.50", "21.00")
