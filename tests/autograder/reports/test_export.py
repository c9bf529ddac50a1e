"""Exports have the columns that each platform reads, and nothing that breaks its import or takes something away there."""

import csv
from dataclasses import replace
from datetime import datetime

import pytest

from autograder.errors import CourseError
from autograder.reports.export import absent_lines, export, handed_in_nothing, not_begun, undecided

NBGRADER = ["assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email", "raw_score"]
NBGRADER += ["late_submission_penalty", "score", "max_score"]


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
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


def test_csv_has_nbgraders_columns_and_the_score_after_the_penalty(grades, tmp_path):
    (file,) = export(grades, "csv", tmp_path)
    header, *rows = read(file.path)
    assert header == [*NBGRADER, "needs_manual_grade"]
    late = dict(zip(header, rows[1], strict=True))
    assert (late["raw_score"], late["late_submission_penalty"], late["score"]) == ("6.0", "1.0", "5.0")
    assert len(rows) == 6


def test_canvas_has_its_own_columns_first_then_one_a_chapter_and_a_row_of_points_possible(on_canvas, tmp_path):
    file, others = export(on_canvas, "canvas", tmp_path)
    header, possible, *rows = read(file.path)
    assert header[:5] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
    assert header[5:] == ["03_scaled_dot_product", "04_multi_head"]
    assert possible == ["    Points Possible", "", "", "", "", "10.00", "10.00"]
    assert rows[0] == ["Lovelace, Ada", "901", "", "", "", "10.00", "7.00"]
    header, possible, *rows = read(others.path)
    assert (others.path.name, header[5:], possible[5:]) == (f"canvas-{header[5]}.csv", header[5:6], ["10.00"])
    assert rows[0] == ["du Châtelet, Émilie", "902", "", "", "", "5.00"]


def test_canvas_finds_students_of_other_origin_by_their_login(grades, tmp_path):
    rows = [row for file in export(grades, "canvas", tmp_path) for row in read(file.path)[2:]]
    assert [row[1:4] for row in rows] == [["", "", student] for student in ("s1", "s2", "s3", "s5")]


def test_canvas_gets_no_row_for_a_student_without_work_because_an_empty_cell_takes_a_grade_away(on_canvas, tmp_path):
    files = export(on_canvas, "canvas", tmp_path)
    assert sorted(student for file in files for student in file.students) == ["s1", "s2", "s3", "s5"]
    for file in files:
        assert all(all(row[5:]) for row in read(file.path)), "no empty cell"
    # The cells are the gradebook's grades, each once, in whatever file they are.
    expected = {
        (one.canvas_id, one.chapter): f"{max(0, one.raw - one.penalty):.2f}"
        for one in on_canvas
        if one.handed_in and one.gradable
    }
    cells = [
        ((row[1], chapter), cell)
        for header, _, *rows in (read(file.path) for file in files)
        for row in rows
        for chapter, cell in zip(header[5:], row[5:], strict=True)
    ]
    assert len(cells) == len(dict(cells))
    assert dict(cells) == expected


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
    assert (shown["timestamp"], shown["duedate"]) == ("2026-10-24 17:50:00+00:00", "")
    assert (shown["raw_score"], shown["score"]) == ("55.02", "55.02")


def test_a_course_on_two_platforms_sends_to_each_what_came_from_it(on_canvas, tmp_path, make_grade):
    on_canvas = [grade for grade in on_canvas if grade.chapter == "03_scaled_dot_product"]
    other = make_grade("s1", 7.0, chapter="04_multi_head", platform="moodle", canvas_id="901", moodle_id="451")
    grades = [*on_canvas, other]
    (file,) = export(grades, "canvas", tmp_path)
    header, *_ = read(file.path)
    assert header[5:] == ["03_scaled_dot_product"]
    (worksheet,) = export(grades, "moodle", tmp_path)
    assert (worksheet.path.name, worksheet.students, worksheet.left_out) == ("moodle-04_multi_head.csv", ("s1",), ())
    with pytest.raises(CourseError, match="nothing of these chapters was handed in on Moodle"):
        export(on_canvas, "moodle", tmp_path)


