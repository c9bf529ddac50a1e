"""``tfcourse mark`` starts its servers, says where they are, and opens one page."""

from __future__ import annotations

import asyncio
import re
import webbrowser

import pytest
from click.testing import CliRunner

from autograder.commands.mark import mark

from .conftest import REFERENCE, write_answer


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
    assert ("have no rubrics" in output) is not has_rubric
