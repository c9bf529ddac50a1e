"""A small class whose report can be worked out by hand."""

from datetime import datetime

import pytest

from autograder.checking.verdict import Diagnosis, Finding, Verdict
from autograder.grading.record.results import ExerciseResult
from autograder.grading.reports.class_report import StudentWork
from autograder.grading.reports.grades import Grade

SCALE = Diagnosis("no scale", "The scores are not divided by <√d>.", "why-scale")
MASK = Diagnosis("mask inverted", "The mask is read the wrong way round.", "masks")


def _grade(
    student,
    raw,
    *,
    penalty=0.0,
    handed_in=True,
    chapter="03_scaled_dot_product",
    pending=0,
    gradable=True,
    name=("Ada", "Lovelace"),
    platform="",
    canvas_id="",
    moodle_id="",
):
    return Grade(
        student=student,
        first_name=name[0],
        last_name=name[1],
        email=f"{student}@example.org",
        platform=platform,
        canvas_id=canvas_id,
        moodle_id=moodle_id,
        chapter=chapter,
        submitted=datetime(2026, 3, 2, 9, 30) if handed_in else None,
        due=datetime(2026, 3, 1, 23, 59),
        raw=raw,
        penalty=penalty,
        best=10.0,
        pending=pending,
        handed_in=handed_in,
        gradable=gradable,
    )


def _result(exercise, *findings):
    verdict = Verdict(
        exercise, "03_scaled_dot_product", tuple(Finding(a, a, p, ok, "seen", d) for a, p, ok, d in findings)
    )
    return ExerciseResult(exercise, verdict.score, verdict.max_score, verdict)


@pytest.fixture
def refused():
    """The work of a student who handed in something that is no notebook."""
    return StudentWork(_grade("s7", 0.0, name=("Mary", "Cartwright"), gradable=False), problems=("This is a PDF.",))


@pytest.fixture
def make_grade():
    """Return a function that makes a grade."""
    return _grade


@pytest.fixture
def works(tmp_path):
    full = _result("attend", ("values", 6, True, None), ("mask", 4, True, None))
    half = _result("attend", ("values", 6, True, None), ("mask", 4, False, MASK))
    nothing = _result("attend", ("values", 6, False, SCALE), ("mask", 4, False, SCALE))
    crashed = ExerciseResult("attend", 0.0, 10.0, error="NameError: <x> is not defined")
    feedback = tmp_path / "feedback" / "s1" / "03_scaled_dot_product" / "03_scaled_dot_product.html"
    return [
        StudentWork(_grade("s1", 10.0), (full,), 2.5, feedback=feedback),
        StudentWork(_grade("s2", 6.0, penalty=1.0, name=("Émilie", "du Châtelet")), (half,), 9.0),
        StudentWork(
            _grade("s3", 0.0, pending=2, name=("<script>", "O'Neil")),
            (nothing,),
            1.0,
            ("cell 4 ran longer than 60 s",),
        ),
        StudentWork(_grade("s4", 0.0, handed_in=False, name=("", ""))),
        StudentWork(_grade("s5", 0.0, name=("Sofia", "Kovalevskaya")), (crashed,), 0.5),
        StudentWork(_grade("s6", 0.0, name=("", "")), problems=("the worker was killed",), recorded=False),
    ]
