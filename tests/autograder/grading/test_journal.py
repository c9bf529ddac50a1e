"""Whenever the grader ends, it goes on where it was, and the grades are those of a run that nobody disturbed."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook

from autograder.course.folder import Course
from autograder.course.lock import course_lock
from autograder.errors import CourseError
from autograder.record.journal import (
    BEGUN,
    FAILED,
    NO_STATE,
    RECORDED,
    STALE,
    SubmissionState,
    events,
    journal_path,
    open_journal,
    submission_states,
)
from tests.faults.grades import written

from .conftest import CHAPTER, put
from .crash_server import POINTS

ENTRY_POINT = Path(sys.executable).parent / "tfcourse"
STUDENTS = ("ada", "ben", "cem", "dee", "eve")
SEED = "2305843009213693951"


# ------------------------------------------------------------------------------------------------------------- the file


@pytest.fixture
def empty(tmp_path: Path) -> Course:
    return Course(tmp_path)


def test_the_last_word_about_a_submission_counts(empty: Course) -> None:
    with open_journal(empty, "03") as journal:
        for student in ("ada", "ben", "cem", "dee"):
            journal.begun(student, "hash")
        for student in ("ada", "ben", "cem"):
            journal.recorded(student, score=1.0)
        journal.stale(["ben"])
        journal.write(FAILED, student="cem")
    assert submission_states(empty, "03")["cem"].failed_submission == ""
    words = {student: standing.last_event for student, standing in submission_states(empty, "03").items()}
    assert words == {"ada": RECORDED, "ben": STALE, "cem": FAILED, "dee": BEGUN}
    assert submission_states(empty, "04") == {}


def test_what_was_lost_is_remembered_until_it_is_recorded(empty: Course) -> None:
    with open_journal(empty, "03") as journal:
        journal.write(FAILED, student="ada", lost="one")
        journal.write(FAILED, student="ada", lost="")
        journal.begun("ada", "one")
        journal.write(FAILED, student="ada")
        journal.stale(["ada"])
    assert submission_states(empty, "03")["ada"].failed_submission == "one"
    with open_journal(empty, "03") as journal:
        journal.recorded("ada")
    assert submission_states(empty, "03")["ada"].failed_submission == ""


def test_a_line_says_when_in_which_run_and_what(empty: Course) -> None:
    for _ in range(2):
        with open_journal(empty, "03") as journal:
            journal.recorded("ada", status="graded", score=2.5, seconds=0.25)
    first, second = events(empty, "03")
    assert (first["event"], first["student"], first["score"], first["seconds"]) == ("recorded", "ada", 2.5, 0.25)
    assert first["run"] != second["run"]
    assert first["time"] <= second["time"]


def test_a_damaged_line_is_not_passed_over(empty: Course) -> None:
    path = journal_path(empty, "03")
    path.parent.mkdir()
    path.write_text('{"event": "recorded", "student": "ada"}\nnonsense\n{"event": "recorded", "student": "ben"}\n')
    with pytest.raises(CourseError, match="line 2 is damaged"):
        submission_states(empty, "03")


def test_what_a_person_had_settled_is_remembered_until_it_is_recorded(empty: Course) -> None:
    with open_journal(empty, "03") as journal:
        journal.begun("ada", "one", ["question"])
    assert submission_states(empty, "03")["ada"] == SubmissionState(BEGUN, "one", frozenset({"question"}))
    with open_journal(empty, "03") as journal:
        journal.stale(["ada"])
        journal.begun("ada", "one")
    assert submission_states(empty, "03")["ada"].manual_cells == {"question"}
    with open_journal(empty, "03") as journal:
        journal.begun("ada", "two")
    assert submission_states(empty, "03")["ada"].manual_cells == set()
    with open_journal(empty, "03") as journal:
        journal.begun("ada", "two", ["question"])
        journal.recorded("ada")
    assert submission_states(empty, "03")["ada"] == SubmissionState(RECORDED)
    assert submission_states(empty, "03").get("ben", NO_STATE).last_event == ""


# ------------------------------------------------------------------------------------------------------------- the lock


def test_two_cannot_grade_one_course_at_once(empty: Course) -> None:
    with course_lock(empty):
        with pytest.raises(CourseError, match="another tfcourse is at work") as caught, course_lock(empty):
            pass
        assert "Wait" in caught.value.do
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
        with pytest.raises(CourseError, match="another tfcourse"), course_lock(empty):
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


class Server:
    """Processes that grade and end suddenly, one after the other."""

    def __init__(self, folder: Path) -> None:
        self.said = folder / "said"
        script = Path(__file__).with_name("crash_server.py")
        environment = os.environ | {"TMPDIR": str(folder), "PYTHONPATH": str(Path.cwd())}
        self.process = subprocess.Popen(
            [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def run(self, root: Path, *words: str, **how: object) -> int:
        """Grade a course and return the exit code."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        command = ["autograde", CHAPTER, "--jobs", "1", "--device", "cpu", "--course", str(root), *words]
        self.process.stdin.write(json.dumps({"words": command, "said": str(self.said), **how}) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("server"))
    yield server
    server.process.communicate(timeout=60)


