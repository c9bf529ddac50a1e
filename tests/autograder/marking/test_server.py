"""The marking server as a browser, another site and another program meet it."""

from __future__ import annotations

import json
import re
import time
from unittest.mock import patch

import pytest
from click.testing import CliRunner
from nbgrader.api import Gradebook

from autograder.commands.main import main
from autograder.course.authoring.rubrics import Rubric
from autograder.intake.notebook import manifest
from autograder.marking.chapter_reader import ChapterReader
from autograder.marking.marks import Marks
from autograder.marking.questions import MarkState
from autograder.marking.server import local_time

from .conftest import CHAPTER, EXERCISE, QUESTION, answers_to, text_of, versions_of, write_answer

ATTACK = '<script>alert(1)</script><img src="x" onerror="alert(2)">[a](javascript:alert(3))'


def test_group_is_marked_and_undone(visit, course):
    async def steps(client):
        xsrf, members = await client.page()
        data = {"members": members[0], "points": 3, "comment": "Good."}
        given = await client.ask(f"/question/{QUESTION}/give", data=data, X_XSRFToken=xsrf)
        assert given.code == 200
        assert [answers_to(course)[name].state for name in ("ada", "cyd")] == [MarkState(3.0, False, "Good.")] * 2
        assert "a marker" in (await client.ask("/history")).body.decode()
        undone = await client.ask("/undo", data={"entry": json.loads(given.body)["entry"]}, X_XSRFToken=xsrf)
        assert json.loads(undone.body) == {"undone": 2, "skipped": 0, "names": []}

    visit(steps)
    assert ChapterReader(course, CHAPTER).question(QUESTION).waiting == 4


@pytest.mark.parametrize("name", [QUESTION, EXERCISE])
def test_a_click_opens_the_gradebook_once_and_reads_the_chapter_once(visit, course, name):
    (course.root / "course.toml").write_text(f"[chapters.{CHAPTER}]\ndue = 2026-03-28T12:00:00\n", encoding="utf-8")

    async def steps(client):
        xsrf, members = await client.page(name)
        data = {"members": members[0], "points": 1, "comment": "Why?"}
        with (
            patch.object(Gradebook, "__init__", autospec=True, side_effect=Gradebook.__init__) as opened,
            patch.object(manifest, "read_manifest", wraps=manifest.read_manifest) as read,
        ):
            given = await client.ask(f"/question/{name}/give", data=data, X_XSRFToken=xsrf)
            assert (given.code, opened.call_count, read.call_count) == (200, 1, 1)
            undone = await client.ask("/undo", data={"entry": json.loads(given.body)["entry"]}, X_XSRFToken=xsrf)
            assert (undone.code, opened.call_count, read.call_count) == (200, 2, 2)

    visit(steps)


@pytest.mark.parametrize(
    "changed",
    [
        {"points": 9},
        {"points": "9"},
        {"points": "0.5.0"},
        {"points": True},
        {"comment": None},
        {"members": []},
        {"comment": "a" * 20_001},
    ],
)
def test_malformed_mark_is_refused(visit, course, changed):
    async def steps(client):
        xsrf, members = await client.page()
        data = {"members": members[0], "points": 1, "comment": ""} | changed
        response = await client.ask(f"/question/{QUESTION}/give", data=data, X_XSRFToken=xsrf)
        assert response.code == 400
        assert "Traceback" not in response.body.decode()

    visit(steps)
    assert ChapterReader(course, CHAPTER).question(QUESTION).waiting == 4


def test_overview_counts_unreadable_notebooks(visit, course):
    (course.folder("autograded", "bob", CHAPTER) / f"{CHAPTER}.ipynb").unlink()

    assert "1 missing" in text_of(visit, "/")


def test_command_names_unreadable_notebooks(course, monkeypatch):
    monkeypatch.setattr("autograder.commands.mark.asyncio.run", lambda page: page.close())
    (course.folder("autograded", "bob", CHAPTER) / f"{CHAPTER}.ipynb").write_text("{", encoding="utf-8")
    done = CliRunner().invoke(main, ["mark", CHAPTER, "--no-browser", "--course", str(course.root)])
    assert done.exit_code == 0, done.output
    assert "bob" in done.stderr
    assert f"regrade {CHAPTER} --student=bob" in done.stderr


def test_markup_in_an_answer_does_nothing(visit, course):
    write_answer(course, "bob", ATTACK)

    page = text_of(visit, f"/question/{QUESTION}")
    assert "alert(2)" in page
    assert not re.search(r"<script>|<img|href=.javascript", page)


