"""``tfcourse viva`` refuses what it cannot use with a message that says what to do, and starts the page for conversations."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
import socket
import webbrowser
import zipfile

import pytest
from click.testing import CliRunner

from autograder.commands.main import main
from autograder.engine.settings import GradingSettings
from autograder.grading.record.viva_journal import VivaAnswer, VivaJournal
from autograder.intake.roster import Student, write_roster
from autograder.quizzes.viva import interviews as interviews_module
from autograder.quizzes.viva.interviews import USUAL, last_question_count

from .conftest import CHAPTER, interviews


def run(*words):
    """Run the command and return its exit code and what it printed."""
    done = CliRunner().invoke(main, ["viva", *map(str, words)])
    return done.exit_code, done.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("99",), "'99'"),
        (("04",), "'04'"),
        ((f"{CHAPTER}_viva",), "03_scaled_dot_product?"),
        ((f"chapters/{CHAPTER}",), "03_scaled_dot_product?"),
        (("03", "--questions", "0"), "0 is not in the range 1<=x<=12"),
        (("03", "--questions", "13"), "13 is not in the range 1<=x<=12"),
        (("03", "--questions", "many"), "'many' is not a valid integer range"),
        (("03", "--port", "8080"), "--live"),
        (("03", "--marker", "x"), "--live"),
        ((), "Missing argument 'CHAPTER'"),
    ],
)
def test_a_wrong_argument_is_refused_with_the_reason(course, words, message):
    code, output = run(*words, "--course", course.root)
    assert (code, message in output) == (2, True), output
    assert not (course.root / "viva").exists()


def test_a_damaged_journal_is_named(course):
    path = course.root / "viva" / CHAPTER / "answers.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("no JSON\n")
    code, output = run("03", "--course", course.root)
    assert (code, "line 1 is damaged" in output, "answers.jsonl" in output) == (2, True, True)


@pytest.fixture
def started(course, monkeypatch):
    """Return a function that runs the command with made questions up to the moment when the page waits."""

    async def stop(event):
        return True

    counts = []

    def made(course, chapter, count, settings, **_):
        counts.append(count)
        return interviews()

    def start(*options):
        opened = []
        monkeypatch.setattr(asyncio.Event, "wait", stop)
        monkeypatch.setattr(webbrowser, "open", opened.append)
        monkeypatch.setattr(interviews_module, "make_interviews", made)
        done = CliRunner().invoke(main, ["viva", "03", "--course", str(course.root), *options])
        return done, opened, counts[-1]

    return start


def test_the_page_opens_in_the_browser(started):
    done, opened, count = started("--live")
    assert done.exit_code == 0, done.output
    assert re.findall(r"http://127\.0\.0\.1:\d+/open\?token=\S+", done.output) == opened
    assert count == USUAL
    done, opened, count = started("--live", "--no-browser", "--questions", "3")
    assert (done.exit_code, opened, count) == (0, [], 3)


def test_without_live_nothing_is_served(started, course):
    done, opened, _ = started("--json")
    assert opened == []
    assert json.loads(done.stdout)["students"]["bob"]["questions"] == 3
    assert (course.root / "viva" / CHAPTER / "keys.html").is_file()


def test_a_used_port_is_refused(started):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done, opened, _ = started("--live", "--port", str(taken.getsockname()[1]))
    assert (done.exit_code, opened) == (2, [])
    assert "--port" in done.output


def test_the_number_of_questions_is_that_of_the_last_run(course, started):
    folder = course.root / "viva" / CHAPTER / "students"
    folder.mkdir(parents=True)
    assert last_question_count(course, CHAPTER) == USUAL
    (folder / "ada.json").write_text('{"requested": 6}')
    assert last_question_count(course, CHAPTER) == 6
    assert started()[2] == 6
    (folder / "ada.json").write_text("damaged")
    assert last_question_count(course, CHAPTER) == USUAL


def test_a_package_that_cannot_make_questions_is_refused_before_anything_runs(course):
    code, output = run("03", "--course", course.root)
    assert (code, "has no student package that can make questions" in output, "tfcourse assign" in output) == (
        2,
        True,
        True,
    )


def test_a_student_who_has_answered_keeps_the_questions(course):
    (_, bob, _) = interviews()
    kept = dataclasses.replace(bob, student="fay", name="fay", made_from="made of earlier code")
    interviews_module._write_interview(course, CHAPTER, kept)

    def runs(settings):
        raise AssertionError("fay's code is run")

    package = course.root / "package.whl"
    with zipfile.ZipFile(package, "w") as wheel:
        wheel.writestr("autograder/quizzes/questions/with_recordings.py", "")
    settings = GradingSettings(seed=5, package=str(package))

    def made():
        return interviews_module.make_interviews(course, CHAPTER, 4, settings, make_executor=runs)

    with pytest.raises(AssertionError, match="fay's code is run"):
        made()
    answer = VivaAnswer("causal_mask", 0, False)
    VivaJournal(course, CHAPTER).answer("fay", "x", kept.made_from, kept.count, 0, answer)
    assert {item.student: item for item in made()}["fay"] == kept
    write_roster(course, {"fay": Student("fay", state="withdrawn")})
    assert "fay" not in {item.student for item in made()}
