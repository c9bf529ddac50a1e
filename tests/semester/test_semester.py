"""A semester with three chapters of one's own choice and a class of 40: the commands print what the page shows."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder.course.release import student_build
from autograder.marking.questions import MarkState

from .changed_check import CHANGED
from .downloads import CANVAS_CHAPTER
from .play import (
    CODE_COMMENT,
    CODE_EXERCISE,
    CODE_POINTS,
    COMMANDS,
    COMMENT,
    DRY_RUN,
    PLAN,
    PROJECT,
    Semester,
    play_semester,
)

PAGE = PROJECT / "book" / "semester.md"


@pytest.fixture(scope="module")
def semester(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Semester]:
    """A semester that was played to its end."""
    with pytest.MonkeyPatch.context() as patch:
        # nbgrader calls alembic by its name when it makes a gradebook; it lies beside this Python.
        patch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        folder = tmp_path_factory.mktemp("semester")
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        patch.chdir(PROJECT)
        # Recorded answers are for checks at home and take half a minute per chapter.
        patch.setattr(student_build, "_read_recordings", lambda root, chapter: {})
        yield play_semester(folder, patch)


def test_page_has_plan_and_commands_of_script_in_order() -> None:
    blocks = re.findall(r"```shell\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    commands = [line for block in blocks for line in block.splitlines() if line.startswith("tfcourse ")]
    assert tuple(commands) == COMMANDS
    assert f"`{DRY_RUN}`" in PAGE.read_text(encoding="utf-8")
    assert f"```toml\n{PLAN}```" in PAGE.read_text(encoding="utf-8")


def test_page_shows_what_commands_print(semester: Semester) -> None:
    shown = re.findall(r"```shell\n(.*?)\n```\n\n```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert [command for command, _ in shown] == list(COMMANDS)
    for command, lines in shown:
        position = 0
        for part in filter(None, (part.strip() for line in lines.splitlines() for part in line.split("…"))):
            assert part in semester.output[command][position:], (command, part)
            position = semester.output[command].index(part, position) + len(part)


def test_marks_survive_changed_check(semester: Semester) -> None:
    before, after = semester.scores
    moved = {student for student in before if before[student] != after[student]}
    assert len(moved) >= 5
    assert f"{len(moved)} moved" in semester.output[COMMANDS[-1]]
    assert f"{len(moved)} would move" in semester.output[DRY_RUN]
    assert CHANGED in semester.output[COMMANDS[-1]]
    assert (semester.answers(), semester.code_answers()) == (semester.marks, semester.code_marks)
    assert not any(state.waiting for state in semester.marks.values())
    assert {state.points for state in semester.marks.values()} == {0.0, 0.5, 1.0, 1.5, 2.0}
    assert COMMENT in {state.comment for state in semester.marks.values()}


def test_comment_reaches_all_who_made_the_mistake(semester: Semester) -> None:
    group, given = set(semester.group), MarkState(CODE_POINTS, False, CODE_COMMENT)
    assert len(group) >= 3
    assert {student for student, state in semester.code_marks.items() if state == given} == group
    assert {semester.code_marks[student] for student in semester.code_marks.keys() - group} == {
        MarkState(None, False, None)
    }
    with Gradebook(semester.course.gradebook_url, "tfcourse") as gradebook:
        cells = [
            gradebook.find_grade(f"test_{CODE_EXERCISE}", CANVAS_CHAPTER, CANVAS_CHAPTER, student) for student in group
        ]
        assert {cell.score for cell in cells} == {CODE_POINTS}
        assert CODE_POINTS not in {cell.auto_score for cell in cells}
    pages = {path.parents[1].name: path for path in semester.course.root.glob(f"feedback/*/{CANVAS_CHAPTER}/*.html")}
    assert {student for student, page in pages.items() if CODE_COMMENT in page.read_text(encoding="utf-8")} == group
