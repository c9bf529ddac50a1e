"""Answers of conversations are kept in a journal, and the gradebook follows it; a conversation that did not take place is missing."""

from __future__ import annotations

import json

import pytest
from nbgrader.api import Gradebook

from autograder.course.folder import Course
from autograder.course.gradebook.reader import open_gradebook, released_chapters
from autograder.errors import CourseError
from autograder.grading.record.viva_journal import Conversation, VivaAnswer, VivaJournal
from autograder.grading.record.viva_scores import write_viva_scores
from tests.autograder.marking.conftest import CHAPTER, course, dump, graded  # noqa: F401

VIVA = f"{CHAPTER}_viva"
RIGHT, WRONG = VivaAnswer("causal_mask", 2, True), VivaAnswer("causal_mask", 0, False)


def _record(course: Course, student: str, *answers: VivaAnswer, asked: int = 4) -> VivaJournal:  # noqa: F811
    journal = VivaJournal(course, CHAPTER)
    for number, answer in enumerate(answers):
        journal.answer(student, "an assistant", "sheet", asked, number, answer)
    return journal


def _scores(course: Course) -> dict[str, tuple[float, float, bool]]:  # noqa: F811
    with open_gradebook(course) as book:
        submissions = book.assignment_submissions(VIVA)
        return {one.student_id: (one.score, one.max_score, one.needs_manual_grade) for one in submissions}


def test_the_last_line_about_a_question_counts(course: Course) -> None:  # noqa: F811
    journal = _record(course, "ada", WRONG, RIGHT, RIGHT)
    before = journal.conversation("ada")
    journal.answer("ada", "another", "sheet", 4, 0, RIGHT)
    journal.answer("ada", "another", "sheet", 4, 1, None)
    journal.note("ada", "another", "explained the <b>mask</b> well")
    after = journal.conversation("ada")
    assert (before.right, before.begun, before.finished, before.marker) == (2, True, False, "an assistant")
    assert after.answers == {0: RIGHT, 2: RIGHT}
    assert (after.note, after.marker, after.share) == ("explained the <b>mask</b> well", "another", 0.5)
    assert after.version != before.version
    assert journal.conversation("bob") == Conversation("bob")


def test_a_line_that_is_no_answer_is_reported(course: Course) -> None:  # noqa: F811
    journal = _record(course, "ada", RIGHT)
    with journal.path.open("a") as file:
        file.write(json.dumps({"student": "bob", "marker": "x", "time": "now"}) + "\n")
    with pytest.raises(CourseError, match="line 2 is not an answer") as raised:
        journal.conversations()
    assert str(journal.path) in str(raised.value)


def test_scores_are_an_assignment_of_their_own(course: Course, dump) -> None:  # noqa: F811
    before = dump()
    _record(course, "ada", RIGHT, WRONG, RIGHT, RIGHT)
    _record(course, "bob", RIGHT)
    _record(course, "cyd", RIGHT, RIGHT, WRONG, asked=3)
    write_viva_scores(course, CHAPTER)
    assert _scores(course) == {"ada": (3, 4, False), "bob": (1, 4, True), "cyd": (pytest.approx(8 / 3), 4, False)}
    written = dump()
    write_viva_scores(course, CHAPTER)
    assert dump() == written
    assert set(before) <= set(written)  # no other row has changed
    assert released_chapters(course) == [CHAPTER]
    assert released_chapters(course, ["03"]) == [CHAPTER]


def test_a_student_whose_answers_are_taken_back_is_missing(course: Course) -> None:  # noqa: F811
    journal = _record(course, "ada", RIGHT)
    _record(course, "bob", WRONG)
    write_viva_scores(course, CHAPTER)
    journal.answer("ada", "an assistant", "sheet", 4, 0, None)
    write_viva_scores(course, CHAPTER)
    assert _scores(course) == {"bob": (0, 4, True)}


def test_points_that_a_person_has_given_in_the_formgrader_stay(course: Course) -> None:  # noqa: F811
    journal = _record(course, "ada", WRONG)
    write_viva_scores(course, CHAPTER)
    with Gradebook(course.gradebook_url, "tfcourse") as book:
        book.find_grade("viva", "viva", VIVA, "ada").manual_score = 2.5
        book.db.commit()
    journal.answer("ada", "an assistant", "sheet", 4, 0, None)
    write_viva_scores(course, CHAPTER)
    assert _scores(course)["ada"][0] == 2.5


def test_another_assignment_of_that_name_is_refused(course: Course, dump) -> None:  # noqa: F811
    with Gradebook(course.gradebook_url, "tfcourse") as book:
        book.add_assignment(VIVA)
        book.add_notebook("questions", VIVA)
    before = dump()
    _record(course, "ada", RIGHT)
    with pytest.raises(CourseError, match=VIVA):
        write_viva_scores(course, CHAPTER)
    assert dump() == before


def test_a_student_who_was_removed_from_the_gradebook_stays_away(course: Course) -> None:  # noqa: F811
    _record(course, "ada", RIGHT)
    _record(course, "bob", RIGHT)
    write_viva_scores(course, CHAPTER)
    with Gradebook(course.gradebook_url, "tfcourse") as book:
        book.remove_student("ada")
    write_viva_scores(course, CHAPTER)
    assert set(_scores(course)) == {"bob"}
    with open_gradebook(course) as book:
        assert "ada" not in {student.id for student in book.students}