@pytest.fixture(scope="module")
def handed_in(pristine: Path, filled: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course in which five students have handed something in, one of them nonsense; one is late."""
    root = tmp_path_factory.mktemp("handed_in") / "course"
    shutil.copytree(pristine, root)
    (root / "secret_seed").write_text(SEED)
    with (root / "nbgrader_config.py").open("a") as config:
        config.write("\nc.LateSubmissionPlugin.penalty_method = 'zero'\n")
    course = Course.open(root)
    with Gradebook(course.gradebook_url, "tfcourse") as gradebook:
        gradebook.update_or_create_assignment(CHAPTER, duedate="2026-03-01 00:00:00 UTC")
    for student in STUDENTS:
        path = put(course, student, b"%PDF" if student == "cem" else filled(answer=f"{student} knows."))
        path.with_name("timestamp.txt").write_text(f"2026-0{2 if student != 'dee' else 4}-01 10:00:00 UTC")
    return root


@pytest.fixture(scope="module")
def undisturbed(server: Server, handed_in: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same course, graded without any disturbance."""
    root = tmp_path_factory.mktemp("undisturbed") / "course"
    shutil.copytree(handed_in, root)
    assert server.run(root) == 0, server.said.read_text()
    found = written(root)
    assert len({value for key, value in found.items() if key[1:2] == ("grade",)}) > 3, "nothing to compare"
    assert found["dee", "notebook"][1] > 0
    return root


FORCED = ("marked stale", "begun", "after the first commit", "before the result", "Ctrl-C when begun")


@pytest.mark.parametrize(
    ("point", "forced"),
    [(point, False) for point in POINTS if point != "marked stale"] + [(point, True) for point in FORCED],
)
def test_a_run_that_ends_at_a_point_is_resumed_to_the_same_end(
    server: Server, handed_in: Path, undisturbed: Path, tmp_path: Path, point: str, forced: bool
) -> None:
    root = shutil.copytree(undisturbed if forced else handed_in, tmp_path / "course")
    before = len(events(Course(root), CHAPTER))
    stopped = "Ctrl-C" in point
    assert server.run(root, *(["--force"] if forced else []), crash=point) == (130 if stopped else -signal.SIGKILL)
    said = server.said.read_text()
    assert "Traceback" not in said
    assert not stopped or ("without --force" if forced else "1 of 5") in said
    # A copy: opening a gradebook for writing would take back half a commit before the grader gets to see it.
    assert forced or written(shutil.copytree(root, tmp_path / "looked at")) != written(undisturbed)
    assert server.run(root) == 0, server.said.read_text()
    since = [event["student"] for event in events(Course(root), CHAPTER)[before:] if event["event"] == RECORDED]
    assert set(since) == set(STUDENTS)
    assert written(root) == written(undisturbed)


def test_the_real_program_with_real_kernels_goes_on_after_it_was_killed(
    handed_in: Path, right: dict[str, str], filled: Callable[..., Any], tmp_path: Path
) -> None:
    roots = [tmp_path / name for name in ("undisturbed", "killed")]
    for root in roots:
        shutil.copytree(handed_in, root)
        for student in STUDENTS[2:]:
            shutil.rmtree(root / "submitted" / student)
        put(Course.open(root), "ada", filled(**right))
    temporary = tmp_path / "temporary"
    temporary.mkdir()

    options = ["--device", "cpu", "--allow-weaker-isolation"]

    def start(root: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [ENTRY_POINT, "autograde", CHAPTER, "--jobs", "2", "--course", root, *options],
            env=os.environ | {"TMPDIR": str(temporary)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    assert start(roots[0]).wait(300) == 0
    random_ = random.Random(5)
    for _ in range(2):
        process = start(roots[1])
        time.sleep(random_.uniform(2, 7))
        process.kill()
        process.wait(30)
    assert start(roots[1]).wait(300) == 0
    assert written(roots[1]) == written(roots[0])


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
    with pytest.raises(CourseError, match="secret seed, which is an integer"):
        Course(tmp_path).secret_seed()
    assert (tmp_path / "secret_seed").read_text() == content
