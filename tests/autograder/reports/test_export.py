"""Exports have the columns that each platform defines, and nothing that breaks its import."""

import csv
from dataclasses import replace

import pytest

from autograder.errors import CourseError
from autograder.reports.export import export


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


@pytest.fixture
def grades(works, make_grade):
    return [work.grade for work in works] + [make_grade("s1", 7.0, chapter="04_multi_head")]


def test_csv_has_nbgraders_columns_and_the_score_after_the_penalty(grades, tmp_path):
    (path,) = export(grades, "csv", tmp_path)
    header, *rows = read(path)
    assert header[:11] == (
        ["assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email", "raw_score", "late_submission_penalty", "score", "max_score"]
    )
    late = dict(zip(header, rows[1], strict=True))
    assert (late["raw_score"], late["late_submission_penalty"], late["score"]) == ("6.0", "1.0", "5.0")
    assert len(rows) == 5


def test_canvas_has_one_row_a_student_and_a_row_of_points_possible(grades, tmp_path):
    (path,) = export(grades, "canvas", tmp_path)
    header, possible, *rows = read(path)
    assert header == [
        "Student",
        "ID",
        "SIS User ID",
        "SIS Login ID",
        "Section",
        "03_scaled_dot_product",
        "04_multi_head",
    ]
    assert possible == ["    Points Possible", "", "", "", "", "10.00", "10.00"]
    assert rows[0] == ["Lovelace, Ada", "11", "", "s1", "", "10.00", "7.00"]
    assert [row[3] for row in rows] == ["s1", "s2", "s3", "s4"]


def test_canvas_leaves_missing_work_empty_rather_than_zero(grades, tmp_path):
    (path,) = export(grades, "canvas", tmp_path)
    assert read(path)[-1][5:] == ["", ""]


def test_moodle_has_a_worksheet_a_chapter_with_moodles_identifiers(grades, tmp_path):
    first, second = export(grades, "moodle", tmp_path)
    header, *rows = read(first)
    assert header == [
        "Identifier",
        "Full name",
        "Email address",
        "Status",
        "Grade",
        "Maximum grade",
        "Grade can be changed",
        "Feedback comments",
    ]
    assert rows[1][:6] == [
        "Participant 12",
        "Émilie du Châtelet",
        "s2@example.org",
        "Submitted for grading",
        "5.00",
        "10.00",
    ]
    assert rows[2][7] == "Some questions wait for manual grading."
    assert second.name == "moodle-04_multi_head.csv"


def test_a_name_cannot_become_a_formula_in_a_spreadsheet(tmp_path, make_grade):
    (path,) = export([replace(make_grade("s1", 1.0), first_name="=HYPERLINK(1)", last_name="")], "csv", tmp_path)
    assert "'=HYPERLINK(1)" in read(path)[1]


def test_commas_and_quotes_in_names_survive(tmp_path, make_grade):
    (path,) = export([make_grade("s1", 1.0, name=('Ann "A", B', "Li, Wei"))], "csv", tmp_path)
    assert read(path)[1][4:6] == ["Li, Wei", 'Ann "A", B']


def test_an_unknown_format_names_those_that_exist(tmp_path):
    with pytest.raises(CourseError, match="csv, canvas, moodle"):
        export([], "excel", tmp_path)


def test_a_folder_that_is_a_file_is_refused_with_advice(grades, tmp_path):
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(CourseError, match="--to"):
        export(grades, "csv", tmp_path / "taken")
    assert (tmp_path / "taken").read_text() == "mine"