async def _marked_with_ticks(client, xsrf, members, **changed):
    page = (await client.ask(f"/question/{QUESTION}")).body.decode()
    rubric = re.search(r'data-rubric="(\w+)"', page).group(1)
    data = {"members": members, "points": "3", "comment": "", "ticks": [1, 0.5], "rubric": rubric} | changed
    return await client.ask(f"/question/{QUESTION}/give", data=data, X_XSRFToken=xsrf)


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"ticks": [1]}, 400),
        ({"ticks": [1, 0.3]}, 400),
        ({"ticks": ["1", None]}, 400),
        ({"ticks": {"0": 1, "1": 1}}, 400),
        ({"ticks": True}, 400),
        ({"rubric": "another"}, 409),
    ],
)
def test_other_ticks_are_refused(visit, course, changed, code):
    async def steps(client):
        xsrf, members = await client.page()
        answer = await _marked_with_ticks(client, xsrf, members[0], **changed)
        assert (answer.code, "Traceback" in answer.body.decode()) == (code, False)

    visit(steps)
    assert ChapterReader(course, CHAPTER).question(QUESTION).waiting == 4


@pytest.mark.parametrize("names", [False, True])
def test_changed_rubric_lists_who_moves_and_is_applied(visit, course, names):
    async def steps(client):
        xsrf, members = await client.page()
        await _marked_with_ticks(client, xsrf, members[0])
        rubric = client.application.rubric(QUESTION)
        address = f"/question/{QUESTION}/rubric"
        changed = {QUESTION: Rubric(QUESTION, rubric.answer, "- 1 point: why\n- 2 points: how")}
        client.application._rubrics = lambda: changed
        assert "since 2 answers" in (await client.ask(f"/question/{QUESTION}")).body.decode()
        page = (await client.ask(address)).body.decode()
        assert "3 → 2 points" in page
        assert ("ada, cyd" in page, "Answer 1" in page) == (names, not names)
        version = re.search(r'data-version="(\w+)"', page).group(1)
        assert (await client.ask(address, data={"version": "another"}, X_XSRFToken=xsrf)).code == 409
        applied = await client.ask(address, data={"version": version}, X_XSRFToken=xsrf)
        assert json.loads(applied.body)["moved"] == 2
        assert "Changed rubric" in (await client.ask("/history")).body.decode()

    visit(steps, names=names)
    assert [answers_to(course)[student].state.points for student in ("ada", "cyd", "bob")] == [2.0, 2.0, None]


def test_overview_counts_answers_by_marker(visit, course):
    assert "Marked by" not in text_of(visit, "/")
    for marker, student in (("ann <b>", "ada"), ("bo", "bob")):
        Marks(course, CHAPTER, marker).give(QUESTION, versions_of(course, student), 1.0, "")
    assert "ann &lt;b&gt; 1 answer, bo 1 answer" in text_of(visit, "/")


@pytest.mark.parametrize("page", [f"/question/{QUESTION}", f"/question/{EXERCISE}"])
def test_names_stand_before_ids(visit, course, page):
    with Gradebook(course.gradebook_url) as book:
        book.update_or_create_student("cyd", first_name="Cyd", last_name="Charisse")

    shown = text_of(visit, page, names=True)
    assert "Cyd Charisse (cyd)" in shown
    assert "bob" in shown
    assert not {"Charisse", "cyd"} & set(re.findall(r"\w+", text_of(visit, page)))
    assert "<p>Write it.</p>" in shown or EXERCISE not in page


@pytest.mark.parametrize(
    ("name", "rule", "note"),
    [
        (EXERCISE, 'count = "drop"', "dropped"),
        (EXERCISE, "points = 2.5", "2.5 points"),
        (QUESTION, 'points = 3\ncount = "bonus"', "3 points, a bonus"),
    ],
)
def test_rule_of_the_course_stands_beside_the_points(visit, course, name, rule, note):
    async def steps(client):
        await client.sign_in()
        return [(await client.ask(path)).body.decode() for path in ("/", f"/question/{name}")]

    assert not any("course.toml" in page for page in visit(steps))
    plan = course.root / "course.toml"
    plan.write_text(f"[chapters.{CHAPTER}.exercises.{name}]\n{rule}\n", encoding="utf-8")
    overview, page = visit(steps)
    assert f"by course.toml: {note}" in overview
    assert f"By course.toml: {note}." in page
    plan.write_text("not TOML", encoding="utf-8")
    assert all("Points, of" in page or "Questions" in page for page in visit(steps))


def test_times_are_local(monkeypatch):
    assert local_time("noon") == "noon"
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    time.tzset()
    try:
        assert local_time("2026-03-02T10:00:00+01:00") == "2026-03-02 14:45"
    finally:
        monkeypatch.undo()
        time.tzset()