def test_canvas_has_its_own_headings_and_the_numbers_of_the_class_list(on_canvas, tmp_path):
    listed = [replace(grade, number="s0011", login="aberg", section="A") for grade in on_canvas]
    file, *_ = export(listed, "canvas", tmp_path, columns={"03_scaled_dot_product": "Sheet 3 (88121)"})
    header, _, first, *_ = read(file.path)
    assert header == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Sheet 3 (88121)", "04_multi_head"]
    assert first[1:6] == ["901", "s0011", "aberg", "A", "10.00"]


def test_moodle_has_a_worksheet_a_chapter_with_the_three_columns_that_its_importer_needs(on_moodle, tmp_path):
    first, second = export(on_moodle, "moodle", tmp_path)
    header, *rows = read(first.path)
    assert {"Identifier", "Grade", "Last modified (grade)"} <= set(header)
    row = dict(zip(header, rows[1], strict=True))
    assert row["Identifier"] == "Participant 352"
    assert (row["Full name"], row["Email address"]) == ("Émilie du Châtelet", "s2@example.org")
    assert (row["Grade"], row["Maximum grade"]) == ("5.00", "10.00")
    assert second.path.name == "moodle-04_multi_head.csv"
    assert read(second.path)[1][0] == "Participant 451"


def test_moodle_keeps_its_comments_and_the_grades_that_it_has(on_moodle, tmp_path):
    header, *rows = read(export(on_moodle, "moodle", tmp_path)[0].path)
    # An empty comment would be taken for a new one; an empty date means that Moodle overwrites nothing without being told to.
    assert "Feedback comments" not in header
    assert {row[header.index("Last modified (grade)")] for row in rows} == {""}


def test_moodle_gets_no_row_without_a_participants_number_and_the_student_is_named(on_moodle, tmp_path):
    unknown = [replace(grade, moodle_id="") if grade.student == "s2" else grade for grade in on_moodle]
    first, second = export(unknown, "moodle", tmp_path)
    assert first.left_out == ("s2",)
    assert "s2" not in first.students
    assert second.left_out == ()


