"""Whenever the grader ends, it goes on where it was, and the grades are those of a run that nobody disturbed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook

from autograder.course.folder import Course
from autograder.course.lock import course_lock
from autograder.errors import CourseError
from autograder.grading.autograde import autograde
from autograder.grading.record.journal import (
    BEGUN,
    FAILED,
    NO_STATE,
    RECORDED,
    STALE,
    SubmissionState,
    open_journal,
    read_events,
    submission_states,
)
from tests.faults.grades import written

from .conftest import CHAPTER, EXERCISES, put
from .killed import ends_after
from .scripted import Scripted

STUDENTS = ("ada", "ben", "cem")


# ------------------------------------------------------------------------------------------------------------- the file


@pytest.fixture
def empty(tmp_path: Path) -> Course:
    return Course(tmp_path)


def test_the_last_word_about_a_submission_counts(empty: Course) -> None:
    with open_journal(empty, "03") as journal:
        for student in ("ada", "ben", "cem", "dee"):
            journal.record_begin(student, "hash")
        for student in ("ada", "ben", "cem"):
            journal.record_end(student, score=1.0)
        journal.mark_stale(["ben"])
        journal.write(FAILED, student="cem")
    assert submission_states(empty, "03")["cem"].failed_submission == ""
    words = {student: standing.last_event for student, standing in submission_states(empty, "03").items()}
    assert words == {"ada": RECORDED, "ben": STALE, "cem": FAILED, "dee": BEGUN}
    assert submission_states(empty, "04") == {}


def test_what_was_lost_is_remembered_until_it_is_recorded(empty: Course) -> None:
    with open_journal(empty, "03") as journal:
        journal.write(FAILED, student="ada", lost="one")
        journal.write(FAILED, student="ada", lost="")
        journal.record_begin("ada", "one")
        journal.write(FAILED, student="ada")
        journal.mark_stale(["ada"])
    assert submission_states(empty, "03")["ada"].failed_submission == "one"
    with open_journal(empty, "03") as journal:
        journal.record_end("ada")
    assert submission_states(empty, "03")["ada"].failed_submission == ""


def test_a_line_says_when_in_which_run_and_what(empty: Course) -> None:
    for _ in range(2):
        with open_journal(empty, "03") as journal:
            journal.record_end("ada", status="graded", score=2.5, seconds=0.25)
    first, second = read_events(empty, "03")
    assert (first["event"], first["student"], first["score"], first["seconds"]) == ("recorded", "ada", 2.5, 0.25)
    assert first["run"] != second["run"]
    assert first["time"] <= second["time"]


def test_what_a_person_had_settled_is_remembered_until_it_is_recorded(empty: Course) -> None:
    with open_journal(empty, "03") as journal:
        journal.record_begin("ada", "one", ["question"])
    assert submission_states(empty, "03")["ada"] == SubmissionState(BEGUN, "one", frozenset({"question"}))
    with open_journal(empty, "03") as journal:
        journal.mark_stale(["ada"])
        journal.record_begin("ada", "one")
    assert submission_states(empty, "03")["ada"].manual_cells == {"question"}
    with open_journal(empty, "03") as journal:
        journal.record_begin("ada", "two")
    assert submission_states(empty, "03")["ada"].manual_cells == set()
    with open_journal(empty, "03") as journal:
        journal.record_begin("ada", "two", ["question"])
        journal.record_end("ada")
    assert submission_states(empty, "03")["ada"] == SubmissionState(RECORDED)
    assert submission_states(empty, "03").get("ben", NO_STATE).last_event == ""


# ------------------------------------------------------------------------------------------------------------- the lock


def test_two_cannot_grade_one_course_at_once(empty: Course) -> None:
    with course_lock(empty), pytest.raises(CourseError), course_lock(empty):
        pass
    with course_lock(empty):
        pass


def test_a_grader_that_was_killed_leaves_no_lock_although_its_children_live_on(empty: Course) -> None:
    code = (
        "import subprocess, sys, time\nfrom pathlib import Path\nfrom autograder.course.folder import Course\n"
        "from autograder.course.lock import course_lock\n"
        "with course_lock(Course(Path(sys.argv[1]))):\n"
        "    child = subprocess.Popen(['sleep', '60'], stdout=subprocess.DEVNULL, close_fds=False)\n"
        "    print(child.pid, flush=True)\n    time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", code, empty.root], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    try:
        with pytest.raises(CourseError), course_lock(empty):
            pass
        process.kill()
        process.wait(30)
        os.kill(child, 0)  # it is still there
        with course_lock(empty):
            pass
    finally:
        process.stdout.close()
        os.kill(child, signal.SIGKILL)


# ------------------------------------------------------------------------------------------------- a run that is killed


def scripted(step: float) -> Scripted:
    """Return an executor that gives everybody other points."""
    names = EXERCISES[CHAPTER]
    return Scripted(
        {who: {name: n * step + i * 0.125 for i, name in enumerate(names)} for n, who in enumerate(STUDENTS)}
    )


def grade(course: Course, step: float = 0.25, *, force: bool = False) -> None:
    """Grade the course."""
    autograde(course, CHAPTER, device="cpu", force=force, make_executor=scripted(step))


@pytest.fixture
def roots(course: Course, filled: Callable[..., Any], tmp_path: Path) -> tuple[Path, Path, Path]:
    """A course in which three have handed in, one of them nonsense, and one late; the same one graded, and graded again otherwise."""
    (course.root / "secret_seed").write_text(str(2**61 - 1))
    with (course.root / "nbgrader_config.py").open("a") as config:
        config.write("\nc.LateSubmissionPlugin.penalty_method = 'zero'\n")
    with Gradebook(course.gradebook_url, "tfcourse") as gradebook:
        gradebook.update_or_create_assignment(CHAPTER, duedate="2026-03-01 00:00:00 UTC")
    for month, student in enumerate(STUDENTS, start=2):
        path = put(course, student, b"%PDF" if student == "cem" else filled(answer=f"{student} knows."))
        path.with_name("timestamp.txt").write_text(f"2026-0{month}-01 10:00:00 UTC")
    graded = Course(shutil.copytree(course.root, tmp_path / "graded"))
    grade(graded)
    again = Course(shutil.copytree(graded.root, tmp_path / "again"))
    grade(again, 0.5, force=True)
    assert len({repr(written(root)) for root in (course.root, graded.root, again.root)}) == 3
    assert written(graded.root)["ben", "notebook"][1] > 0
    return course.root, graded.root, again.root


@pytest.mark.parametrize("force", [False, True])
def test_wherever_a_run_is_killed_the_next_one_comes_to_the_same_end(
    roots: tuple[Path, Path, Path], tmp_path: Path, force: bool
) -> None:
    number, killed = int(force), True
    while killed:
        mine = Course(shutil.copytree(roots[force], tmp_path / "mine"))
        step = 0.5 if force else 0.25
        killed = ends_after(number, lambda: grade(mine, step, force=force), mine.root)  # noqa: B023
        begun = not force or any(event["event"] == STALE for event in read_events(mine, CHAPTER))
        grade(mine, step)
        assert written(mine.root) == written(roots[force + begun]), f"killed before change {number}"
        shutil.rmtree(mine.root)
        number += 7
    assert number > 60, "it was hardly ever killed"


# ------------------------------------------------------------------------------------------------------- the secret seed


def test_a_courses_seed_is_drawn_once_and_for_its_owners_eyes(tmp_path: Path) -> None:
    course, other = Course(tmp_path / "one"), Course(tmp_path / "two")
    for each in (course, other):
        each.root.mkdir()
    seed = course.secret_seed()
    assert course.secret_seed() == seed != other.secret_seed()
    assert 2**61 <= seed < 2**62
    (path,) = course.root.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(("seed", "kept"), [(2**61 + 5, True), (5, False)], ids=["secret", "configured"])
def test_a_seed_that_was_lost_is_taken_from_what_was_graded_with_it(tmp_path: Path, seed: int, kept: bool) -> None:
    for name, text in (("ada", "half of it, {"), ("ben", json.dumps({"seed": seed}))):
        path = tmp_path / "results" / CHAPTER / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert (Course(tmp_path).secret_seed() == seed) is kept
    assert Course(tmp_path).secret_seed() == int((tmp_path / "secret_seed").read_text())


@pytest.mark.parametrize("content", ["", "twelve", "-3", "1.5"])
def test_a_seed_that_is_none_is_refused_and_left_alone(tmp_path: Path, content: str) -> None:
    (tmp_path / "secret_seed").write_text(content)
    with pytest.raises(CourseError, match="integer"):
        Course(tmp_path).secret_seed()
    assert (tmp_path / "secret_seed").read_text() == content
