"""Exports have the columns that each platform reads, and nothing that breaks its import or takes something away there."""

import csv
import io
import re
from dataclasses import replace
from datetime import datetime

import pytest

from autograder.errors import CourseError
from autograder.grading.reports.export import absent_grades, absent_lines, empty_chapters_message, export
from autograder.grading.reports.spreadsheet import csv_text, safe_cell

NBGRADER = ["assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email", "raw_score"]
NBGRADER += ["late_submission_penalty", "score", "max_score", "needs_manual_grade", "decided_by_hand"]
CANVAS = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
CHANGED = "Last modified (grade)"


def read(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


@pytest.fixture
def grades(works, make_grade):
    mine = [work.grade for work in works if work.recorded]
    return [*mine, make_grade("s1", 7.0, chapter="04_multi_head")]


@pytest.fixture
def on_canvas(grades):
    return [replace(grade, platform="canvas", canvas_id=f"90{grade.student[-1]}") for grade in grades]


@pytest.fixture
def on_moodle(grades):
    # A participant's number belongs to one assignment: the same student has another one in the next chapter.
    return [replace(grade, platform="moodle", moodle_id=f"{grade.chapter[1]}5{grade.student[-1]}") for grade in grades]


def test_canvas_finds_students_of_other_origin_by_their_login(grades, tmp_path):
    rows = [row for file in export(grades, "canvas", tmp_path) for row in read(file.path)[2:]]
    assert [row[1:4] for row in rows] == [["", "", student] for student in ("s1", "s2", "s3", "s5")]


def test_a_table_of_an_earlier_export_does_not_stay_beside_the_new_ones(on_canvas, tmp_path):
    export(on_canvas, "canvas", tmp_path)
    assert len(list(tmp_path.glob("canvas*.csv"))) == 2
    export([grade for grade in on_canvas if grade.chapter == "03_scaled_dot_product"], "canvas", tmp_path / "other")
    export([grade for grade in on_canvas if grade.student == "s1"], "canvas", tmp_path)
    assert [path.name for path in tmp_path.glob("canvas*.csv")] == ["canvas.csv"]


def test_csv_says_that_its_times_are_in_utc_and_shows_exact_decimals(grades, tmp_path):
    one = replace(grades[0], submitted=datetime(2026, 10, 24, 17, 50), due=None, raw=53.01 + 2.01, penalty=0.0)
    assert str(one.raw) == "55.019999999999996"
    (file,) = export([one], "csv", tmp_path)
    header, row = read(file.path)
    shown = dict(zip(header, row, strict=True))
    assert header == NBGRADER
    assert (shown["timestamp"], shown["duedate"]) == ("2026-10-24 17:50:00+00:00", "")
    assert (shown["raw_score"], shown["score"]) == ("55.02", "55.02")


def test_canvas_has_its_own_headings_and_the_numbers_of_the_class_list(on_canvas, tmp_path):
    listed = [replace(grade, number="s0011", login="aberg", section="A") for grade in on_canvas]
    file, *_ = export(listed, "canvas", tmp_path, columns={"03_scaled_dot_product": "Sheet 3 (88121)"})
    header, possible, first, *_ = read(file.path)
    assert header == [*CANVAS, "Sheet 3 (88121)", "04_multi_head"]
    assert possible == ["    Points Possible", "", "", "", "", "10.00", "10.00"]
    assert first[1:6] == ["901", "s0011", "aberg", "A", "10.00"]


def test_moodle_keeps_its_comments_and_the_grades_that_it_has(on_moodle, tmp_path):
    header, *rows = read(export(on_moodle, "moodle", tmp_path)[0].path)
    # An empty comment would be taken for a new one; an empty date means that Moodle overwrites nothing without being told to.
    assert "Feedback comments" not in header
    assert {row[header.index(CHANGED)] for row in rows} == {""}


def test_moodle_gets_no_row_without_a_participants_number_and_the_student_is_named(on_moodle, tmp_path):
    unknown = [replace(grade, moodle_id="") if grade.student == "s2" else grade for grade in on_moodle]
    first, second = export(unknown, "moodle", tmp_path)
    assert first.left_out == ("s2",)
    assert "s2" not in first.students
    assert second.left_out == ()


def test_the_same_grades_give_the_same_bytes_in_any_order(on_canvas, tmp_path):
    ones = export(on_canvas, "canvas", tmp_path / "one")
    others = export(on_canvas[::-1], "canvas", tmp_path / "other")
    assert [(one.path.name, one.path.read_bytes()) for one in ones] == [
        (other.path.name, other.path.read_bytes()) for other in others
    ]


def test_what_could_not_be_graded_is_in_nbgraders_columns_without_a_number(grades, refused, tmp_path):
    (file,) = export([*grades, refused.grade], "csv", tmp_path)
    (row,) = (row for row in read(file.path) if "s7" in row)
    assert (row[NBGRADER.index("score")], "s7" in file.students) == ("", True)


@pytest.mark.parametrize("form", ["csv", "canvas", "moodle"])
def test_a_chapter_of_which_nothing_was_handed_in_is_in_no_file_and_named(
    on_canvas, on_moodle, tmp_path, make_grade, form
):
    grades = on_moodle if form == "moodle" else on_canvas
    empty = [make_grade(student, 0.0, handed_in=False, chapter="05_transformer") for student in ("s1", "s2")]
    files = export([*grades, *empty], form, tmp_path / "with")
    same = export(grades, form, tmp_path / "without")
    assert [file.path.read_bytes() for file in files] == [file.path.read_bytes() for file in same]
    assert empty_chapters_message([*grades, *empty]).endswith(": 05_transformer")
    assert empty_chapters_message(grades) == ""


def test_a_chapter_of_which_nothing_could_be_graded_gets_no_column_on_canvas(on_canvas, tmp_path, make_grade):
    refused = make_grade("s1", 0.0, chapter="05_transformer", gradable=False)
    for file in export([*on_canvas, refused], "canvas", tmp_path):
        assert "05_transformer" not in read(file.path)[0]


def test_who_handed_in_nothing_is_named_with_what_the_file_has(grades, tmp_path, make_grade):
    absent = make_grade("s9", 0.0, handed_in=False, name=("=cmd()", "X"))
    elsewhere = make_grade("s9", 0.0, handed_in=False, chapter="05_transformer")
    everybody = [*grades, absent, elsewhere]
    assert absent in absent_grades(everybody)
    assert elsewhere not in absent_grades(everybody)
    (line,) = absent_lines([grades[0], absent], "csv")
    assert re.fullmatch("03_scaled_dot_product: 1 .*: =cmd\\(\\) X", line)
    (many,) = absent_lines([grades[0], *(replace(absent, student=f"s{n}") for n in range(12))], "canvas")
    assert many.endswith(" and 2 more")


@pytest.mark.parametrize(
    ("form", "who", "says"),
    [
        ("excel", "all", "csv, canvas, moodle"),
        ("moodle", "on Canvas", "Moodle"),
        ("csv", "absent", "handed in"),
        ("canvas", "not gradable", "has a grade"),
        ("moodle", "not gradable", "has a grade"),
        ("csv", "a file", "--to"),
    ],
)
def test_what_would_make_no_file_is_refused_and_writes_nothing(
    works, grades, on_canvas, refused, tmp_path, form, who, says
):
    given = {"on Canvas": on_canvas, "absent": [works[3].grade], "not gradable": [refused.grade]}
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(CourseError, match=says):
        export(given.get(who, grades), form, tmp_path / ("taken" if who == "a file" else "out"))
    assert not (tmp_path / "out").exists()
    assert (tmp_path / "taken").read_text() == "mine"


FORMULAS = [
    *(f"{sign}1+1" for sign in "=+-@"),
    *(f"{sign}1+1" for sign in "＝＋－＠﹦﹢﹣﹫⁼⁺₌−"),
    *(f"{sign}=1+1" for sign in (" ", "\t", "\r", "\n", "\ufeff", "\u200b", "\u00a0", "\u202e")),
    "\tAnn",
    "\rAnn",
]
PLAIN = ["Ada", "O'Neil", "du Châtelet, Émilie", "Li-Wei", "a+b@c.org", "3 - 2", "李小龙", "", "Participant 42"]


@pytest.mark.parametrize("text", FORMULAS, ids=ascii)
def test_a_formula_gets_an_apostrophe(text):
    assert str(safe_cell(text)).startswith("'")
    assert str(safe_cell(text)).replace("'", "") == text


@pytest.mark.parametrize("separator", [";", ",", "|", "\t", "\n", '"'], ids=ascii)
def test_a_formula_behind_a_separator_gets_an_apostrophe(separator):
    assert safe_cell(f"Ann{separator}=1+1{separator}＝2") == f"Ann{separator}'=1+1{separator}'＝2"


@pytest.mark.parametrize("value", [*PLAIN, 1.5, -3.0, True, None])
def test_what_is_no_formula_stays(value):
    assert safe_cell(value) == value


def test_every_cell_is_quoted_and_comes_back():
    text = csv_text(["a", "=header"], [['q"uote', 1], ["new\nline", -2.0]])
    assert text.startswith('"a","=header"\r\n"q""uote","1"')
    assert list(csv.reader(io.StringIO(text, newline="")))[1:] == [['q"uote', "1"], ["new\nline", "-2.0"]]


@pytest.mark.parametrize("form", ["csv", "canvas", "moodle"])
@pytest.mark.parametrize("name", ["=1+1", "＝1+1", "Ann;=1+1"], ids=ascii)
def test_no_export_holds_a_formula(make_grade, tmp_path, form, name):
    grade = make_grade("s1", 1.0, name=(name, name), platform="" if form == "csv" else form)
    grade = replace(
        grade, email=name, canvas_id="901" if form == "canvas" else "", moodle_id="42" if form == "moodle" else ""
    )
    (file,) = export([grade], form, tmp_path)
    cells = [cell for row in csv.reader(file.path.open(encoding="utf-8-sig", newline="")) for cell in row]
    assert safe_cell(name) in " ".join(cells)
    assert not [cell for cell in cells if safe_cell(cell) != cell]


def test_what_platforms_match_on_stays(make_grade, tmp_path):
    one = replace(make_grade("s1", 1.0, name=("=1", "+2"), platform="canvas"), canvas_id="901")
    (canvas,) = export([one, make_grade("s2", 2.0)], "canvas", tmp_path)
    header, _, first, second = csv.reader(canvas.path.open(encoding="utf-8", newline=""))
    assert header[5:] == ["03_scaled_dot_product"]
    assert (first[1], second[3], first[5]) == ("901", "s2", "1.00")
