"""Totals are the weighted means of the chapters' shares, and nothing that is missing or open is passed over."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder.course.course_file import course_file_path
from autograder.course.course_rules import TotalRule
from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.grading.regrade import ScoreChange
from autograder.grading.reports.grades import read_grades
from autograder.grading.reports.recount import convert_to_totals, recount
from autograder.grading.reports.totals import compute_totals

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
    assert compute_totals(grades, {}) == []
    assert compute_totals(grades, dict.fromkeys(CHAPTERS, 0.0)) == []


def test_who_has_no_chapter_that_counts_has_no_total(grades, make_grade, tmp_path):
    joined_late = make_grade("cy", 0.0, chapter=CHAPTERS[2], handed_in=False)
    rule = TotalRule(pass_mark=50)
    assert [total.grade.student for total in compute_totals([*grades, joined_late], WEIGHTS, rule)] == ["ada", "bo"]


def test_a_chapter_in_which_no_points_can_be_earned_does_not_count(grades):
    dropped = [replace(grade, raw=0.0, best=0.0) if grade.chapter == CHAPTERS[1] else grade for grade in grades]
    ada, bo = compute_totals(dropped, WEIGHTS)
    assert (ada.shares, ada.share) == ({CHAPTERS[0]: 1.0, CHAPTERS[1]: None}, 1.0)
    assert bo.share == 0.8


def test_what_is_undecided_or_not_gradable_is_open(grades):
    undecided = replace(grades[0], waits_for="choice")
    refused = replace(grades[2], gradable=False, raw=0.0)
    assert [total.open_chapters for total in compute_totals([undecided, refused], WEIGHTS)] == [(CHAPTERS[0],)] * 2


CHAPTER = "05_transformer"
BEST = {"test_mask": 6.0, "test_attend": 4.0, "question_why": 5.0}
SCORES = {
    "ada": {"test_mask": 6.0, "test_attend": 1.0, "question_why": 5.0},
    "bo": {"test_mask": 2.0, "test_attend": 4.0, "question_why": 0.0},
    "cy": {"test_mask": 0.0, "test_attend": 0.0, "question_why": 0.0},
}


@pytest.fixture
def course(course_dir: Path) -> Course:
    """A course of three students with three cells each; the answer of Cy waits, and Dee handed in nothing."""
    course = Course.open(course_dir)
    with Gradebook(course.gradebook_url, "tfcourse") as gradebook:
        gradebook.add_assignment(CHAPTER)
        gradebook.add_notebook(CHAPTER, CHAPTER)
        for cell, points in BEST.items():
            kind = "code" if cell.startswith("test_") else "markdown"
            gradebook.add_grade_cell(cell, CHAPTER, CHAPTER, max_score=points, cell_type=kind)
        for student, scores in SCORES.items():
            gradebook.add_student(student)
            gradebook.add_submission(CHAPTER, student)
            for grade in gradebook.find_submission_notebook(CHAPTER, CHAPTER, student).grades:
                grade.auto_score = scores[grade.name]
                grade.needs_manual_grade = student == "cy" and grade.name == "question_why"
        gradebook.add_student("dee")
        gradebook.db.commit()
    (course_dir / "students.json").write_text(json.dumps({}), encoding="utf-8")
    return course


def put(course: Course, text: str) -> None:
    course_file_path(course.root).write_text(text, encoding="utf-8")


def test_the_recount_names_who_moves(course: Course) -> None:
    put(course, f'[chapters.{CHAPTER}.exercises.attend]\ncount = "full"\n')
    result = recount(course, CHAPTER)
    moves = {after.student: (before.score, after.score) for before, after in result.moves}
    assert moves == {"ada": (12.0, 15.0), "cy": (0.0, 4.0)}
    assert (result.stayed, list(result.rules)) == (1, ["attend"])
    (head,) = result.lines(each=False)
    assert "already counted" in head
    assert [re.findall(r"[\d.]+", line) for line in result.lines(each=True)[1:]] == [
        ["12", "15", "15", "15"],
        ["0", "15", "4", "15"],
    ]
    # A regrade says the total points that report and exports have, by the same rules.
    change = ScoreChange("ada", 1.0, 0.0, (("attend", 1.0, 0.0),), {"attend": 4.0})
    before = read_grades(course, [CHAPTER])
    (same,) = convert_to_totals(course, CHAPTER, [change], before, dry_run=True)
    assert (same.before, same.after) == (15.0, 15.0), "all points for every submission"
    put(course, "")
    (less,) = convert_to_totals(course, CHAPTER, [change], read_grades(course, [CHAPTER]), dry_run=True)
    assert (less.before, less.after) == (12.0, 11.0)
    (done,) = convert_to_totals(course, CHAPTER, [change], before, dry_run=False)
    assert (done.before, done.after) == (15.0, 12.0)
    put(course, "")
    assert recount(course, CHAPTER).lines(each=True) == []


def test_a_bonus_gives_no_more_than_the_whole_chapter(course: Course) -> None:
    put(course, f'[chapters.{CHAPTER}.exercises.attend]\ncount = "bonus"\n')
    shares = {
        total.grade.student: total.share for total in compute_totals(read_grades(course, [CHAPTER]), {CHAPTER: 1.0})
    }
    # Ada has 12 of 11 points, Bo 6 of 11.
    assert shares == pytest.approx({"ada": 1.0, "bo": 6 / 11, "cy": 0.0, "dee": 0.0})


def test_a_rule_for_an_exercise_that_is_not_there_is_refused_with_its_line(course: Course) -> None:
    put(course, f'title = "x"\n[chapters.{CHAPTER}.exercises.atend]\ncount = "drop"\n')
    with pytest.raises(CourseError, match="'atend'") as caught:
        read_grades(course, [CHAPTER])
    assert "line 2" in str(caught.value.where)
    assert "attend" in caught.value.do