def test_moodle_without_any_number_is_refused_with_another_way(grades, tmp_path):
    with pytest.raises(CourseError, match="--format csv"):
        export(grades, "moodle", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_nothing_is_exported_before_anybody_has_handed_in(works, tmp_path):
    with pytest.raises(CourseError, match="nobody has handed in"):
        export([works[3].grade], "csv", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_name_cannot_become_a_formula_in_a_spreadsheet(tmp_path, make_grade):
    (file,) = export([replace(make_grade("s1", 1.0), first_name="=HYPERLINK(1)", last_name="")], "csv", tmp_path)
    assert "'=HYPERLINK(1)" in read(file.path)[1]


def test_commas_and_quotes_in_names_survive(tmp_path, make_grade):
    (file,) = export([make_grade("s1", 1.0, name=('Ann "A", B', "Li, Wei"))], "csv", tmp_path)
    assert read(file.path)[1][4:6] == ["Li, Wei", 'Ann "A", B']


def test_an_unknown_format_names_those_that_exist(tmp_path, grades):
    with pytest.raises(CourseError, match="csv, canvas, moodle"):
        export(grades, "excel", tmp_path)


def test_a_folder_that_is_a_file_is_refused_with_advice(grades, tmp_path):
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(CourseError, match="--to"):
        export(grades, "csv", tmp_path / "taken")
    assert (tmp_path / "taken").read_text() == "mine"


def test_the_same_grades_give_the_same_bytes_in_any_order(on_canvas, tmp_path):
    ones = export(on_canvas, "canvas", tmp_path / "one")
    others = export(on_canvas[::-1], "canvas", tmp_path / "other")
    assert [(one.path.name, one.path.read_bytes()) for one in ones] == [
        (other.path.name, other.path.read_bytes()) for other in others
    ]


@pytest.mark.parametrize("form", ["canvas", "moodle"])
def test_what_could_not_be_graded_is_left_to_a_person_on_a_platform(on_moodle, on_canvas, tmp_path, form):
    grades = on_canvas if form == "canvas" else on_moodle
    (file, *_) = export([replace(g, gradable=g.student != "s2") for g in grades], form, tmp_path)
    assert "s2" not in file.students
    assert "Châtelet" not in file.path.read_text(encoding="utf-8")
    assert file.left_out == ()


def test_what_could_not_be_graded_is_named_and_stays_at_0_in_nbgraders_columns(grades, refused, tmp_path):
    everybody = [*grades, refused.grade]
    (file,) = export(everybody, "csv", tmp_path)
    assert "s7" in file.students
    assert undecided(everybody) == (
        "1 submission could not be graded and stands at 0: Mary Cartwright (03_scaled_dot_product)"
    )
    assert undecided([refused.grade] * 2).startswith("2 submissions could not be graded and stand at 0: ")
    assert undecided(grades) == ""


@pytest.mark.parametrize("form", ["canvas", "moodle"])
def test_a_platform_gets_no_empty_file_where_nothing_could_be_graded(refused, tmp_path, form):
    with pytest.raises(CourseError, match="could be graded"):
        export([refused.grade], form, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("form", ["csv", "canvas", "moodle"])
def test_a_chapter_of_which_nothing_was_handed_in_is_in_no_file_and_named(
    on_canvas, on_moodle, tmp_path, make_grade, form
):
    grades = on_moodle if form == "moodle" else on_canvas
    empty = [make_grade(student, 0.0, handed_in=False, chapter="05_transformer") for student in ("s1", "s2")]
    files = export([*grades, *empty], form, tmp_path / "with")
    same = export(grades, form, tmp_path / "without")
    assert [file.path.read_bytes() for file in files] == [file.path.read_bytes() for file in same]
    assert not_begun([*grades, *empty]) == "left out, because nothing was handed in: 05_transformer"
    assert not_begun(grades) == ""


def test_a_chapter_of_which_nothing_could_be_graded_gets_no_column_on_canvas(on_canvas, tmp_path, make_grade):
    refused = make_grade("s1", 0.0, chapter="05_transformer", gradable=False)
    for file in export([*on_canvas, refused], "canvas", tmp_path):
        assert "05_transformer" not in read(file.path)[0]


def test_who_handed_in_nothing_is_named_with_what_the_file_has(grades, tmp_path, make_grade):
    absent = make_grade("s9", 0.0, handed_in=False, name=("=cmd()", "X"))
    elsewhere = make_grade("s9", 0.0, handed_in=False, chapter="05_transformer")
    everybody = [*grades, absent, elsewhere]
    assert absent in handed_in_nothing(everybody)
    assert elsewhere not in handed_in_nothing(everybody)
    (line,) = absent_lines([grades[0], absent], "csv")
    assert line == "03_scaled_dot_product: 1 handed in nothing, 0 points in the file: =cmd() X"
    assert "no score in the file" in absent_lines(everybody, "moodle")[0]
    (many,) = absent_lines([grades[0], *(replace(absent, student=f"s{n}") for n in range(12))], "canvas")
    assert many.endswith(" and 2 more")


@pytest.mark.parametrize("form", ["canvas", "moodle"])
def test_a_missing_student_has_no_row_for_a_platform(on_canvas, on_moodle, tmp_path, make_grade, form):
    absent = make_grade("s9", 0.0, handed_in=False, platform=form, canvas_id="909", moodle_id="359")
    (file, *_) = export([*(on_moodle if form == "moodle" else on_canvas), absent], form, tmp_path)
    assert "s9" not in (*file.students, *file.left_out)
    assert "s9@" not in file.path.read_text(encoding="utf-8")
    assert not [row for row in read(file.path) if "909" in row or "Participant 359" in row]


def test_a_missing_student_has_0_points_and_no_time_in_csv(grades, tmp_path, make_grade):
    (file,) = export([*grades, make_grade("s9", 0.0, handed_in=False, name=("=cmd()", "X"))], "csv", tmp_path)
    header, *rows = read(file.path)
    (absent,) = [entry for row in rows if (entry := dict(zip(header, row, strict=True)))["student_id"] == "s9"]
    assert (absent["timestamp"], absent["score"], absent["max_score"]) == ("", "0.0", "10.0")
    assert absent["first_name"] == "'=cmd()"
