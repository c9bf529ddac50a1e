"""Giving marks and taking them back."""

from __future__ import annotations

import os

import pytest
from nbgrader.api import Gradebook

from autograder.course.authoring.rubrics import Rubric
from autograder.errors import CourseError
from autograder.grading.record.marks_journal import MarksJournal
from autograder.marking.marks import Marks, StaleMarkError
from autograder.marking.questions import MarkState
from autograder.marking.rubric_ticks import moves_version, rubric_moves, tick_items

from .conftest import CHAPTER, QUESTION, answers_to, die_while_marking, versions_of, write_answer

RUBRIC = Rubric(QUESTION, "", "- 2 points: the variance\n- 1 point: the root")
CHANGED = Rubric(QUESTION, "", "- 1 point: the variance\n- 1 point: the root")
TICKS = tick_items(RUBRIC, (1, 0.5))


@pytest.fixture
def marks(course):
    return Marks(course, CHAPTER, "a marker")


def test_mark_reaches_the_gradebook(course, marks):
    marks.give(QUESTION, versions_of(course, "ada", "cyd"), 2.5, " See the lesson. ")
    with Gradebook(course.gradebook_url) as book:
        grade = book.find_grade(QUESTION, CHAPTER, CHAPTER, "cyd")
        comment = book.find_comment(QUESTION, CHAPTER, CHAPTER, "cyd")
        assert (grade.score, grade.needs_manual_grade, comment.comment) == (2.5, False, "See the lesson.")
        assert book.find_submission(CHAPTER, "cyd").score == 1 + 2.5
        assert book.find_grade(QUESTION, CHAPTER, CHAPTER, "bob").manual_score is None


def test_answers_are_counted_by_their_last_marker(course, marks):
    other = Marks(course, CHAPTER, "another")
    assert marks.answers_by_marker() == {}
    marks.give(QUESTION, versions_of(course, "ada", "bob", "cyd"), 2, "")
    second = other.give(QUESTION, versions_of(course, "bob"), 3, "").entry
    assert marks.answers_by_marker() == {"a marker": 2, "another": 1}
    marks.give(QUESTION, versions_of(course, "cyd"), 2, "", tick_items(RUBRIC, (1, 0)))
    marks.apply_rubric(QUESTION, CHANGED, moves_version(rubric_moves(marks.reader.question(QUESTION), CHANGED)))
    undo = marks.undo(second.id)
    assert other.answers_by_marker() == {"a marker": 3}, "neither an undo nor a changed rubric is a mark"
    marks.undo(undo.entry.id)
    assert other.answers_by_marker() == {"a marker": 2, "another": 1}


def test_stale_mark_changes_nothing(course, marks, dump):
    seen = versions_of(course, "ada", "bob")
    marks.give(QUESTION, versions_of(course, "bob"), 1, "")
    before = dump()
    with pytest.raises(StaleMarkError):
        marks.give(QUESTION, seen, 4, "Both.")
    assert dump() == before


def test_mark_for_another_text_is_stale(course, marks):
    seen = versions_of(course, "ada")
    write_answer(course, "ada", "Something else entirely.")
    with pytest.raises(StaleMarkError):
        marks.give(QUESTION, seen, 4, "")


def test_change_during_the_write_is_refused(course, marks, dump, monkeypatch):
    """The formgrader writes after the versions were compared, and before the transaction."""
    seen = versions_of(course, "ada", "bob")
    begin = MarksJournal.begin

    def begin_late(journal, entry):
        begin(journal, entry)
        with Gradebook(course.gradebook_url) as book:
            book.find_grade(QUESTION, CHAPTER, CHAPTER, "bob").manual_score = 1.0
            book.db.commit()

    monkeypatch.setattr(MarksJournal, "begin", begin_late)
    with pytest.raises(StaleMarkError):
        marks.give(QUESTION, seen, 4, "")
    states = {student: answer.state for student, answer in answers_to(course).items()}
    assert (states["ada"].points, states["bob"].points) == (None, 1.0)
    assert marks.history() == []


