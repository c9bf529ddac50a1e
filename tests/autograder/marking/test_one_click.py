"""A click on the marking page reads the chapter once and opens the gradebook once."""

from __future__ import annotations

import json

import pytest
from nbgrader.api import Gradebook

from autograder.course.course_file import course_file_path
from autograder.intake.notebook import manifest

from .conftest import CHAPTER, EXERCISE, QUESTION


@pytest.mark.parametrize("name", [QUESTION, EXERCISE])
@pytest.mark.parametrize("due", [False, True])
def test_giving_a_mark_and_taking_it_back_open_the_gradebook_once_each(visit, course, monkeypatch, name, due):
    if due:
        course_file_path(course.root).write_text(f"[chapters.{CHAPTER}]\ndue = 2026-03-28T12:00:00\n", encoding="utf-8")
    opened, read = [], []
    begin, read_manifest = Gradebook.__init__, manifest.read_manifest

    def counted(gradebook, *arguments, **options):
        opened.append(arguments)
        begin(gradebook, *arguments, **options)

    def counted_read(*arguments):
        read.append(arguments)
        return read_manifest(*arguments)

    async def steps(client):
        xsrf, groups = await client.page(name)
        monkeypatch.setattr(Gradebook, "__init__", counted)
        monkeypatch.setattr(manifest, "read_manifest", counted_read)
        data = {"members": groups[0], "points": 1, "comment": "Why?"}
        given = await client.ask(f"/question/{name}/give", data=data, X_XSRFToken=xsrf)
        assert given.code == 200
        assert (len(opened), len(read)) == (1, 1)
        await client.ask("/undo", data={"entry": json.loads(given.body)["entry"]}, X_XSRFToken=xsrf)
        assert (len(opened), len(read)) == (2, 2)

    visit(steps)
