"""The overview of the course: every student in every chapter, their change, and who falls behind by which rule."""

from dataclasses import replace
from datetime import datetime

import pytest

from autograder.checking.verdict import NOT_JUDGED, NOT_WRITTEN, Diagnosis, Finding, Verdict
from autograder.grading.record.results import ExerciseResult
from autograder.grading.reports.class_report import StudentWork, summarise_chapters
from autograder.grading.reports.course_overview import build_course_overview
from autograder.grading.reports.lecture_points import lecture_points
from autograder.grading.reports.report_page import render_report

CHAPTERS = ("01_first", "02_second", "03_third")
AFTER, BEFORE = datetime(2026, 6, 1), datetime(2026, 1, 1)


@pytest.fixture
def course(make_grade):
    """Return a function that makes the overview of students with one score per chapter; None is not handed in."""

    def work(student, chapter, score, pending):
        grade = make_grade(student, score or 0.0, chapter=chapter, handed_in=score is not None, pending=pending)
        results = () if score is None else (ExerciseResult("f", score, 10.0),)
        return StudentWork(grade, results)

    def make(now=AFTER, pending=0, due=True, **students):
        works = [
            work(student, chapter, score, pending)
            for student, scores in students.items()
            for chapter, score in zip(CHAPTERS, scores, strict=False)
        ]
        if not due:
            works = [replace(item, grade=replace(item.grade, due=None)) for item in works]
        return build_course_overview(summarise_chapters(works), now)

    return make


def reasons(overview):
    return {row.student: row.reasons for row in overview.behind}


def test_change_compares_the_last_graded_chapter_with_those_before(course) -> None:
    ada, bob, eve = course(ada=(10, 6, 5), bob=(4, 8, None), eve=(7, None, None)).rows
    assert ada.change == pytest.approx(-0.3)
    assert bob.change == pytest.approx(0.4)
    assert eve.change is None


def test_two_missing_chapters_in_a_row_fall_behind(course) -> None:
    behind = reasons(course(ada=(9, None, None), bob=(None, 9, None), eve=(9, 9, None)))
    assert {student: [CHAPTERS[0] in one for one in why] for student, why in behind.items()} == {"ada": [False]}


def test_two_low_chapters_in_a_row_fall_behind(course) -> None:
    behind = reasons(course(ada=(9, 4.9, 4.9), bob=(9, 4, 5), eve=(4, 6, 4)))
    assert behind["ada"][0].endswith("02_second and 03_third")
    assert not any("under" in reason for student in ("bob", "eve") for reason in behind.get(student, ()))


def test_a_drop_of_a_quarter_falls_behind(course) -> None:
    behind = reasons(course(ada=(9, 9, 6.5), bob=(9, 9, 6.6)))
    assert [(student, len(why)) for student, why in behind.items()] == [("ada", 1)]


def test_the_only_chapter_decides_while_there_is_one(course) -> None:
    behind = reasons(course(ada=(4,), bob=(None,), eve=(9,)))
    assert sorted(behind) == ["ada", "bob"]


def test_a_chapter_with_time_left_is_open_and_not_missing(course) -> None:
    overview = course(now=BEFORE, ada=(9, None, None))
    assert [cell.status for cell in overview.rows[0].cells] == ["", "open", "open"]
    assert overview.behind == ()


def test_without_a_deadline_half_of_the_class_closes_a_chapter(course) -> None:
    overview = course(due=False, ada=(9, 9, 9), bob=(9, 9, None), eve=(9, None, None))
    statuses = {row.student: [cell.status for cell in row.cells] for row in overview.rows}
    assert [status == "open" for status in statuses["eve"]] == [False, False, True]


def test_answers_that_wait_lower_nobody(course, make_grade, tmp_path) -> None:
    results = (ExerciseResult("f", 6.0, 6.0),)
    works = [
        StudentWork(make_grade("ada", 6.0, chapter=chapter, pending=pending), results)
        for chapter, pending in zip(CHAPTERS, (0, 0, 2), strict=True)
    ]
    works = [replace(work, grade=replace(work.grade, best=20.0)) for work in works]
    overview = build_course_overview(summarise_chapters(works), AFTER)
    assert overview.behind == ()
    assert overview.rows[0].cells[2].waiting
    assert "30*" in render_report(summarise_chapters(works), title="Report", folder=tmp_path)


