"""Progress where no terminal is: a line for each step, and one for a step that goes on."""

from __future__ import annotations

import pytest

from autograder.commands.console import progress_bar


def test_a_step_that_goes_on_gets_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("build") as step:
        for text in (
            "students' files",
            "reading sources... [ 3%] a",
            "reading sources... [50%] b",
            "writing output... [ 1%] a",
        ):
            step(text)
        step("searching")
        step("searching")
    assert capsys.readouterr().err.splitlines() == [
        "build: students' files",
        "build: reading sources... [ 3%] a",
        "build: writing output... [ 1%] a",
        "build: searching",
        "build: searching",
    ]
