"""Blind marking on a real Moodle: numbers are enough to grade, export and give feedback, and the names come with a later worksheet."""

from __future__ import annotations

import csv
import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from autograder.course.folder import Course
from autograder.intake.downloads.student_ids import assign_students
from autograder.intake.people.worksheet import enrol_worksheet
from autograder.intake.roster import read_roster
from tests.autograder.enrolment.conftest import moodle

from .conftest import CHAPTER, FILES
from .test_semester import ALONE, Term, read

BLIND = FILES / "worksheet_blind_en.csv"
DOWNLOAD = FILES / "blind_folders_cut.zip"
POINTS = {"participant-35": 3.0, "participant-38": 2.0}


@pytest.fixture
def term(pristine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Term:
    term = Term(Path(shutil.copytree(pristine, tmp_path / "course")), monkeypatch)
    (term.root / "course.toml").write_text(ALONE)
    return term


def named(path: Path) -> dict[str, str]:
    """Write the worksheet that Moodle gives after the names are revealed; return the numbers by email address."""
    people = read(FILES / "worksheet_en.csv")
    rows = [{**person, **blind} for person, blind in zip(people, read(BLIND), strict=True)]
    rows[0]["Status"] = "Submitted for grading - Extension granted until: Friday, 20 November 2026, 11:59 PM -  - "
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(people[0]))
        writer.writeheader()
        writer.writerows(rows)
    return {row["Email address"]: row["Identifier"] for row in rows}


def roster(term: Term) -> dict[str, dict[str, Any]]:
    students: dict[str, dict[str, Any]] = json.loads((term.root / "students.json").read_text(encoding="utf-8"))
    return students


def exported(term: Term, folder: Path) -> dict[str, str]:
    term.run("export", "--format", "moodle", "--to", folder)
    return {row["Identifier"]: row["Grade"] for row in read(folder / f"moodle-{CHAPTER}.csv")}


def graded_blindly(term: Term) -> None:
    """Read the blind worksheet, grade the download, and give points to the one who handed in no notebook."""
    assert term.run("students", BLIND, "--chapter", "03")[0] == 0
    with (term.root / "course.toml").open("a") as plan:
        plan.write("[extensions.participant-35]\n03 = 2026-11-20T23:59:00\n")
    assert term.grade(POINTS, "--submissions", DOWNLOAD) == 1
    assert term.run("decide", "participant-29", "03", "1.5", "wrote a text")[0] == 0


@pytest.mark.parametrize("class_list", [True, False])
def test_numbers_are_enough_and_names_come_later(term: Term, tmp_path: Path, class_list: bool) -> None:
    if class_list:
        term.run("students", FILES / "participants_en.csv")
    graded_blindly(term)
    # Participant 35 is late by a day and ten hours, with an extension. Nobody on the list is missed by name; the work of 22 is not here.
    grades = {"Participant 35": "3.00", "Participant 38": "2.00", "Participant 29": "1.50"}
    assert exported(term, tmp_path / "blind") == grades
    code, text = term.run("report", "--json")
    (chapter,) = json.loads(text)["chapters"]
    assert (code, len(chapter["absent"])) == (1, 3)
    assert all(name.startswith("participant-") for name in chapter["absent"])
    assert term.run("export", "--feedback", "moodle", "--to", tmp_path / "pages")[0] == 0
    (archive,) = (tmp_path / "pages").glob("*.zip")
    numbers = {Path(name).parts[0].split("_")[1] for name in zipfile.ZipFile(archive).namelist()}
    assert {"35", "38"} <= numbers
    identifiers = named(tmp_path / "named.csv")
    assert term.run("students", tmp_path / "named.csv", "--chapter", "03")[0] == 0
    people = roster(term)
    assert len(people) == 28
    assert not any(student.get("blind") for student in people.values())
    assert {one["email"]: f"Participant {one['participants'][CHAPTER]}" for one in people.values()} == identifiers
    assert class_list != any(name.startswith("participant-") for name in people)
    assert exported(term, tmp_path / "names") == grades
    owners = {name for name, one in people.items() if one["participants"][CHAPTER] in ("35", "38")}
    assert {path.parents[1].name for path in term.root.glob(f"feedback/*/{CHAPTER}/*.html")} == owners
    assert owners <= {path.stem for path in term.root.glob(f"results/{CHAPTER}/*.json")}
    # Nothing comes a second time, neither from the blind download nor from the blind worksheet.
    before = sorted(term.root.glob("submitted/*/*"))
    points = {name: POINTS.get(f"participant-{one['participants'][CHAPTER]}", 0) for name, one in people.items()}
    term.grade(points, "--submissions", DOWNLOAD)
    assert term.run("students", BLIND, "--chapter", "03")[0] == 0
    assert (sorted(term.root.glob("submitted/*/*")), set(roster(term))) == (before, set(people))
    assert exported(term, tmp_path / "again") == grades


def test_a_download_that_is_collected_before_its_worksheet(term: Term, tmp_path: Path) -> None:
    term.run("students", FILES / "participants_en.csv")
    assert term.grade(POINTS, "--submissions", DOWNLOAD) == 1
    assert term.run("students", BLIND, "--chapter", "03")[0] == 0
    assert {"participant-29", *POINTS} <= roster(term).keys()
    assert exported(term, tmp_path / "blind") == {"Participant 35": "2.40", "Participant 38": "2.00"}


def test_the_word_for_a_participant_is_the_worksheets(course: Course, tmp_path: Path) -> None:
    rows = [list(row.values()) for row in read(FILES / "worksheet_de.csv")]
    header = list(read(FILES / "worksheet_de.csv")[0])
    with (tmp_path / "blind_de.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([line[:1] + line[4:] for line in [header, *rows]])
    sheet = enrol_worksheet(course, tmp_path / "blind_de.csv", CHAPTER)
    kinds = [problem.kind for problem in sheet.enrolment.problems]
    assert (len(sheet.enrolment.added), kinds, len(sheet.times)) == (28, ["extension"], 27), "there is no deadline yet"
    # Moodle drops the slash from the names of folders.
    owned, problems = assign_students(
        [moodle("Teilnehmerin", "6"), moodle("Teilnehmerin", "15")], read_roster(course), CHAPTER
    )
    assert ({name: one.upload for name, (one,) in owned.items()}, problems) == (
        {"teilnehmer-in6": "6", "teilnehmer-in15": "15"},
        [],
    )
