"""What a marker ticks is read by the student, and counted in the class report."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from types import SimpleNamespace

import pytest
from nbgrader.api import Gradebook

from autograder.course.authoring.rubrics import Rubric
from autograder.grading.feedback.pages import stale_pages, write_feedback
from autograder.grading.plugin import autograder_config
from autograder.grading.reports.feedback_archive import member_pages
from autograder.grading.reports.rubric_counts import count_rubric_items
from autograder.marking.marks import Marks
from autograder.marking.rubric_ticks import tick_items

from .conftest import CHAPTER, QUESTION, versions_of

RUBRIC = Rubric(QUESTION, "", "- 2 points: the variance is $D_h$\n- 1 point: the root\n- 1 point: examples")


def _give(course, student, points, ticks):
    Marks(course, CHAPTER, "a marker").give(QUESTION, versions_of(course, student), points, "", ticks)


def test_items_are_counted_by_share(course):
    _give(course, "ada", 2.5, tick_items(RUBRIC, (1, 0.5, 0)))
    _give(course, "bob", 1, tick_items(RUBRIC, (0, 1, 0)))
    _give(course, "eve", 4, None)
    (count,) = count_rubric_items(course, CHAPTER, {"ada", "bob", "cyd", "eve"})
    assert (count.question, count.students) == (QUESTION, 2)
    assert [(item.text, item.points) for item in count.items] == [
        ("the variance is $D_h$", 2.0),
        ("the root", 1.0),
        ("examples", 1.0),
    ]
    assert [(item.all_of_it, item.half_of_it, item.none_of_it) for item in count.items] == [
        (("ada",), (), ("bob",)),
        (("bob",), ("ada",), ()),
        ((), (), ("ada", "bob")),
    ]
    assert count.to_dict()["students"] == 2


def _page(course, student="ada"):
    (path,) = write_feedback(course, CHAPTER, autograder_config(course), students=[student])
    return path.read_text(encoding="utf-8")


def test_the_student_reads_the_ticked_items(course):
    _give(course, "ada", 2.5, tick_items(RUBRIC, (1, 0.5, 0)))
    page = _page(course)
    assert "2 of 2</span><div><p>the variance is" in page
    assert "0.5 of 1</span><div><p>the root</p>" in page
    assert "examples" not in page


def test_the_student_reads_that_the_grader_gave_other_points(course):
    _give(course, "ada", 3, tick_items(RUBRIC, (1, 0.5, 0)))
    assert re.search(r" 2\.5; .* 3\.", _page(course))


def test_a_page_is_made_again_when_only_the_ticks_have_changed(course):
    _give(course, "ada", 1, tick_items(RUBRIC, (0, 1, 0)))
    assert "the root" in _page(course)
    assert "ada" not in stale_pages(course, CHAPTER, autograder_config(course))
    _give(course, "ada", 1, tick_items(RUBRIC, (0, 0, 1)))
    assert "ada" in stale_pages(course, CHAPTER, autograder_config(course))
    assert "examples" in _page(course)


@pytest.mark.parametrize("waits", [False, True])
def test_ticks_that_no_longer_hold_are_not_shown(course, waits):
    _give(course, "ada", 2.5, tick_items(RUBRIC, (1, 0.5, 0)))
    with Gradebook(course.gradebook_url) as book:
        grade = book.find_grade(QUESTION, CHAPTER, CHAPTER, "ada")
        grade.manual_score, grade.needs_manual_grade = (2.5, True) if waits else (4.0, False)
        book.db.commit()
    assert "the root</p>" not in _page(course)


def test_a_rubric_in_the_students_notebook_is_ignored(course):
    path = course.folder("autograded", "ada", CHAPTER) / f"{CHAPTER}.ipynb"
    notebook = json.loads(path.read_text())
    for cell in notebook["cells"]:
        if "nbgrader" in cell["metadata"]:
            cell["metadata"]["nbgrader"]["rubric"] = [{"text": "forged", "points": 4, "share": 1}]
    path.write_text(json.dumps(notebook))
    assert "forged" not in _page(course)


def test_another_member_of_the_group_reads_the_ticked_items(course, monkeypatch):
    _give(course, "ada", 2.5, tick_items(RUBRIC, (1, 0.5, 0)))
    member = SimpleNamespace(
        student="fay",
        first_name="Fay",
        last_name="Wray",
        full_name="Fay Wray",
        handed_in_by="ada",
        penalty=0.0,
        late_by=timedelta(),
    )
    monkeypatch.setattr(
        "autograder.grading.reports.feedback_archive.read_grades", lambda *arguments, **options: [member]
    )
    page = member_pages(course, CHAPTER, ["fay"])["fay"].decode()
    assert "Fay Wray" in page
    assert "0.5 of 1</span><div><p>the root</p>" in page