def test_who_has_the_most_reasons_comes_first(course) -> None:
    overview = course(ada=(9, None, None), bob=(9, 4, 4))
    assert [row.student for row in overview.behind] == ["bob", "ada"]


SCALE = Diagnosis("no scale", "The scores are not divided.", "why-scale")
SCALE_AGAIN = Diagnosis("no scale", "The scores of the layer are not divided.", "why-scale")


def result(exercise, *rows):
    """Return a result of rows (points, passed, diagnosis, message)."""
    findings = tuple(
        Finding(f"row {i}", f"Row {i} is right.", points, passed, message, known)
        for i, (points, passed, known, message) in enumerate(rows)
    )
    verdict = Verdict(exercise, "03_scaled_dot_product", findings)
    return ExerciseResult(exercise, verdict.score, verdict.max_score, verdict)


def right(exercise):
    return result(exercise, (6, True, None, "as it should be"))


def unscaled(exercise, known=SCALE):
    return result(exercise, (6, False, known, "twice as large"), (2, True, None, "as it should be"))


def test_one_mistake_in_two_exercises_is_one_thing() -> None:
    points = lecture_points(
        {"s2": [unscaled("attend"), unscaled("layer", SCALE_AGAIN)], "s1": [unscaled("attend"), right("layer")]}
    )
    (point,) = points
    assert (point.kind, point.title, point.students, point.points) == ("mistake", "no scale", ("s1", "s2"), 18.0)
    assert point.exercises == ("attend", "layer")
    assert point.diagnosis == SCALE, "the explanation is that of the exercise that cost most"


def test_the_most_expensive_comes_first_and_three_are_enough() -> None:
    def missed(cost):
        return result(f"costs_{cost}", (cost, False, None, "off"), (1, True, None, "right"))

    class_ = {student: [missed(cost) for cost in (2, 5, 3, 4)] for student in ("s1", "s2")}
    assert [(point.exercises, point.points) for point in lecture_points(class_)] == [
        (("costs_5",), 10.0),
        (("costs_4",), 8.0),
        (("costs_3",), 6.0),
    ]


def test_what_one_student_met_is_no_matter_for_a_lecture() -> None:
    assert lecture_points({"s1": [unscaled("attend")], "s2": [right("attend")]}) == ()
    assert lecture_points({}) == ()


def test_a_missed_row_carries_its_most_common_message() -> None:
    rows = {
        s: [result("f", (3, True, None, ""), (2, False, None, m))] for s, m in zip("abc", ("x", "y", "y"), strict=True)
    }
    (point,) = lecture_points(rows)
    assert (point.kind, point.title, point.message, point.times) == ("row", "Row 1 is right.", "y", 2)
    assert point.points == 6.0


def test_an_exercise_where_all_fails_alike_is_one_thing() -> None:
    stub = result("f", *[(2, False, None, "it raised NameError: ")] * 3)
    crashed = ExerciseResult("f", 0.0, 6.0, error="stopped")
    (point,) = lecture_points({"s1": [stub], "s2": [stub], "s3": [crashed]})
    assert (point.kind, point.title, point.points) == ("exercise", "f", 18.0)
    assert (point.message, point.times) == ("it raised NameError", 2)


def test_rows_that_were_not_judged_cost_nothing() -> None:
    rows = result("f", (4, False, SCALE, "off"), (2, False, None, NOT_JUDGED))
    (point,) = lecture_points({"s1": [rows], "s2": [rows]})
    assert point.points == 8.0


def test_exercises_that_nobody_wrote_are_no_mistake() -> None:
    empty = result("f", (4, False, None, NOT_WRITTEN), (2, False, None, NOT_WRITTEN))
    assert lecture_points({"s1": [empty], "s2": [empty]}) == ()
