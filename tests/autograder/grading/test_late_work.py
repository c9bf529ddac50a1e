"""Late work costs what ``course.toml`` says, in ``tfcourse autograde`` and in nbgrader itself."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook
from nbgrader.converters import Autograde
from nbgrader.coursedir import CourseDirectory

from autograder.course.course_file import course_file_path
from autograder.course.folder import Course
from autograder.engine.settings import GradingSettings
from autograder.errors import CourseError
from autograder.grading.autograde import autograde
from autograder.grading.feedback.pages import write_feedback
from autograder.grading.late_work import stale_penalties
from autograder.grading.plugin import autograder_config
from autograder.grading.record.gradebook_writer import refresh_penalties
from autograder.grading.record.results import read_result
from autograder.grading.reports.feedback_archive import member_pages
from autograder.grading.reports.grades import read_grades
from autograder.grading.reports.missing import is_work_without_grade, list_gaps
from autograder.intake.downloads.journal import IntakeJournal, hash_content, write_journal
from autograder.intake.people.enrol import enrol
from autograder.marking.chapter_reader import ChapterReader
from autograder.marking.marks import Marks

from .conftest import CHAPTER
from .scripted import Scripted

PLAN = f"""
time_zone = "Europe/Warsaw"
[late]
per_day = 0.25
[chapters.{CHAPTER}]
due = 2026-03-28T12:00:00
[extensions.bo]
{CHAPTER} = 2026-03-29T12:00:00
"""
# Warsaw is one hour ahead of UTC on the 28th and two hours on the 29th.
DUE = datetime(2026, 3, 28, 11)
HANDED_IN = "2026-03-29 10:00:00 UTC"


@pytest.fixture
def late(course: Course, filled: Callable[..., Any], hand_in: Callable[..., Path], right: dict[str, str]) -> Course:
    """A course in which ann and bo handed in at one moment, on time for bo alone."""
    course_file_path(course.root).write_text(PLAN, encoding="utf-8")
    for student in ("ann", "bo"):
        hand_in(student, filled(answer="Because.", **right)).with_name("timestamp.txt").write_text(HANDED_IN)
    return course


def grade(course: Course) -> dict[str, float]:
    results = autograde(course, CHAPTER, device="cpu", make_executor=Scripted())
    assert all(result.score == 3 for result in results)
    return {result.student: result.late_penalty for result in results}


def penalties(course: Course) -> dict[str, float]:
    with Gradebook(course.gradebook_url, "tfcourse") as gradebook:
        submissions = gradebook.assignment_submissions(CHAPTER)
        return {one.student_id: one.late_submission_penalty or 0.0 for one in submissions}


def change(course: Course, old: str, new: str) -> None:
    path = course_file_path(course.root)
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new), encoding="utf-8")


def test_gradebook_has_deadline_extension_and_penalty(late: Course) -> None:
    assert grade(late) == penalties(late) == {"ann": 0.75, "bo": 0.0}
    with Gradebook(late.gradebook_url, "tfcourse") as gradebook:
        assert gradebook.find_assignment(CHAPTER).duedate == DUE
        assert gradebook.find_submission(CHAPTER, "bo").extension == timedelta(hours=23)
        seconds = {student: gradebook.find_submission(CHAPTER, student).total_seconds_late for student in ("ann", "bo")}
    assert seconds == {"ann": 23 * 3600, "bo": 0}
    change(late, "per_day", "per_dya")
    with pytest.raises(CourseError, match="line 4"):
        grade(late)


BO = f"[extensions.bo]\n{CHAPTER} = 2026-03-29T12:00:00"
# What changes in the plan or in a time, what Ann's work costs then, and whether that makes it stale.
CHANGES: dict[str, tuple[str, str, float, bool]] = {
    "an earlier deadline": ("2026-03-28T12:00:00", "2026-03-26T12:00:00", 2.25, True),
    "a later deadline within the grace of a day": ("2026-03-28T12:00:00", "2026-03-28T12:10:00", 0.75, False),
    "an extension": (BO, f"[extensions.ann]\n{CHAPTER} = 2026-04-01T00:00:00\n{BO}", 0.0, True),
    "a cap": ("per_day = 0.25", "per_day = 0.25\ncap = 0.1", 0.3, True),
    "a deadline of her own": (BO, f"[deadlines.ann]\n{CHAPTER} = 2026-03-27T12:00:00\n{BO}", 1.5, True),
    "another time": ("stamp", "Fri, 27 Mar 2026 12:00:00 +0100", 0.0, True),
    "no time any more": ("stamp", "", 0.0, True),
    "submissions moved elsewhere": ("moved", "", 0.75, False),
}


@pytest.mark.parametrize("by", ["report", "grading"])
@pytest.mark.parametrize("what", CHANGES)
def test_a_change_counts_without_running_anything(late: Course, what: str, by: str) -> None:
    old, new, cost, stale = CHANGES[what]
    grade(late)
    if old == "moved":
        (late.root / "submitted").rename(late.root / "archive")
    elif old == "stamp":
        stamp(late, "ann").write_text(new) if new else stamp(late, "ann").unlink()
    else:
        change(late, old, new)
    assert ("ann" in stale_penalties(late, CHAPTER, autograder_config(late))) is stale
    if by == "report" or old == "moved":
        assert refresh_penalties(late, [CHAPTER], autograder_config(late)) == ([] if old == "moved" else [CHAPTER])
        assert refresh_penalties(late, [CHAPTER], autograder_config(late)) == []
    else:
        assert grade(late) == pytest.approx({"ann": cost, "bo": 0.0})
        stored = read_result(late, CHAPTER, "ann")
        assert stored is not None
        assert stored.late_penalty == pytest.approx(cost)
    assert penalties(late) == pytest.approx({"ann": cost, "bo": 0.0})
    with Gradebook(late.gradebook_url, "tfcourse") as gradebook:
        minutes = {"2026-03-26T12:00:00": -2880, "2026-03-28T12:10:00": 10}.get(new, 0)
        assert gradebook.find_assignment(CHAPTER).duedate == DUE + timedelta(minutes=minutes)
        assert (gradebook.find_submission(CHAPTER, "ann").timestamp is None) is (what == "no time any more")


def test_mark_is_charged_at_once_and_result_by_next_run(late: Course) -> None:
    grade(late)
    marks = Marks(late, CHAPTER, "a marker")
    answers = {
        answer.student: answer.version for answer in ChapterReader(late, CHAPTER).question("question_root").answers
    }
    entry = marks.give("question_root", answers, 2, "").entry
    assert penalties(late) == {"ann": 1.25, "bo": 0.0}
    results = autograde(late, CHAPTER, device="cpu", make_executor=Scripted())
    assert {result.student: result.late_penalty for result in results} == penalties(late)
    marks.undo(entry.id)
    assert penalties(late) == {"ann": 0.75, "bo": 0.0}


def test_mark_is_kept_if_late_work_cannot_be_charged(late: Course, caplog: pytest.LogCaptureFixture) -> None:
    grade(late)
    change(late, "per_day", "per_dya")
    answers = {
        answer.student: answer.version for answer in ChapterReader(late, CHAPTER).question("question_root").answers
    }
    Marks(late, CHAPTER, "a marker").give("question_root", answers, 2, "")
    assert ChapterReader(late, CHAPTER).question("question_root").answers[0].state.points == 2
    assert "late work" in caplog.text


@pytest.mark.parametrize(("plan", "share"), [("", 0.25), (f"[deadlines.ann]\n{CHAPTER} = 2026-03-27T12:00:00\n", 0.5)])
def test_nbgrader_itself_charges_the_same(late: Course, plan: str, share: float) -> None:
    with course_file_path(late.root).open("a", encoding="utf-8") as file:
        file.write(plan)
    stamp(late, "ann").write_text("2026-03-29 11:55:00 CEST")  # nbgrader alone would take it for UTC, a day later
    expected = grade(late)
    with Gradebook(late.gradebook_url, "tfcourse") as gradebook:
        gradebook.find_assignment(CHAPTER).duedate = None
        for student in expected:
            submission = gradebook.find_submission(CHAPTER, student)
            submission.extension = None
            submission.notebooks[0].late_submission_penalty = 99
        gradebook.db.commit()
    config = autograder_config(late)
    for student in expected:
        directory = CourseDirectory(config=config, assignment_id=CHAPTER, student_id=student)
        Autograde(coursedir=directory, config=config, force=True).start()
    with Gradebook(late.gradebook_url, "tfcourse") as gradebook:
        for student in expected:
            notebook = gradebook.find_submission_notebook(CHAPTER, CHAPTER, student)
            cost = share * notebook.score if student == "ann" else 0.0
            assert notebook.score > 0
            assert (notebook.late_submission_penalty or 0.0) == pytest.approx(cost)
            assert gradebook.find_assignment(CHAPTER).duedate == DUE


def stamp(course: Course, student: str) -> Path:
    return course.folder("submitted", student, CHAPTER) / "timestamp.txt"


def notes(course: Course) -> dict[str, list[str]]:
    """The kinds of problems of all results."""
    results = {student: read_result(course, CHAPTER, student) for student in ("ann", "bo")}
    return {student: [one.kind for one in result.problems] for student, result in results.items() if result}


@pytest.mark.parametrize(
    ("time", "kind"),
    [
        *((time, "no time") for time in (b"28.03.2026 19:00", b"2026-03-28 19:00 CST", b"\xff\xfe", b"9" * 400)),
        ("pipe", "no time"),
        ("link", "no time"),
        (b"1970-01-01 00:00:00 UTC", "doubtful time"),
        (b"2031-01-01 10:00:00 UTC", "doubtful time"),
        ("soon", "doubtful time"),
    ],
)
def test_a_time_that_cannot_be_read_or_true_costs_nothing_and_is_named_by_every_run(
    late: Course, time: bytes | str, kind: str
) -> None:
    path = stamp(late, "ann")
    if isinstance(time, bytes):
        path.write_bytes(time)
    elif time == "soon":
        path.write_text(f"{datetime.now(UTC) + timedelta(days=3):%Y-%m-%d %H:%M:%S} UTC")
    else:
        path.unlink()
        os.mkfifo(path) if time == "pipe" else path.symlink_to(stamp(late, "bo"))
    for _ in range(2):
        assert grade(late) == penalties(late) == {"ann": 0.0, "bo": 0.0}
        assert notes(late) == {"ann": [kind], "bo": []}
        assert is_work_without_grade(list_gaps(late, read_grades(late, [CHAPTER]))) == (kind == "doubtful time")
    path.unlink()
    path.write_text("2026-03-28 19:00")  # in the course's zone
    assert grade(late) == penalties(late) == {"ann": 0.75, "bo": 0.0}
    assert notes(late) == {"ann": [], "bo": []}


def test_a_note_that_canvas_calls_it_late_holds_for_its_notebook_until_a_time_is_known(late: Course) -> None:
    stamp(late, "ann").unlink()
    grade(late)
    folder = stamp(late, "ann").parent
    digest = hash_content((folder / f"{CHAPTER}.ipynb").read_bytes())
    write_journal(late, CHAPTER, IntakeJournal(late={"ann": [digest]}))
    for _ in range(2):
        grade(late)
        assert notes(late) == {"ann": ["late"], "bo": []}
    stamp(late, "ann").write_text(HANDED_IN)
    assert grade(late) == {"ann": 0.75, "bo": 0.0}
    assert notes(late)["ann"] == []
    stamp(late, "ann").unlink()
    with (folder / f"{CHAPTER}.ipynb").open("a") as file:
        file.write("\n")  # another notebook
    grade(late)
    assert notes(late)["ann"] == []


GROUP_PLAN = f"""
time_zone = "Europe/Warsaw"
[late]
per_day = 0.5
[chapters.{CHAPTER}]
groups = true
due = 2026-03-20T12:00:00
[extensions.EXTENDED]
{CHAPTER} = 2026-03-28T12:00:00
"""


def shown(page: str) -> tuple[str, float, float | None]:
    """Name, points, and cost of lateness as a reader of the page sees them."""
    name = re.search(r"Feedback for ([^<]*)<", page)
    points = re.search(r'<p class="total"><strong>([\d.]+)</strong>', page)
    cost = re.search(r"which cost ([\d.]+) of", page)
    assert name is not None
    assert points is not None
    return name[1].strip(), float(points[1]), float(cost[1]) if cost else None


@pytest.mark.parametrize(("extended", "late"), [("ada", {"bo", "cy"}), ("bo", {"ada", "cy"})])
def test_a_page_is_its_readers(
    course: Course,
    filled: Callable[..., Any],
    hand_in: Callable[..., Path],
    tmp_path: Path,
    extended: str,
    late: set[str],
) -> None:
    (tmp_path / "class.csv").write_text("id,name,group\nada,Ada Ames,T\nbo,Bo Beck,T\ncy,Cy Cox,T\ndee,Dee Dow,U\n")
    enrol(course, tmp_path / "class.csv")
    (course.root / "course.toml").write_text(GROUP_PLAN.replace("EXTENDED", extended), encoding="utf-8")
    hand_in("ada", filled()).with_name("timestamp.txt").write_text("2026-03-21 11:00")
    autograde(course, CHAPTER, device="cpu", settings=GradingSettings(seed=7), make_executor=Scripted())
    (page,) = write_feedback(course, CHAPTER, autograder_config(course))
    pages = {
        student: content.decode() for student, content in member_pages(course, CHAPTER, ["bo", "cy", "dee"]).items()
    }
    assert sorted(pages) == ["bo", "cy"], "nobody has handed in for Dee"
    pages["ada"] = page.read_text(encoding="utf-8")
    # Three exercises give a point each; a day costs half of them.
    for student, name in (("ada", "Ada Ames (ada)"), ("bo", "Bo Beck (bo)"), ("cy", "Cy Cox (cy)")):
        assert shown(pages[student]) == (name, 1.5 if student in late else 3.0, 1.5 if student in late else None)
        others = {"Ada Ames", "Bo Beck", "Cy Cox"} - {name.partition(" (")[0]}
        assert not any(other in pages[student] for other in others)
