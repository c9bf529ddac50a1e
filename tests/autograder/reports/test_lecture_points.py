"""What to say next lecture is what cost the class most, counted from the verdicts and nothing else."""

from autograder.checking.verdict import NOT_JUDGED, NOT_WRITTEN, Diagnosis, Finding, Verdict
from autograder.record.results import ExerciseResult
from autograder.reports.lecture_points import lecture_points

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
