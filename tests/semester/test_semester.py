"""A semester with three chapters of one's own choice and a class of 40: the numbers agree after every command."""

from __future__ import annotations

import os
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.release import student_build

from .changed_check import CHANGED
from .downloads import CANVAS_CHAPTER, MOODLE_CHAPTER
from .play import COMMANDS, COMMENT, PLAN, PROJECT, STUDENTS, Semester, play_semester

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
        patch.setattr(student_build, "_recordings", lambda root, chapter: {})
        yield play_semester(folder, patch)


def test_page_has_commands_of_script_in_order() -> None:
    blocks = re.findall(r"```shell\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    commands = [line for block in blocks for line in block.splitlines() if line.startswith("tfcourse ")]
    assert tuple(commands) == COMMANDS
    assert len(COMMANDS) == 10


def test_page_shows_plan_of_script() -> None:
    assert f"```toml\n{PLAN}```" in PAGE.read_text(encoding="utf-8")


def test_page_is_short() -> None:
    assert len(PAGE.read_text(encoding="utf-8").split()) <= 900


def test_page_shows_what_commands_print(semester: Semester) -> None:
    shown = re.findall(r"```shell\n(.*?)\n```\n\n```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert [command for command, _ in shown] == list(COMMANDS)
    for command, lines in shown:
        position = 0
        for part in filter(None, (part.strip() for line in lines.splitlines() for part in line.split("…"))):
            assert part in semester.output[command][position:], (command, part)
            position = semester.output[command].index(part, position) + len(part)


def test_numbers_agree_after_every_command(semester: Semester) -> None:
    assert list(semester.agreements) == list(COMMANDS[1:])
    assert {command: done.disagreements for command, done in semester.agreements.items() if done.disagreements} == {}
    assert semester.agreements[COMMANDS[1]].compared.keys() == {"csv", "report", "canvas", "feedback"}
    assert all(done.compared["canvas"] >= STUDENTS - 2 for done in semester.agreements.values())
    assert semester.agreements[COMMANDS[-1]].compared["moodle"] == STUDENTS
    assert (
        semester.agreements[COMMANDS[-1]].compared["feedback"] == semester.agreements[COMMANDS[-1]].compared["report"]
    )


def test_second_submission_replaces_first(semester: Semester) -> None:
    assert len(semester.again) >= 4
    output = semester.output[COMMANDS[2]]
    assert all(f"{CANVAS_CHAPTER}-1.ipynb" in line for line in output.splitlines() if "replaces an earlier" in line)
    assert output.count("replaces an earlier submission") == len(semester.again)


def test_late_work_is_charged_and_extension_spares(semester: Semester) -> None:
    charged, spared = semester.late
    for scores in semester.scores:
        raw, penalty = scores[charged]
        assert raw > 0
        assert penalty == pytest.approx(0.2 * raw)
        assert scores[spared][0] > 0
        assert {student for student, (_, points) in scores.items() if points} == {charged}


def test_marks_survive_changed_check(semester: Semester) -> None:
    before, after = semester.scores
    moved = {student for student in before if before[student] != after[student]}
    assert len(moved) >= 5
    assert f"{len(moved)} moved" in semester.output[COMMANDS[-1]]
    assert f"{len(moved)} would move" in semester.output[COMMANDS[-2]]
    assert CHANGED in semester.output[COMMANDS[-1]]
    assert semester.answers() == semester.marks
    assert not any(state.waiting for state in semester.marks.values())
    assert {state.points for state in semester.marks.values()} == {0.0, 0.5, 1.0, 1.5, 2.0}
    assert COMMENT in {state.comment for state in semester.marks.values()}


def test_feedback_archive_has_one_page_per_student(semester: Semester) -> None:
    with zipfile.ZipFile(semester.course.root / "export" / f"feedback_canvas_{CANVAS_CHAPTER}.zip") as archive:
        numbers = sorted(int(name.split("_")[1]) for name in archive.namelist())
        pages = [archive.read(name).decode() for name in archive.namelist()]
    handed_in = [person.number for person in semester.people if CANVAS_CHAPTER in person.works]
    assert numbers == handed_in
    assert sum(COMMENT in page for page in pages) == sum(state.comment == COMMENT for state in semester.marks.values())


def test_chapter_without_submissions_is_left_out(semester: Semester) -> None:
    assert "nothing was handed in: 07_decoding" in semester.output["tfcourse export"]
    assert f"report on {MOODLE_CHAPTER}, {CANVAS_CHAPTER}, 07_decoding" in semester.output["tfcourse report"]
