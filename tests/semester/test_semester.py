"""A semester with three chapters of one's own choice and a class of 40: the numbers agree after every command."""

from __future__ import annotations

import csv
import os
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder.marking.questions import MarkState
from autograder.release import student_build
from autograder.roster.roster import read_roster, submitted_folders

from .changed_check import CHANGED
from .downloads import CANVAS_CHAPTER, MOODLE_CHAPTER
from .play import (
    CODE_COMMENT,
    CODE_EXERCISE,
    CODE_POINTS,
    COMMANDS,
    COMMENT,
    DRY_RUN,
    PLAN,
    PROJECT,
    STUDENTS,
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
        patch.setattr(student_build, "_recordings", lambda root, chapter: {})
        yield play_semester(folder, patch)


def test_page_has_commands_of_script_in_order() -> None:
    blocks = re.findall(r"```shell\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    commands = [line for block in blocks for line in block.splitlines() if line.startswith("tfcourse ")]
    assert tuple(commands) == COMMANDS
    assert len(COMMANDS) == 10
    assert f"`{DRY_RUN}`" in PAGE.read_text(encoding="utf-8")


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
    assert list(semester.agreements) == list(COMMANDS[2:])
    assert {command: done.disagreements for command, done in semester.agreements.items() if done.disagreements} == {}
    assert semester.agreements[COMMANDS[2]].compared.keys() == {"csv", "report", "canvas", "feedback"}
    assert all(done.compared["canvas"] >= STUDENTS - 2 for done in semester.agreements.values())
    assert semester.agreements[COMMANDS[-1]].compared["moodle"] == STUDENTS
    assert (
        semester.agreements[COMMANDS[-1]].compared["feedback"] == semester.agreements[COMMANDS[-1]].compared["report"]
    )


def test_class_on_two_platforms_has_one_id_each(semester: Semester) -> None:
    ids = {person.canvas_id for person in semester.people}
    assert len(ids) == STUDENTS
    with Gradebook(semester.course.gradebook_url, "tfcourse") as gradebook:
        assert {student.id for student in gradebook.students} == ids
    roster = read_roster(semester.course)
    assert roster.keys() == submitted_folders(semester.course) == ids
    assert {student.platform_of(MOODLE_CHAPTER) for student in roster.values()} == {"moodle"}
    assert f"{STUDENTS} on the class list, {STUDENTS} of them handed in something" in semester.run("students")


def test_student_without_submission_is_counted(semester: Semester) -> None:
    (absent,) = [person for person in semester.people if CANVAS_CHAPTER not in person.works]
    assert all("1 on the class list handed in nothing" in semester.output[command] for command in COMMANDS[2:4])
    assert "handed in nothing" not in semester.output[COMMANDS[4]]
    line = f"{CANVAS_CHAPTER}: 1 handed in nothing, 0 points in the file: {absent.name}\n"
    assert line in semester.output["tfcourse export"]
    with (semester.course.root / "export" / "grades.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["assignment"] == CANVAS_CHAPTER]
    nothing = [row for row in rows if not row["timestamp"] and row["student_id"] == absent.canvas_id]
    assert (len(rows), [float(row["score"]) for row in nothing]) == (STUDENTS, [0.0])
    report = (semester.course.root / "report.html").read_text(encoding="utf-8")
    section = report.partition(f'<h2 id="{CANVAS_CHAPTER}">')[2].partition("<h2 ")[0]
    assert '<span class="big">1</span> nothing handed in' in section
    (row,) = [row for row in section.split("<tr>") if '<span class="pill warn">nothing handed in</span>' in row]
    assert absent.name in row


def test_second_submission_replaces_first(semester: Semester) -> None:
    assert len(semester.again) >= 4
    output = semester.output[COMMANDS[3]]
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
    assert f"{len(moved)} would move" in semester.output[DRY_RUN]
    assert CHANGED in semester.output[COMMANDS[-1]]
    assert semester.answers() == semester.marks
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


def test_comment_to_group_survives_changed_check(semester: Semester) -> None:
    assert semester.code_answers() == semester.code_marks


def test_feedback_archive_has_one_page_per_student(semester: Semester) -> None:
    with zipfile.ZipFile(semester.course.root / "export" / f"feedback_canvas_{CANVAS_CHAPTER}.zip") as archive:
        numbers = sorted(int(name.split("_")[1]) for name in archive.namelist())
        pages = [archive.read(name).decode() for name in archive.namelist()]
    handed_in = [person.number for person in semester.people if CANVAS_CHAPTER in person.works]
    assert numbers == handed_in
    assert sum(COMMENT in page for page in pages) == sum(state.comment == COMMENT for state in semester.marks.values())
    assert sum(CODE_COMMENT in page for page in pages) == len(semester.group)


def test_chapter_without_submissions_is_left_out(semester: Semester) -> None:
    assert "nothing was handed in: 07_decoding" in semester.output["tfcourse export"]
    assert f"report on {MOODLE_CHAPTER}, {CANVAS_CHAPTER}, 07_decoding" in semester.output["tfcourse report"]