@pytest.mark.parametrize("points", [-0.5, 4.5, float("nan"), float("inf")])
def test_impossible_points_are_refused(course, marks, points):
    with pytest.raises(CourseError, match="between 0 and 4"):
        marks.give(QUESTION, versions_of(course, "ada"), points, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the process that is killed is a fork")
@pytest.mark.parametrize("killed_at", ["before", "after"])
def test_kill_around_the_commit_is_recovered(course, marks, dump, monkeypatch, killed_at):
    untouched, versions = dump(), versions_of(course, "ada", "cyd")
    die_while_marking(monkeypatch, killed_at, lambda: marks.give(QUESTION, versions, 2.5, "See the lesson."))
    assert (dump() == untouched) is (killed_at == "before")
    marks.recover()
    history = marks.history()
    assert len(history) == (killed_at == "after")
    for entry in history:
        marks.undo(entry.id)
    assert dump() == untouched


def test_a_comment_alone_keeps_the_ticks(course, marks):
    marks.give(QUESTION, versions_of(course, "ada"), 2.5, "", TICKS)
    marks.give(QUESTION, versions_of(course, "ada"), None, "Why?")
    marks.give(QUESTION, versions_of(course, "ada"), 2.5, "Why not?")
    assert answers_to(course)["ada"].ticks == TICKS


@pytest.mark.parametrize(("points", "ticks"), [(1, None), (2.5, ())])
def test_points_of_the_marker_alone_have_no_ticks(course, marks, points, ticks):
    marks.give(QUESTION, versions_of(course, "ada"), 2.5, "", TICKS)
    marks.give(QUESTION, versions_of(course, "ada"), points, "", ticks)
    assert answers_to(course)["ada"].ticks is None


def test_undo_restores_the_mark_and_the_ticks_before(course, marks):
    marks.give(QUESTION, versions_of(course, "ada"), 2.5, "First.", TICKS)
    second = marks.give(QUESTION, versions_of(course, "ada"), 1, "", tick_items(RUBRIC, (0, 1))).entry
    marks.undo(second.id)
    assert answers_to(course)["ada"].ticks == TICKS
    assert answers_to(course)["ada"].state == MarkState(2.5, False, "First.")


@pytest.mark.parametrize(("points", "ticks"), [(2.5, tick_items(RUBRIC, (0.5, 1))), (3, None)])
def test_undo_skips_who_was_marked_since(course, marks, points, ticks):
    first = marks.give(QUESTION, versions_of(course, "ada", "cyd"), 2.5, "", TICKS).entry
    marks.give(QUESTION, versions_of(course, "ada"), points, "Better.", ticks)
    assert marks.undo(first.id).skipped == ("ada",)
    states = {student: answer.state for student, answer in answers_to(course).items()}
    assert (states["ada"].points, states["cyd"]) == (points, MarkState(None, True, None))


def test_points_changed_in_the_formgrader_have_no_ticks(course, marks):
    marks.give(QUESTION, versions_of(course, "ada"), 2.5, "", TICKS)
    with Gradebook(course.gradebook_url) as book:
        book.find_grade(QUESTION, CHAPTER, CHAPTER, "ada").manual_score = 4.0
        book.db.commit()
    assert answers_to(course)["ada"].ticks is None


def test_other_ticks_make_another_version(course, marks):
    marks.give(QUESTION, versions_of(course, "ada"), 2.5, "", TICKS)
    seen = versions_of(course, "ada")
    marks.give(QUESTION, versions_of(course, "ada"), 2.5, "", tick_items(RUBRIC, (0.5, 1)))
    with pytest.raises(StaleMarkError):
        marks.give(QUESTION, seen, 2.5, "", TICKS)


def test_a_changed_rubric_is_applied_and_undone_as_one_entry(course, marks, dump):
    marks.give(QUESTION, versions_of(course, "ada", "cyd"), 2.5, "Good.", TICKS)
    before = dump()
    moves = moves_version(rubric_moves(marks.reader.question(QUESTION), CHANGED))
    entry, moved = marks.apply_rubric(QUESTION, CHANGED, moves)
    assert answers_to(course)["cyd"].state == MarkState(1.5, False, "Good.")
    assert (answers_to(course)["ada"].ticks, entry.reason, moved) == (tick_items(CHANGED, (1, 0.5)), "rubric", 2)
    with pytest.raises(StaleMarkError):
        marks.apply_rubric(QUESTION, CHANGED, moves)
    assert marks.undo(entry.id).skipped == ()
    assert (dump(), answers_to(course)["ada"].ticks) == (before, TICKS)
