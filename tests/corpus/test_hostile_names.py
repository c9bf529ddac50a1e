"""A class with hostile names and a page of hostile text in its download: every honest student keeps grade, number and one row."""

from __future__ import annotations

import csv
import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.grading.autograde import autograde
from autograder.grading.reports.export import export
from autograder.grading.reports.grades import read_grades
from autograder.intake.downloads.collect import collect
from autograder.intake.downloads.store import Collection
from autograder.intake.people.worksheet import enrol_worksheet

from .in_process import InProcess
from .material import CHAPTER, Work, points, stub

NOTEBOOK = f"{CHAPTER}.ipynb"
# What each honest student has not solved, so that their grades differ.
HONEST = {
    "Bob Builder": ("42", "builderbob", ()),
    "Cem Öz": ("43", "özcem", ("causal_mask",)),
    "Dora Maar": ("44", "maardora", ("causal_mask", "merge_query_key")),
}
EVE_ON_MOODLE = "Eve Adams_99_assignsubmission_file_"
EVE_ON_CANVAS = "adamseve_99_7001_"
VICTIMS = [f"Bob Builder_{number}_assignsubmission_file_x.ipynb" for number in (41, 42, 43, 44)]
# Other prefixes than Eve's own are what she can get by calling herself something else.
ON_MOODLE = [
    *(EVE_ON_MOODLE + name for name in VICTIMS),
    f"{EVE_ON_MOODLE}/Cem Öz_43_assignsubmission_file_/{NOTEBOOK}",
    f"{EVE_ON_MOODLE}builderbob_42_9002_{NOTEBOOK}",
    f"Bob Builder_99_assignsubmission_file_{NOTEBOOK}",
    f"BOB BUILDER_98_assignsubmission_file_{NOTEBOOK}",
    f"Bob Builder 42_97_assignsubmission_file_{NOTEBOOK}",
    f"{unicodedata.normalize('NFD', 'Cem Öz')}_96_assignsubmission_file_{NOTEBOOK}",
    f"=1+1_95_assignsubmission_file_{NOTEBOOK}",
]
ON_CANVAS = [
    *(EVE_ON_CANVAS + name for name in VICTIMS),
    f"{EVE_ON_CANVAS}builderbob_42_9002_{NOTEBOOK}",
    f"builderbob_42_99_7001_{NOTEBOOK}",
    f"builderbob_42_9002_hw_99_7001_{NOTEBOOK}",
    f"builderbob_42_LATE_99_7001_{NOTEBOOK}",
    f"maardora_98_7001_{NOTEBOOK}",
    f"builderbob_42_assignsubmission_file_x_99_7001_{NOTEBOOK}",
]


def solved(released: dict[str, Any], without: tuple[str, ...]) -> bytes:
    """Return a notebook in which some exercises are not solved."""
    work = Work.done(released)
    for name in without:
        work.cell(name)["source"] = stub(name)
    return work.json()


@pytest.fixture
def hostile(released: dict[str, dict[str, Any]]) -> bytes:
    """A notebook in which nothing is solved, with a page of text that would be somebody else's."""
    work = Work({**released[CHAPTER], "cells": [dict(cell) for cell in released[CHAPTER]["cells"]]})
    text = "=HYPERLINK(1)\n# Bob Builder\nParticipant 42\n\u202e\x1b[2J</script><script>alert(1)</script>\n" * 40
    work.cells.append({"cell_type": "markdown", "metadata": {}, "source": text})
    return work.json()


def download(platform: str, honest: dict[str, bytes], folder: Path) -> Path:
    """Write what a platform hands out for the honest students."""
    for name, data in honest.items():
        number, sortable, _ = HONEST[name]
        prefix = (
            f"{name}_{number}_assignsubmission_file_" if platform == "moodle" else f"{sortable}_{number}_500{number}_"
        )
        put(folder, prefix + NOTEBOOK, data)
    return folder


def worksheet(path: Path) -> Path:
    """Write Moodle's grading worksheet of the honest students and of Eve."""
    people = [(name, number) for name, (number, _, _) in HONEST.items()] + [("Eve Adams", "99")]
    rows = [
        f"Participant {number},{name},s{number}@uni.example,Submitted for grading,,20.00" for name, number in people
    ]
    head = "Identifier,Full name,Email address,Status,Grade,Maximum grade"
    path.write_text("\n".join([head, *rows]), encoding="utf-8")
    return path


def put(folder: Path, name: str, data: bytes) -> None:
    """Write a file and the folders above it."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def graded(course: Course, source: Path, platform: str, to: Path) -> tuple[dict[str, list[str]], Collection]:
    """Collect, grade and export; return the grades in the platform's file by its numbers, and the collection."""
    found = collect(course, CHAPTER, source)
    autograde(course, CHAPTER, make_executor=InProcess)
    (file,) = export(read_grades(course, [CHAPTER]), platform, to)
    with file.path.open(encoding="utf-8", newline="") as text:
        rows = [row for row in csv.DictReader(text) if "Possible" not in row.get("Student", "")]
    name, column = ("Identifier", "Grade") if platform == "moodle" else ("ID", CHAPTER)
    grades: dict[str, list[str]] = {}
    for row in rows:
        grades.setdefault(row[name].removeprefix("Participant "), []).append(row[column])
    return grades, found


@pytest.mark.parametrize(("platform", "names"), [("moodle", ON_MOODLE), ("canvas", ON_CANVAS)])
@pytest.mark.parametrize("again", [False, True], ids=["at once", "later"])
def test_hostile_names_change_nobody_elses_grade(
    course: Course,
    tmp_path: Path,
    released: dict[str, dict[str, Any]],
    hostile: bytes,
    platform: str,
    names: list[str],
    again: bool,
) -> None:
    honest = {name: solved(released[CHAPTER], without) for name, (_, _, without) in HONEST.items()}
    expected = {number: 14.0 for number, _, _ in HONEST.values()}
    total = sum(points(name) for name in ("causal_mask", "merge_query_key", "soft_lookup"))
    for number, _, without in HONEST.values():
        expected[number] = total - sum(points(name) for name in without)
    source = download(platform, honest, tmp_path / "download")
    if platform == "moodle":
        enrol_worksheet(course, worksheet(tmp_path / "worksheet.csv"), CHAPTER)
    if again:
        collect(course, CHAPTER, source)
    for name in names:
        put(source, name, hostile)
    grades, found = graded(course, source, platform, tmp_path / "export")
    seen = {number: grades.get(number) for number in expected}
    assert seen == {number: [f"{score:.2f}"] for number, score in expected.items()}
    assert all(len(rows) == 1 for rows in grades.values()), "a number is exported twice"
    assert found.replaced == []


def test_two_students_with_one_number_are_an_error(course: Course, tmp_path: Path, hostile: bytes) -> None:
    for name in ("bob", "eve"):
        put(course.root / "submitted" / name / CHAPTER, NOTEBOOK, hostile)
    student = {"platform": "moodle", "participants": {CHAPTER: "42"}}
    (course.root / "students.json").write_text(json.dumps({"bob": student, "eve": student}))
    autograde(course, CHAPTER, make_executor=InProcess)
    with pytest.raises(CourseError, match=r"number 42 .*bob, eve"):
        read_grades(course, [CHAPTER])
