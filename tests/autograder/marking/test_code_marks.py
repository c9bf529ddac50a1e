"""Marking code answers: groups, points on the test cell, comments on the solution cell, undo and refusals."""

from __future__ import annotations

import pytest
from nbgrader.api import Gradebook

from autograder.marking.chapter_reader import ChapterReader
from autograder.marking.marks import Marks, StaleMarkError
from autograder.marking.questions import MarkState

from .conftest import (
    CHAPTER,
    CODE,
    EXERCISE,
    QUESTION,
    answers_to,
    verdict_of,
    versions_of,
    write_answer,
    write_outcome,
)


@pytest.fixture
def marks(course):
    return Marks(course, CHAPTER, "a marker")


def _question(marks):
    return marks.reader.question(EXERCISE)


def test_answers_that_lost_points_are_listed(marks):
    code, words = marks.reader.questions()
    assert (code.name, code.title, code.points, code.blanks) == (EXERCISE, "1 · Causal mask: causal_mask", 4, 1)
    assert [answer.student for answer in code.answers] == ["ada", "bob", "cyd", "eve"]
    assert (code.waiting, code.lost_points, code.groups_done) == (4, 10, 0)
    assert code.reference == "def causal_mask(T, device=None):\n    return lower(T)\n"
    assert words.name == QUESTION


def test_group_is_done_when_no_member_waits(marks):
    marks.give(EXERCISE, versions_of(marks.course, "ada", "bob", question=EXERCISE), 2, "")
    assert _question(marks).groups_done == 0
    marks.give(EXERCISE, versions_of(marks.course, "cyd", question=EXERCISE), None, "Look at the mask.")
    assert (_question(marks).groups_done, _question(marks).waiting) == (1, 1)


@pytest.mark.parametrize("waiting", [False, True])
def test_comment_alone_touches_no_points(course, marks, dump, waiting):
    with Gradebook(course.gradebook_url) as book:
        book.find_grade(f"test_{EXERCISE}", CHAPTER, CHAPTER, "ada").needs_manual_grade = waiting
        book.db.commit()
    before = dump()
    marks.give(EXERCISE, versions_of(marks.course, "ada", question=EXERCISE), None, "Look at the mask.")
    assert answers_to(marks.course, EXERCISE)["ada"].state == MarkState(None, waiting, "Look at the mask.")
    changed = set(before) ^ set(dump())
    assert len(changed) == 2
    assert all("comment" in line for line in changed)


@pytest.mark.parametrize("waiting", [False, True])
@pytest.mark.parametrize(("points", "comment"), [(0, ""), (4, "Good."), (None, "Why?")])
def test_undo_leaves_an_identical_dump(course, marks, dump, points, comment, waiting):
    with Gradebook(course.gradebook_url) as book:
        book.find_grade(f"test_{EXERCISE}", CHAPTER, CHAPTER, "ada").needs_manual_grade = waiting
        book.db.commit()
    before = dump()
    entry = marks.give(
        EXERCISE, versions_of(marks.course, "ada", "cyd", "eve", question=EXERCISE), points, comment
    ).entry
    assert dump() != before
    assert marks.undo(entry.id).skipped == ()
    assert dump() == before


def test_undo_reaches_an_answer_that_now_passes(course, marks, dump):
    before = dump()
    entry = marks.give(EXERCISE, versions_of(marks.course, "ada", question=EXERCISE), 2, "Mind the future.").entry
    write_outcome(course, "ada", verdict_of("fay"))
    assert "ada" not in answers_to(marks.course, EXERCISE)
    assert marks.undo(entry.id).skipped == ()
    assert dump() == before


def test_mark_for_other_code_or_outcome_is_stale(course, marks):
    seen = versions_of(marks.course, "ada", "bob", question=EXERCISE)
    write_answer(course, "ada", code="def causal_mask(T):\n    return T")
    write_outcome(course, "bob", verdict_of("eve"))
    for student in ("ada", "bob"):
        with pytest.raises(StaleMarkError):
            marks.give(EXERCISE, {student: seen[student]}, 4, "")


@pytest.mark.parametrize("student", ["fay", "dan"])
def test_waiting_answer_that_lost_nothing_is_listed(course, marks, student):
    """A student hands in again after a person gave points; nbgrader asks for a second look."""
    with Gradebook(course.gradebook_url) as book:
        grade = book.find_grade(f"test_{EXERCISE}", CHAPTER, CHAPTER, student)
        grade.manual_score, grade.needs_manual_grade = 2.5, True
        book.db.commit()
    group = _question(marks).groups[-1]
    assert [member.source for member in group.members] == [CODE[student]]
    assert answers_to(marks.course, EXERCISE)[student].state == MarkState(2.5, True, None)
    marks.give(EXERCISE, versions_of(marks.course, student, question=EXERCISE), 4, "")
    assert student not in answers_to(marks.course, EXERCISE)


def test_changed_results_are_read_again(course):
    reader = ChapterReader(course, CHAPTER)
    assert len(reader.question(EXERCISE).answers) == 4
    code = reader.graded_code()
    assert reader.graded_code() is code
    write_outcome(course, "eve", verdict_of("fay"))
    assert [answer.student for answer in reader.question(EXERCISE).answers] == ["ada", "bob", "cyd"]
