"""Conversations have a column in the report and in exports; one that did not take place is missing, and not 0."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from autograder.commands.main import main
from autograder.commands.selftest.doctor import examine
from autograder.course.course_rules import TotalRule
from autograder.grading.record.viva_journal import VivaAnswer, VivaJournal
from autograder.grading.reports.export import export
from autograder.grading.reports.grades import read_grades
from autograder.grading.reports.totals import compute_totals
from autograder.intake.notebook.manifest import read_manifest
from tests.autograder.marking.conftest import CHAPTER, EXERCISE, course, graded  # noqa: F401

VIVA = f"{CHAPTER}_viva"
NOTE = "was nervous <script>alert(1)</script>"


def record(course, student, answers, asked=4, exercise=EXERCISE):  # noqa: F811
    """Record answers, each right (1) or wrong (0)."""
    journal = VivaJournal(course, CHAPTER)
    for number, right in enumerate(answers):
        journal.answer(student, "x", "sheet", asked, number, VivaAnswer(exercise, 0, bool(right)))
    return journal


def run(course, *words):  # noqa: F811
    done = CliRunner().invoke(main, [*words, "--course", str(course.root), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def read(path):
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def talked(course):  # noqa: F811
    """A class in which fay, who has full marks for the code, has guessed; ada has three of four; bob is not finished."""
    record(course, "fay", [0, 1, 0, 0]).note("fay", "x", NOTE)
    record(course, "ada", [1, 1, 0, 1])
    record(course, "bob", [1])
    return course


def test_csv_has_the_conversations_and_leaves_missing_ones_empty(talked, tmp_path):
    (talked.root / "course.toml").write_text('[viva.03]\nweight = 0.5\ncanvas = "Talk (77)"\n')
    data = run(talked, "export", "--to", str(tmp_path / "out"))
    rows = {row["student_id"]: row for row in read(tmp_path / "out" / "grades.csv") if row["assignment"] == VIVA}
    shown = {student: (row["score"], row["max_score"], row["needs_manual_grade"]) for student, row in rows.items()}
    assert shown["ada"] == ("3.00", "4.00", "False")
    assert shown["bob"] == ("1.00", "4.00", "True")
    assert shown["fay"] == ("1.00", "4.00", "False")
    assert shown["cyd"] == ("", "4.00", "False")
    assert {item["student"] for item in data["no_conversation"]} == {"cyd", "dan", "eve"}
    told = CliRunner().invoke(main, ["export", "--to", str(tmp_path / "again"), "--course", str(talked.root)])
    assert re.search(f"{VIVA}: 3 .*: cyd, dan, eve", told.stdout)
    assert data["nothing_handed_in"] == []
    total = {row["student_id"]: row for row in read(tmp_path / "out" / "totals.csv")}
    chapter = float(total["ada"][CHAPTER])
    assert total["ada"][VIVA] == "75.00"
    assert float(total["ada"]["total"]) == pytest.approx((chapter + 0.5 * 75) / 1.5, abs=0.01)
    assert (total["cyd"][VIVA], total["cyd"]["total"]) == ("", total["cyd"][CHAPTER])
    assert VIVA in total["bob"]["open"]


def test_canvas_has_a_column_with_its_heading_and_no_cell_for_a_missing_conversation(talked, tmp_path):
    (talked.root / "course.toml").write_text('[viva.03]\ncanvas = "Talk (77)"\n')
    data = run(talked, "export", "--format", "canvas", "--to", str(tmp_path / "out"))
    complete, chapter = (read(file["path"]) for file in data["files"])
    assert [row["Talk (77)"] for row in complete] == ["4.00", "3.00", "1.00", "1.00"]
    assert {list(row.values())[3] for row in chapter[1:]} == {"cyd", "dan", "eve"}
    assert "Talk (77)" not in chapter[0]


def test_moodle_has_worksheets_of_chapters_and_its_gradebook_a_table_of_conversations(make_grade, tmp_path):
    chapter = make_grade("ada", 8.0, platform="moodle", moodle_id="51")
    talk = replace(chapter, chapter=VIVA, raw=3.0, moodle_id="", viva=True)
    absent = replace(talk, student="bo", handed_in=False)
    files = export([chapter, replace(talk, email="ada@example.org"), absent], "moodle", tmp_path)
    assert [file.path.name for file in files] == [f"moodle-{CHAPTER}.csv", f"moodle-import-{VIVA}.csv"]
    assert files[1].path.read_text().replace('"', "").split() == ["email,idnumber,score", "ada@example.org,,3.00"]


def test_report_shows_the_column_and_where_code_and_answers_differ(talked):
    data = run(talked, "report")
    summary = data["chapters"][0]["conversations"]
    assert summary["points"] == {"ada": 3, "bob": 1, "fay": 1}
    assert summary["missing"] == ["cyd", "dan", "eve"]
    assert summary["differing"] == ["fay"]  # ada's code lost points, and bob's conversation is not finished
    assert summary["average"] == pytest.approx((0.75 + 0.25 + 0.25) / 3)
    page = (talked.root / "report.html").read_text()
    assert "1 of 4 right, about <code>causal_mask</code>" in page
    assert "was nervous &lt;script&gt;" in page
    assert page.count('<span class="note">missing</span>') == 3


@pytest.mark.parametrize(
    ("student", "answers", "differs"),
    [
        ("fay", [0, 0, 0, 0], True),
        ("fay", [0, 0, 0, 1], True),
        ("fay", [1, 0, 0, 1], False),
        ("fay", [0, 0, 0], False),
        ("eve", [0, 0, 0, 0], False),
    ],
)
def test_only_full_marks_and_guesses_in_a_finished_conversation_differ(course, student, answers, differs):  # noqa: F811
    record(course, student, answers)
    summary = run(course, "report")["chapters"][0]["conversations"]
    assert (summary["differing"] == [student]) is differs


def test_a_report_without_conversations_says_nothing_about_them(course):  # noqa: F811
    assert "conversations" not in run(course, "report")["chapters"][0]
    page = (course.root / "report.html").read_text()
    assert "onversation" not in page


def test_no_conversation_is_dropped_and_a_missing_one_is_in_no_total(make_grade):
    first, second = make_grade("ada", 4.0), make_grade("ada", 8.0, chapter="04_multi_head")
    talk = replace(first, chapter=VIVA, raw=1.0, viva=True)
    weights = {first.chapter: 1.0, second.chapter: 1.0, VIVA: 2.0}
    (total,) = compute_totals([first, second, talk], weights, TotalRule(drop_lowest=1))
    assert total.dropped == (first.chapter,)
    assert total.share == pytest.approx((0.8 + 2 * 0.1) / 3)
    (total, other) = compute_totals(
        [first, second, replace(talk, handed_in=False), replace(talk, student="bob")], weights, TotalRule()
    )
    assert (total.shares[VIVA], total.missing, total.share) == (None, (VIVA,), pytest.approx(0.6))
    assert (other.shares, other.share) == ({first.chapter: None, second.chapter: None, VIVA: 0.1}, 0.1)


def test_other_readers_of_the_gradebook_see_chapters_alone(talked):
    run(talked, "report")
    assert {grade.chapter for grade in read_grades(talked)} == {CHAPTER}
    assert read_manifest(talked.gradebook_url, CHAPTER).elsewhere == {}
    items = {item.name: item for item in examine(talked.root)}
    assert items["gradebook"].detail.startswith("1 chapter, 6 students")
