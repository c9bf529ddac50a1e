"""The live view shows counts, titles and diagnoses, and nothing that belongs to a person."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from autograder.checking.hidden_messages import WRONG
from autograder.checking.verdict import Finding, Verdict
from autograder.marking.chapter_reader import ChapterReader
from autograder.marking.live_view import LiveApplication, bar_parts, visible_failed_rows

from .conftest import CHAPTER, CODE, EXERCISE, STUB, UPPER, verdict_of, write_answer, write_outcome

EVERYTHING = f"/state?shown={quote(json.dumps({EXERCISE: 9}))}"


def _ask(visit, path):
    async def steps(client):
        await client.sign_in()
        return await client.ask(path)

    return visit(steps, live=True)


def _question(visit, path):
    (question,) = json.loads(_ask(visit, path).body)["questions"]
    return question


def test_groups_are_sent_when_revealed(visit):
    hidden = _question(visit, "/state")
    assert (hidden["groups"], hidden["rows"], hidden["hidden_groups"]) == ([], [], 1)
    shown = _question(visit, EVERYTHING)
    assert shown["hidden_groups"] == 0
    (group,) = shown["groups"]
    assert (group["count"], group["rows"], group["diagnoses"]) == (3, ["The mask is right."], [UPPER.explanation])
    assert shown["rows"] == [{"title": "The mask is right.", "count": 3}]


def test_small_counts_stay_untold(visit):
    text = _ask(visit, EVERYTHING).body.decode()
    assert "boolean" not in text
    state = json.loads(text)
    # dan alone has left the stub: were he not in the bar, the number of graded submissions would tell that one student has.
    assert [part["count"] for part in state["questions"][0]["bar"]] == [state["graded"]] == [6]


def test_three_blank_answers_are_not_in_the_bar(visit, course):
    for student in ("eve", "fay"):
        write_answer(course, student, code=STUB)
        write_outcome(course, student, verdict_of("dan"))
    assert sum(part["count"] for part in _question(visit, "/state")["bar"]) == 3


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"all": 5, "some": 4, "no": 3}, [("all", 5), ("some", 4), ("no", 3)]),
        ({"all": 22, "no": 2}, [("all no", 24)]),
        ({"all": 1, "some": 1, "no": 1}, [("all some no", 3)]),
        ({"all": 2, "some": 9, "no": 9}, [("all some", 11), ("no", 9)]),
        ({"some": 2}, []),
        ({}, []),
    ],
)
def test_bar_joins_parts_below_three(counts, expected):
    assert [(part["name"].replace(" or ", " "), part["count"]) for part in bar_parts(counts)] == expected


def test_nothing_of_a_person_is_sent(visit, course):
    for student in ("ada", "bob", "cyd"):
        write_answer(course, student, code=f"def causal_mask(T):\n    return canary_{student}")
    text = _ask(visit, EVERYTHING).body.decode()
    for secret in (*CODE, "canary", "it shows the future", "got", "expected", "upper(T)"):
        assert secret not in text


def test_error_texts_stay_untold(visit, course):
    for student in ("ada", "bob", "cyd"):
        write_outcome(course, student, None, "ValueError: my mother's maiden name")
    question = _question(visit, EVERYTHING)
    (group,) = question["groups"]
    assert (group["count"], group["error"], group["rows"]) == (3, True, [])
    assert "maiden" not in json.dumps(question)


def test_rows_failed_on_hidden_questions_stay_untold():
    findings = [Finding("values", "Values.", 3, False, WRONG), Finding("dtype", "Type.", 1, False, "it is float32")]
    assert list(visible_failed_rows(Verdict(EXERCISE, CHAPTER, tuple(findings)))) == ["Type."]


def test_live_view_follows_new_results(course):
    now = [0.0]
    application = LiveApplication(ChapterReader(course, CHAPTER), clock=lambda: now[0])
    assert application.state({EXERCISE: 9})["questions"][0]["groups"][0]["count"] == 3
    write_answer(course, "eve", code=CODE["ada"])
    write_outcome(course, "eve", verdict_of("ada"))
    assert application.state({EXERCISE: 9})["questions"][0]["groups"][0]["count"] == 3
    now[0] = 60.0
    assert application.state({EXERCISE: 9})["questions"][0]["groups"][0]["count"] == 4


@pytest.mark.parametrize("shown", ["x", "[]", '{"causal_mask": "9"}', '{"causal_mask": -1}', '{"causal_mask": true}'])
def test_malformed_choice_is_refused(visit, shown):
    assert _ask(visit, f"/state?shown={quote(shown)}").code == 400
