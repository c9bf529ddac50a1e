"""The page for conversations as an assistant, a second assistant and another site meet it."""

from __future__ import annotations

import re

import pytest
from nbgrader.api import Gradebook

from autograder.course.gradebook.reader import open_gradebook
from autograder.errors import CourseError
from autograder.grading.record.viva_journal import VivaAnswer, VivaJournal
from autograder.quizzes.viva.live_view import server as server_module
from autograder.quizzes.viva.live_view.server import page_address

from .conftest import CHAPTER, MARKUP

VIVA = f"{CHAPTER}_viva"


def scores(course):
    """Return the points of the conversations, by student."""
    with open_gradebook(course) as book:
        return {one.student_id: one.score for one in book.assignment_submissions(VIVA)}


async def body(client, path):
    return (await client.ask(path)).body.decode()


def test_an_answer_is_recorded_and_then_its_key_appears(visit, course):
    async def steps(client):
        before = await body(client, "/student/ada")
        assert "answer:0.2" in before
        assert not re.search(r"What the run showed:|<em>key</em>", before)
        done = await client.press("ada", "answer:0.2", "explains well")
        assert (done.code, done.headers["Location"]) == (303, "/student/ada#question-1")
        after = await body(client, "/student/ada")
        assert "What the run showed:" in after
        assert after.count("<em>key</em>") == 1
        assert [button in after for button in ("answer:0.", "answer:1.3", "back:0")] == [False, True, True]
        await client.press("ada", "answer:3.0", "explains well")
        assert "differs from the key" in await body(client, "/student/ada")
        assert "2 of 4 answered, 1 right" in await body(client, "/")

    visit(steps)
    conversation = VivaJournal(course, CHAPTER).conversation("ada")
    answers = {0: VivaAnswer("causal_mask", 2, True), 3: VivaAnswer("padding_mask", 0, False)}
    assert (conversation.answers, conversation.note, conversation.question_count) == (answers, "explains well", 4)
    assert conversation.marker == "an assistant"
    assert scores(course) == {"ada": 1}


def test_the_note_is_kept_whichever_button_is_pressed(visit, course):
    async def steps(client):
        assert (await client.press("ada", "go:bob", "first\r\nsecond ")).headers["Location"] == "/student/bob"
        assert "first\nsecond</textarea>" in await body(client, "/student/ada")
        await client.press("ada", "save", "third")
        size = client.application.journal.path.stat().st_size
        await client.press("ada", "save", "third")
        assert client.application.journal.path.stat().st_size == size  # an unchanged note is not recorded again
        assert (await client.press("ada", "save", "x" * 5001)).code == 400

    visit(steps)
    assert VivaJournal(course, CHAPTER).conversation("ada").note == "third"


def test_a_second_assistant_records_nothing_on_an_outdated_page(visit, course):
    async def steps(client):
        first = re.search(r'name="version" value="(\w+)"', await body(client, "/student/ada")).group(1)
        assert (await client.press("ada", "answer:0.0")).code == 303
        outdated = await client.press("ada", "answer:1.0", "typed note", version=first)
        assert outdated.code == 409
        assert "typed note</textarea>" in outdated.body.decode()

    visit(steps)
    conversation = VivaJournal(course, CHAPTER).conversation("ada")
    assert (set(conversation.answers), conversation.note) == ({0}, "")


@pytest.mark.parametrize(
    ("button", "code"),
    [
        ("answer:4.0", 400),
        ("answer:0.4", 400),
        ("answer:-1.0", 400),
        ("answer:٣.0", 400),
        ("answer:0", 400),
        ("back:0", 409),
        ("go:nobody", 404),
        ("", 400),
        ("delete", 400),
    ],
)
def test_a_forged_button_records_nothing(visit, course, button, code):
    async def steps(client):
        assert (await client.press("ada", button)).code == code

    visit(steps)
    assert not VivaJournal(course, CHAPTER).path.exists()


def test_names_docstrings_and_notes_with_markup_are_text(visit):
    async def steps(client):
        await client.press("ada", "answer:0.0", MARKUP)
        for path in ("/", "/student/ada", "/student/bob"):
            text = await body(client, path)
            assert "window.hostile" not in text.replace("&lt;script&gt;window.hostile", "")
            assert not re.search(r"<(script|img)\b", text)
        text = await body(client, "/student/ada")
        assert "&lt;script&gt;window.hostile" in text
        assert "{{ 7 * 7 }}" in text

    visit(steps)


def test_students_are_found_by_a_part_of_their_name(visit):
    async def steps(client):
        assert [one in await body(client, "/?find=BO") for one in ("/student/ada", "/student/bob")] == [False, True]
        assert "“&lt;b&gt;”" in await body(client, "/?find=%3Cb%3E")
        await client.press("ada", "answer:0.2")
        text = await body(client, "/?find=&open=1")
        assert [f"/student/{one}" in text for one in ("ada", "bob", "dan")] == [False, True, False]
        assert (await client.ask("/student/nobody")).code == 404

    visit(steps)
    assert page_address("a/b c+d") == "/student/a%2Fb%20c%2Bd"


def test_an_answer_outlasts_a_gradebook_that_cannot_be_written(visit, course, monkeypatch):
    def refuse(*_):
        raise CourseError("the gradebook is in use")

    async def steps(client):
        with monkeypatch.context() as patch:
            patch.setattr(server_module, "write_viva_scores", refuse)
            await client.press("ada", "answer:0.2")
        assert "gradebook" in await body(client, "/student/ada")
        await client.press("bob", "answer:0.0")
        assert "gradebook" not in await body(client, "/student/ada")

    visit(steps)
    assert scores(course) == {"ada": 1, "bob": 0}


def test_answers_on_an_earlier_sheet_are_not_shown_for_the_new_questions(visit, course):
    VivaJournal(course, CHAPTER).answer("ada", "x", "an earlier sheet", 4, 0, VivaAnswer("causal_mask", 2, True))

    async def steps(client):
        text = await body(client, "/student/ada")
        assert "answer:0.2" in text
        assert "<em>key</em>" not in text
        await client.press("ada", "answer:1.1")

    visit(steps)
    with Gradebook(course.gradebook_url, "tfcourse") as book:
        assert book.find_submission(VIVA, "ada").score == 0
