"""The page for code answers as a browser, another site and another program meet it."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace

from nbgrader.api import Gradebook

from autograder.marking import graded_code
from autograder.marking.behaviour_groups import group_answers

from .conftest import CHAPTER, EXERCISE, UPPER, answers_to, text_of, write_outcome

PAGE = f"/question/{EXERCISE}"


def test_questions_page_counts_groups_and_points(visit):
    text = " ".join(text_of(visit, "/").split())
    assert re.search("10 points .*4 answers .*2 groups.* 0 groups done, 4 answers", text)


def test_group_shows_what_the_check_said(visit):
    text = text_of(visit, PAGE)
    assert text.index("9 points lost") < text.index("1 point lost")
    assert text.count("<article") == 2
    assert UPPER.explanation in text
    assert "it shows the future" in text
    assert "1 1       1 0" in text


def test_group_shows_each_different_text(visit):
    text = text_of(visit, PAGE)
    assert "Answer 1.2, compared with Answer 1.1" in text
    assert "Answer 1.3, compared with Answer 1.1" in text
    assert '<span class="added">+    mask = upper(T)</span>' in text
    assert '<span class="removed">-    return lower(T)</span>' in text


def test_group_says_what_it_follows_from(visit, monkeypatch):
    def follow(answers):
        return [replace(group, follows_from="soft_lookup") for group in group_answers(answers)]

    monkeypatch.setattr(graded_code, "group_answers", follow)
    assert 'Follows from <a href="/question/soft_lookup">soft_lookup</a>' in text_of(visit, PAGE)


def test_group_without_verdict_shows_the_error(visit, course):
    write_outcome(course, "eve", None, "NameError: name 'tril' is not defined <b>")
    text = html.unescape(text_of(visit, PAGE).replace("<b>", ""))
    assert "NameError: name 'tril' is not defined <b>" in text


def test_settled_answer_is_answered_for(visit, course):
    """An answer leaves the list once its points hold; the page still learns what became of it."""
    with Gradebook(course.gradebook_url) as book:
        grade = book.find_grade(f"test_{EXERCISE}", CHAPTER, CHAPTER, "fay")
        grade.manual_score, grade.needs_manual_grade = 2.5, True
        book.db.commit()

    async def steps(client):
        xsrf, groups = await client.page(EXERCISE)
        data = {"members": groups[-1], "points": 4, "comment": ""}
        answer = json.loads((await client.ask(f"{PAGE}/give", data=data, X_XSRFToken=xsrf)).body)
        assert (list(answer["states"].values()), answer["open"]) == (["4 points"], [])

    visit(steps)


def test_second_marker_gets_a_conflict(visit, course):
    async def steps(client):
        xsrf, groups = await client.page(EXERCISE)
        # The formgrader writes between the page and the mark.
        with Gradebook(course.gradebook_url) as book:
            book.find_grade(f"test_{EXERCISE}", CHAPTER, CHAPTER, "bob").manual_score = 3.0
            book.db.commit()
        data = {"members": groups[0], "points": 1, "comment": ""}
        response = await client.ask(f"{PAGE}/give", data=data, X_XSRFToken=xsrf)
        assert response.code == 409
        assert "Reload" in json.loads(response.body)["error"]

    visit(steps)
    assert [answer.state.points for answer in answers_to(course, EXERCISE).values()] == [None, 3.0, None, None]
