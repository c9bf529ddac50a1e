"""Totals are the weighted means of the chapters' shares, and nothing that is missing or open is passed over."""

from dataclasses import replace
from html import escape

import pytest

from autograder.course.total_rule import TotalRule
from autograder.reports.class_report import Work, summarise
from autograder.reports.export import export
from autograder.reports.report_page import render
from autograder.reports.totals import in_each_grade, totals

CHAPTERS = ("03_scaled_dot_product", "04_multi_head", "05_transformer")
WEIGHTS = {CHAPTERS[0]: 1.0, CHAPTERS[1]: 3.0, CHAPTERS[2]: 5.0}


@pytest.fixture
def grades(make_grade):
    return [
        make_grade("ada", 10.0, chapter=CHAPTERS[0]),
        make_grade("ada", 6.0, penalty=1.0, chapter=CHAPTERS[1], pending=2),
        make_grade("bo", 8.0, chapter=CHAPTERS[0], name=("=cmd()", "X")),
        make_grade("bo", 0.0, chapter=CHAPTERS[1], handed_in=False, name=("=cmd()", "X")),
        make_grade("ada", 0.0, chapter=CHAPTERS[2], handed_in=False),
    ]


def test_without_weights_there_is_no_total(grades):
    assert totals(grades, {}) == []
    assert totals(grades, dict.fromkeys(CHAPTERS, 0.0)) == []


def test_a_chapter_of_weight_0_is_left_out(grades):
    ada, _ = totals(grades, WEIGHTS | {CHAPTERS[1]: 0.0})
    assert (ada.share, list(ada.shares)) == (1.0, [CHAPTERS[0]])


def test_who_has_no_chapter_that_counts_has_no_total(grades, make_grade, tmp_path):
    joined_late = make_grade("cy", 0.0, chapter=CHAPTERS[2], handed_in=False)
    rule = TotalRule(pass_mark=50)
    assert [total.grade.student for total in totals([*grades, joined_late], WEIGHTS, rule)] == ["ada", "bo"]


def test_a_chapter_in_which_no_points_can_be_earned_does_not_count(grades):
    dropped = [replace(grade, raw=0.0, best=0.0) if grade.chapter == CHAPTERS[1] else grade for grade in grades]
    ada, bo = totals(dropped, WEIGHTS)
    assert (ada.shares, ada.share) == ({CHAPTERS[0]: 1.0, CHAPTERS[1]: None}, 1.0)
    assert bo.share == 0.8


def test_a_rule_drops_chapters_and_makes_points_grades_and_passes(grades, tmp_path):
    rule = TotalRule(drop_lowest=1, scale=60, pass_mark=70, grades={"A": 90, "B": 75})
    overall = totals(grades, WEIGHTS, rule)
    ada, bo = overall
    # Ada has 10/10 and (6 - 1)/10, Bo 8/10 and nothing; the lower share of each is dropped, whatever it weighs.
    assert (ada.dropped, ada.share, ada.points, ada.grade_name, ada.passed) == ((CHAPTERS[1],), 1.0, 60.0, "A", True)
    assert (bo.dropped, bo.share, bo.points, bo.grade_name, bo.passed) == ((CHAPTERS[1],), 0.8, 48.0, "B", True)
    assert in_each_grade(overall) == "As it stands: 1 × A, 1 × B, 2 of 2 pass."
    _, totals_file = export(grades, "csv", tmp_path, WEIGHTS, rule=rule)
    header, ada_line, _ = totals_file.path.read_text(encoding="utf-8").splitlines()
    assert header.endswith('"total","open","points","grade","passed","dropped"')
    assert ada_line.endswith(f'"100.00","{CHAPTERS[1]}","60.00","A","yes","{CHAPTERS[1]}"')
    page = render(summarise(map(Work, grades)), title="Class", folder=tmp_path, overall=overall)
    assert escape(rule.sentence(), quote=False).replace("'", "&#39;") in page
    assert '<span class="pill note">dropped</span>' in page


def test_what_is_undecided_or_not_gradable_is_open(grades):
    undecided = replace(grades[0], decided=False)
    refused = replace(grades[2], gradable=False, raw=0.0)
    assert [total.open_chapters for total in totals([undecided, refused], WEIGHTS)] == [(CHAPTERS[0],)] * 2


def test_totals_are_exported_beside_the_grades(grades, tmp_path):
    grades_file, totals_file = export(grades, "csv", tmp_path, WEIGHTS)
    assert (grades_file.path.name, totals_file.path.name) == ("grades.csv", "totals.csv")
    header, ada, bo = totals_file.path.read_text(encoding="utf-8").splitlines()
    assert header == f'"student_id","last_name","first_name","email","{CHAPTERS[0]}","{CHAPTERS[1]}","total","open"'
    assert ada.endswith(f'"100.00","50.00","62.50","{CHAPTERS[1]}"')
    assert bo == '"bo","X","\'=cmd()","bo@example.org","80.00","0.00","20.00",""'
    assert len(export(grades, "csv", tmp_path)) == 1
    assert all("totals" not in file.path.name for file in export(grades, "canvas", tmp_path, WEIGHTS))


def test_the_report_has_totals_only_with_weights(grades, tmp_path):
    summaries = summarise(map(Work, grades))
    page = render(summaries, title="Class", folder=tmp_path, overall=totals(grades, WEIGHTS))
    assert '<td class="n">62 %</td><td class="n">100 %</td><td class="n">50 %</td>' in page
    assert "=cmd() X" in page
    assert "Totals" not in render(summaries, title="Class", folder=tmp_path)
