"""The servers for one browser, for marking, the live view and conversations, as another site and another program meet them."""

from __future__ import annotations

import asyncio
import re
import webbrowser

import pytest
from click.testing import CliRunner

from autograder.commands.mark import mark
from autograder.marking import server as marking_server
from autograder.marking.chapter_reader import ChapterReader
from autograder.marking.live_view import LiveApplication
from autograder.marking.server import MarkingApplication
from autograder.quizzes.viva.live_view import server as viva_server
from autograder.quizzes.viva.live_view.server import VivaApplication
from tests.autograder.viva.conftest import interviews

from .conftest import CHAPTER, EXERCISE, QUESTION, REFERENCE, Client, write_answer

SERVERS = {
    "marking": lambda course: MarkingApplication(course, CHAPTER, "a marker", dict),
    "live": lambda course: LiveApplication(ChapterReader(course, CHAPTER)),
    "viva": lambda course: VivaApplication(course, CHAPTER, interviews(), "an assistant"),
}
CODE = f"/question/{EXERCISE}"
PAGES = [
    *(("marking", path) for path in ("/", f"/question/{QUESTION}", CODE, f"{CODE}/code/{'0' * 16}", "/history")),
    *(("marking", path) for path in ("/static/mark.js", "/static/mark.css", "/static/members.js", "/missing")),
    *(("live", path) for path in ("/", "/state", "/static/live.js")),
    *(("viva", path) for path in ("/", "/student/ada", "/student/nobody", "/viva/viva.css", "/static/mark.css")),
]
FORMS = [
    *(("marking", path) for path in (f"/question/{QUESTION}/give", f"{CODE}/give", "/undo")),
    ("marking", f"/question/{QUESTION}/rubric"),
    ("viva", "/student/ada"),
]


@pytest.fixture
def meet(course):
    """Return a function that runs a visit to one of the servers."""

    def run(name, steps):
        async def met():
            client = Client(SERVERS[name](course))
            server, client.address = client.application.listen_locally()
            try:
                await steps(client)
            finally:
                server.stop()
                await server.close_all_connections()

        asyncio.run(met())

    return run


@pytest.mark.parametrize("name", SERVERS)
def test_a_token_becomes_a_strict_cookie_of_this_server_alone(meet, name):
    async def steps(client):
        app = client.application
        assert (await client.ask("/open?token=wrong")).code == 403
        assert (await client.ask(f"/open?token={app.token}", Host="evil.example")).code == 403
        assert app.cookie_name not in client.cookies
        response = await client.sign_in()
        assert (response.code, response.headers["Location"]) == (302, "/")
        (line,) = response.headers.get_list("Set-Cookie")
        assert re.fullmatch(rf"{app.cookie}_\d+=.*", line)
        assert {"HttpOnly", "SameSite=Strict"} <= set(line.split("; "))
        assert app.token not in line
        client.cookies[app.cookie_name] = "another"
        assert (await client.ask("/")).code == 403

    meet(name, steps)
    assert marking_server.COOKIE != viva_server.COOKIE


@pytest.mark.parametrize(("name", "path"), PAGES)
def test_a_page_is_for_the_cookie_the_host_and_the_origin_and_loads_nothing_else(meet, name, path):
    async def steps(client):
        assert (await client.ask(path)).code == 403
        await client.sign_in()
        response = await client.ask(path)
        assert response.code == (404 if re.search("missing|nobody|000", path) else 200)
        policy = response.headers["Content-Security-Policy"].split("; ")
        assert {"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"} <= {*policy}
        assert "unsafe" not in str(policy)
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Referrer-Policy"] in ("same-origin", "no-referrer")
        for other in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"}):
            assert (await client.ask(path, **other)).code == 403

    meet(name, steps)


@pytest.mark.parametrize(("name", "path"), FORMS)
def test_writing_needs_the_xsrf_token(meet, course, snapshot, name, path):
    before = snapshot(course.root)

    async def steps(client):
        await client.sign_in()
        page = (await client.ask(f"/question/{QUESTION}" if name == "marking" else path)).body.decode()
        token = re.search(r'name="_?xsrf" (?:content|value)="([^"]*)"', page)[1]
        answers = [
            (await client.ask(path, data={}, **sent)).code
            for sent in ({}, {"X_XSRFToken": "wrong"}, {"X_XSRFToken": token})
        ]
        assert answers[:2] == [403, 403]
        assert answers[2] in (400, 404, 409)

    meet(name, steps)
    assert snapshot(course.root) == before


@pytest.mark.parametrize("path", [CODE, f"{CODE}/give", "/undo", "/history"])
def test_the_live_server_has_no_marking_address(meet, path):
    async def steps(client):
        await client.sign_in()
        assert (await client.ask(path)).code == 404
        assert (await client.ask(path, data={})).code in (403, 404)

    meet("live", steps)


@pytest.fixture
def started(course, monkeypatch):
    """Return a function that runs the command up to the moment when it waits, and returns its output and what the browser opened."""

    async def stop(event):
        return True

    def run(*options):
        opened = []
        monkeypatch.setattr(asyncio.Event, "wait", stop)
        monkeypatch.setattr(webbrowser, "open", opened.append)
        done = CliRunner().invoke(mark, ["03", "--course", str(course.root), *options])
        assert done.exit_code == 0, done.output
        return done.output, opened

    return run


def _addresses(output):
    return re.findall(r"http://127\.0\.0\.1:\d+/open\?token=\S+", output)


def test_marking_page_opens_in_the_browser(started):
    output, opened = started()
    assert _addresses(output) == opened
    assert re.search("4 answers wait, 4 code answers", output)


def test_only_the_live_view_opens_for_a_projector(started):
    output, opened = started("--live")
    marking, live = _addresses(output)
    assert opened == [live] != [marking]
    assert "token=" + marking.partition("token=")[2] not in live


def test_no_browser_opens_when_told_so(started):
    output, opened = started("--live", "--no-browser")
    assert (len(_addresses(output)), opened) == (2, [])


RUBRIC = "### BEGIN SOLUTION\n<!-- canary -->\n**Model answer**\n\nBecause.\n\n**Marks**\n\n- 4 points: why\n### END SOLUTION"


@pytest.mark.parametrize("has_rubric", [True, False])
def test_a_course_folder_without_the_project_has_its_rubrics(started, course, tmp_path, monkeypatch, has_rubric):
    if has_rubric:
        write_answer(course, ".", RUBRIC, "source", REFERENCE)
    monkeypatch.chdir(tmp_path)
    output, _ = started()
    assert ("no rubrics" in output) is not has_rubric
