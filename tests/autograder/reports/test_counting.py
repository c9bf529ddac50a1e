"""Grades are counted by the rules for single exercises, against a second computation from the points of each cell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder.course.course_file import course_file_path
from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.reports.grades import read_grades
from autograder.reports.recount import recount
from autograder.reports.totals import totals

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


def by_the_rules(student: str, rules: dict[str, tuple[float | None, str]]) -> tuple[float, float]:
    """Compute points and best points a second time, cell by cell, as the guide states the rules."""
    score = best = 0.0
    for cell, cell_best in BEST.items():
        points, count = rules.get(cell.replace("test_", ""), (None, ""))
        worth = cell_best if points is None else points
        earned = SCORES[student][cell] / cell_best * worth if student in SCORES else 0.0
        if count == "drop":
            continue
        if count == "full" and student in SCORES:
            earned = worth
        score += earned
        best += 0.0 if count == "bonus" else worth
    return score, best


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("[{0}.mask]\npoints = 9\n", {"mask": (9, "")}),
        ('[{0}.attend]\ncount = "drop"\n', {"attend": (None, "drop")}),
        (
            '[{0}.question_why]\ncount = "full"\n[{0}.mask]\npoints = 3\n',
            {"question_why": (None, "full"), "mask": (3, "")},
        ),
        ('[{0}.attend]\ncount = "bonus"\npoints = 1\n', {"attend": (1, "bonus")}),
    ],
)
def test_every_grade_is_counted_by_the_rules(
    course: Course, text: str, rules: dict[str, tuple[float | None, str]]
) -> None:
    put(course, text.format(f"chapters.{CHAPTER}.exercises"))
    for grade in read_grades(course, [CHAPTER]):
        assert (grade.raw, grade.best) == pytest.approx(by_the_rules(grade.student, rules)), grade.student
    before = read_grades(course, [CHAPTER], by_rules=False)
    assert {grade.student: (grade.raw, grade.best) for grade in before} == {
        student: by_the_rules(student, {}) for student in (*SCORES, "dee")
    }


def test_the_recount_names_who_moves(course: Course) -> None:
    put(course, f'[chapters.{CHAPTER}.exercises.attend]\ncount = "full"\n')
    result = recount(course, CHAPTER)
    moves = {after.student: (before.score, after.score) for before, after in result.moves}
    assert moves == {"ada": (12.0, 15.0), "cy": (0.0, 4.0)}
    assert (result.stayed, result.rules) == (1, {"attend": "full points for every submission"})
    assert result.lines() == [
        f"{CHAPTER}: by course.toml, attend: full points for every submission. 2 move, 1 stay",
        "  ada  12 of 15 → 15 of 15",
        "  cy   0 of 15 → 4 of 15",
    ]
    put(course, "")
    assert recount(course, CHAPTER).lines() == []


def test_an_answer_that_does_not_count_does_not_wait(course: Course) -> None:
    assert {grade.student: grade.pending for grade in read_grades(course, [CHAPTER])}["cy"] == 1
    put(course, f'[chapters.{CHAPTER}.exercises.question_why]\ncount = "drop"\n')
    assert {grade.student: grade.pending for grade in read_grades(course, [CHAPTER])}["cy"] == 0


def test_a_bonus_gives_no_more_than_the_whole_chapter(course: Course) -> None:
    put(course, f'[chapters.{CHAPTER}.exercises.attend]\ncount = "bonus"\n')
    shares = {total.grade.student: total.share for total in totals(read_grades(course, [CHAPTER]), {CHAPTER: 1.0})}
    # Ada has 12 of 11 points, Bo 6 of 11.
    assert shares == pytest.approx({"ada": 1.0, "bo": 6 / 11, "cy": 0.0, "dee": 0.0})


def test_a_rule_for_an_exercise_that_is_not_there_is_refused_with_its_line(course: Course) -> None:
    put(course, f'title = "x"\n[chapters.{CHAPTER}.exercises.atend]\ncount = "drop"\n')
    with pytest.raises(CourseError, match="has no exercise or question 'atend'") as caught:
        read_grades(course, [CHAPTER])
    assert "line 2" in str(caught.value.where)
    assert "attend" in caught.value.do
