"""One run after another: what is kept, what is graded again, and what stops nobody. No kernel is run."""

from __future__ import annotations

import errno
import gc
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import nbformat
import pytest
from nbgrader.api import Gradebook
from sqlalchemy.exc import OperationalError

from autograder.commands.selftest.sample_class import SAVED_AS, sample_class
from autograder.course.folder import CONFIG_NAME, Course
from autograder.course.gradebook.transactions import _UnitSession
from autograder.course.release.nbgrader_release import generate_assignment
from autograder.engine.settings import GradingSettings
from autograder.errors import CourseError
from autograder.grading import run as run_module
from autograder.grading.autograde import autograde
from autograder.grading.plugin import autograder_config
from autograder.grading.record.gradebook_writer import GradebookWriter, RecordError
from autograder.grading.record.journal import open_journal
from autograder.grading.record.provenance import Provenance
from autograder.grading.record.results import GradeResult, read_results
from autograder.intake.notebook.manifest import released_manifest

from .conftest import CHAPTER, Fill, HandIn
from .scripted import Scripted
from .test_autograde import WEAKER, gradebook_scores

LOST = Scripted(gone=("ann",))
SEED = GradingSettings(seed=1)


def run(course: Course, executor: Scripted | None = None, **options: Any) -> list[GradeResult]:
    """Grade on the CPU; everything is worth a point."""
    return autograde(course, CHAPTER, device="cpu", make_executor=executor or Scripted(), **options)


def statuses(course: Course, executor: Scripted | None = None, **options: Any) -> list[str]:
    """Grade, and return everybody's status."""
    return [result.status for result in run(course, executor, **options)]


def change_gradebook(change: Callable[[Any], Any]) -> Callable[[Course], None]:
    """Return what changes a gradebook, as a person does in the formgrader."""

    def work(course: Course) -> None:
        with Gradebook(course.gradebook_url, "tfcourse") as gradebook:
            change(gradebook)
            gradebook.db.commit()

    return work


def begin(course: Course) -> None:
    """Leave a journal of a run that ended when it had begun Ben."""
    with open_journal(course, CHAPTER) as journal:
        journal.record_begin("ben", "hash")


def take_points(gradebook: Any) -> None:
    """Change a score of Ann's."""
    grades = gradebook.find_submission(CHAPTER, "ann").notebooks[0].grades
    next(grade for grade in grades if grade.auto_score).auto_score -= 0.5


def stricter(gradebook: Any) -> None:
    """Change a test of everybody."""
    gradebook.find_source_cell("test_causal_mask", CHAPTER, CHAPTER).source += "# stricter"


def stamp(course: Course) -> None:
    """Say when Ben handed in."""
    (course.root / "submitted" / "ben" / CHAPTER / "timestamp.txt").write_text("2026-03-01 10:00:00 UTC")


# What happened between two runs, and whose grade is kept.
STALE: dict[str, tuple[Callable[[Course], Any], dict[str, Any], list[bool]]] = {
    "nothing": (lambda course: None, {}, [True, True]),
    "a time": (stamp, {}, [True, False]),
    "force": (lambda course: None, {"force": True}, [False, False]),
    "begun and not recorded": (begin, {}, [True, False]),
    "no journal": (lambda course: shutil.rmtree(course.root / "journal"), {}, [False, False]),
    "not in the gradebook": (change_gradebook(lambda book: book.remove_student("ben")), {}, [True, False]),
    "another score in the gradebook": (change_gradebook(take_points), {}, [False, True]),
    "another seed": (lambda course: None, {"settings": SEED}, [False, False]),
    "another test": (change_gradebook(stricter), {}, [False, False]),
}


@pytest.mark.parametrize("what", STALE)
def test_a_grade_is_kept_as_long_as_nothing_that_it_hangs_on_has_changed(
    course: Course, filled: Fill, hand_in: HandIn, what: str
) -> None:
    for student in ("ann", "ben"):
        hand_in(student, filled())
    run(course)
    change, options, kept = STALE[what]
    change(course)
    assert [result.unchanged for result in run(course, **options)] == kept
    options = {name: value for name, value in options.items() if name != "force"}
    executor = Scripted()
    assert [result.unchanged for result in run(course, executor, **options)] == [True, True]
    assert executor.ran == []


def test_grades_of_other_checks_are_kept_and_say_what_they_were_made_with(
    course: Course, filled: Fill, hand_in: HandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_in("ann", filled())
    (result,) = run(course, settings=WEAKER)
    made = result.provenance
    assert result.seed == course.secret_seed()
    assert (len(made.checks), made.limits, made.isolation) == (64, WEAKER.limits(), "sandbox")
    assert made.environment["nbgrader"]
    assert (len(result.submission), len(result.source)) == (64, 64)
    monkeypatch.setattr("autograder.grading.course_settings.checks_hash", lambda: "another")
    (again,) = run(course, settings=WEAKER)
    assert (again.unchanged, again.provenance.checks) == (True, made.checks)


def test_a_configured_seed_is_taken_and_only_those_asked_for_are_graded(
    course: Course, filled: Fill, hand_in: HandIn
) -> None:
    for student in ("ann", "ben", "cem"):
        hand_in(student, filled())
    with (course.root / "nbgrader_config.py").open("a") as config:
        config.write("\nc.GradingLimits.seed = 5\n")
    results = run(course, students=["cem", "ben"])
    assert [(result.student, result.status, result.seed) for result in results] == [
        ("ben", "graded", 5),
        ("cem", "graded", 5),
    ]
    assert not (course.root / "secret_seed").exists()
    assert [result.student for result in read_results(course, CHAPTER)] == ["ben", "cem"]


def test_a_failure_of_the_grader_is_named_and_tried_again(course: Course, filled: Fill, hand_in: HandIn) -> None:
    for student in ("unlucky", "ann"):
        hand_in(student, filled())
    failing = Scripted({"unlucky": None})
    first = run(course, failing)
    assert [(result.status, result.score) for result in first] == [("graded", 3.0), ("not recorded", 0.0)]
    assert "no space left" in first[1].problems[0].what
    assert [result.unchanged for result in run(course, failing)] == [True, False]


@pytest.mark.parametrize("broken", ["execute", "sanitise", "record"])
def test_what_fails_in_two_runs_gets_no_points(
    course: Course, filled: Fill, hand_in: HandIn, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    for student in ("ann", "ben"):
        hand_in(student, filled())
    executor = LOST if broken == "execute" else Scripted()
    places: dict[str, tuple[Any, str]] = {
        "sanitise": (run_module, "build_submission"),
        "record": (GradebookWriter, "record"),
    }
    owner, name = places.get(broken, (None, ""))
    real = getattr(owner, name, None)

    def refuse(*args: Any) -> Any:
        if "ann" in args[:2]:
            raise RecordError("RecursionError: maximum recursion depth exceeded", by_submission=True)
        assert real is not None
        return real(*args)

    assert statuses(course) == ["graded", "graded"]
    with monkeypatch.context() as patched:
        if real is not None:
            patched.setattr(owner, name, refuse)
        for answer in ("Another file.", "And another one."):
            hand_in("ann", filled(answer=answer))
            assert statuses(course, executor) == ["not recorded", "graded"]
            assert gradebook_scores(course.root)["ann"]["test_causal_mask"] == 0, "the earlier grade was another file's"
        assert statuses(course, executor) == ["not gradable", "graded"]
    assert statuses(course) == ["not gradable", "graded"], "unchanged"
    scores = gradebook_scores(course.root)
    assert (scores["ann"]["test_causal_mask"], scores["ben"]["test_causal_mask"]) == (0, 1)
    hand_in("ann", filled())
    assert statuses(course) == ["graded", "graded"]


@pytest.mark.parametrize("reason", ["database is locked", "database or disk is full"])
def test_a_gradebook_that_fails_costs_nobody_anything_and_a_full_disk_ends_the_run(
    course: Course, filled: Fill, hand_in: HandIn, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    for student in ("ann", "ben"):
        hand_in(student, filled())
    run(course)

    full = "full" in reason
    error = OperationalError("COMMIT", {}, sqlite3.OperationalError(reason)) if full else RecordError(reason)
    owner, name = (_UnitSession, "commit_if_requested") if full else (GradebookWriter, "record")
    monkeypatch.setattr(owner, name, Mock(side_effect=error))
    for _ in range(3):
        with pytest.raises(CourseError, match=reason) if full else nullcontext():
            assert statuses(course, force=True) == ["not recorded", "not recorded"]
    assert gradebook_scores(course.root)["ann"]["test_causal_mask"] == 1, "the same file"


def test_a_cell_that_checks_and_asserts_is_refused_before_anything_runs(
    course: Course, filled: Fill, hand_in: HandIn
) -> None:
    hand_in("ann", filled())
    path = course.folder("source", ".", CHAPTER) / f"{CHAPTER}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    cell = next(
        cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade_id") == "test_causal_mask"
    )
    cell.source = f"assert callable(causal_mask)\n{cell.source}"
    nbformat.write(notebook, path)
    generate_assignment(course.config(), CHAPTER)
    with pytest.raises(CourseError, match="test_causal_mask"):
        run(course)
    assert read_results(course, CHAPTER) == []


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"students": ["ann", "ghost"]}, "ghost"),
        ({"chapter": "99_nothing"}, "not released"),
        ({"device": "cuda"}, "no CUDA"),
        ({"jobs": 0}, "0 jobs"),
        ({"chapter": "04_multi_head"}, "no submission"),
    ],
)
def test_wrong_wishes_are_refused(
    course: Course, filled: Fill, hand_in: HandIn, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], word: str
) -> None:
    monkeypatch.setattr("autograder.engine.settings.is_cuda_available", lambda: False)
    hand_in("ann", filled())
    with pytest.raises(CourseError, match=word):
        autograde(course, **({"chapter": CHAPTER, "device": "cpu"} | options))
    assert read_results(course, CHAPTER) == []


def test_a_folder_without_its_notebook_gets_zeros_as_in_nbgrader(course: Course, filled: Fill, hand_in: HandIn) -> None:
    hand_in("ann", filled()).rename(course.root / "submitted" / "ann" / CHAPTER / "other.ipynb")
    (result,) = autograde(course, CHAPTER, device="cpu", make_executor=Scripted())
    assert (result.status, result.problems[0].kind, result.max_score) == ("not gradable", "no notebook", 14.0)
    (again,) = autograde(course, CHAPTER, device="cpu", make_executor=Scripted())
    assert again.unchanged
    assert gradebook_scores(course.root)["ann"] == dict.fromkeys(gradebook_scores(course.root)["ann"], 0)


def test_a_submission_of_which_nothing_comes_is_not_passed_over(
    course: Course, filled: Fill, hand_in: HandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_in("ann", filled())
    monkeypatch.setattr("autograder.grading.run.run_concurrently", lambda *arguments, **options: iter(()))
    with pytest.raises(RuntimeError, match="no result for ann"):
        autograde(course, CHAPTER, device="cpu", make_executor=Scripted())


@pytest.mark.parametrize(("student", "says"), [("b[e]n", "digits"), ("Con.2", "nul")])
def test_an_id_that_no_folder_should_have_is_told_and_stops_nobody(
    course: Course, filled: Fill, hand_in: HandIn, student: str, says: str
) -> None:
    hand_in(student, filled())
    hand_in("zoe", filled())
    results = autograde(course, CHAPTER, device="cpu", make_executor=Scripted())
    assert [(result.student, result.status) for result in results] == [(student, "not recorded"), ("zoe", "graded")]
    assert results[0].problems[0].kind == "unsafe name"
    assert says in results[0].problems[0].do


def test_what_was_set_aside_for_the_run_is_looked_through_for_garbage_again(
    course: Course, filled: Fill, hand_in: HandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_in("ann", filled())
    frozen: list[int] = []
    monkeypatch.setattr("autograder.grading.recorder.write_result", lambda *about: frozen.append(gc.get_freeze_count()))
    autograde(course, CHAPTER, device="cpu", make_executor=Scripted())
    assert (frozen[0] > 0, gc.get_freeze_count()) == (True, 0)


@pytest.mark.parametrize(
    ("plugin", "said"),
    [
        ("'penalties.PerHour'", "penalties.PerHour"),
        ("'broken_penalties.PerHour'", "invalid syntax"),
        ("'helpless_penalties.PerHour'", "no rate is set"),
    ],
    ids=["not there", "no Python", "an error"],
)
def test_a_penalty_class_that_cannot_be_used_is_one_error_for_the_run_before_anything_is_run(
    course: Course,
    filled: Callable[..., Any],
    hand_in: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    plugin: str,
    said: str,
) -> None:
    (course.root / "broken_penalties.py").write_text("class PerHour(:\n", encoding="utf-8")
    (course.root / "helpless_penalties.py").write_text(
        "from nbgrader.plugins import BasePlugin\n\nclass PerHour(BasePlugin):\n"
        "    def __init__(self, **more):\n        raise ValueError('no rate is set')\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(course.root))
    with (course.root / CONFIG_NAME).open("a", encoding="utf-8") as file:
        file.write(f"\nc.AssignLatePenalties.plugin_class = {plugin}\n")
    for student in ("ann", "ben"):
        hand_in(student, filled())
    executor = Scripted()
    with pytest.raises(CourseError, match=said) as refused:
        autograde(course, CHAPTER, device="cpu", make_executor=executor)
    assert refused.value.where == str(course.root / CONFIG_NAME)
    assert executor.ran == []
    assert read_results(course, CHAPTER) == []


def test_a_persons_points_for_an_earlier_file_wait_for_another_look(
    course: Course, filled: Fill, hand_in: HandIn
) -> None:
    hand_in("ann", filled(answer="Because."))
    hand_in("ben", filled())
    autograde(course, CHAPTER, device="cpu", make_executor=Scripted())
    books = GradebookWriter(course, CHAPTER, autograder_config(course))
    with books.gradebook() as gradebook:
        grade = gradebook.find_grade("question_root", CHAPTER, CHAPTER, "ann")
        grade.manual_score, grade.needs_manual_grade = 3, False
        gradebook.db.commit()
    hand_in("ann", filled(answer="Another file."))
    autograde(course, CHAPTER, device="cpu", make_executor=LOST)
    with books.gradebook() as gradebook:
        grade = gradebook.find_grade("question_root", CHAPTER, CHAPTER, "ann")
        assert (grade.manual_score, grade.needs_manual_grade) == (3, True)


def make(course: Course, **about: int) -> list[str]:
    """Make a class and return its students' ids."""
    return [student.id for student in sample_class(Path.cwd(), course, [CHAPTER], **{"students": 4, **about})]


def test_a_disk_that_is_full_leaves_no_half_of_a_file_and_says_what_to_do(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, replace = [], Path.replace

    def full(path: Path, target: Path) -> Path:
        done.append(path)
        if len(done) == 5:
            raise OSError(errno.ENOSPC, "No space left on device")
        return replace(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        with pytest.raises(CourseError, match="No space"):
            make(course)
    for path in course.root.glob(f"submitted/*/*/{CHAPTER}.ipynb"):
        assert path.with_name("timestamp.txt").is_file()
    assert len(make(course)) == 4
    (course.root / "submitted" / "real" / CHAPTER).mkdir(parents=True)
    with pytest.raises(CourseError, match="real"):
        make(course)


def test_a_list_that_cannot_be_read_is_told_with_a_way_out(course: Course) -> None:
    make(course)
    (course.root / SAVED_AS).write_text("", encoding="utf-8")
    with pytest.raises(CourseError, match=SAVED_AS) as refused:
        make(course)
    assert "--course" in refused.value.do


@pytest.mark.parametrize(
    ("text", "failure", "again", "status"),
    [
        ("sent", "", False, ("graded", False)),
        ("sent", "ClosedError", True, ("graded", False)),
        ("sent", "ClosedError", False, ("not recorded", True)),
        ("", "ClosedError", True, ("not recorded", False)),
        ("other", "", True, ("not recorded", False)),
        ("[", "", False, ("not recorded", True)),
        ("[", "", True, ("not gradable", False)),
    ],
)
def test_whose_failure_it_is_follows_from_the_execution_and_from_the_run_before(
    course: Course, filled: Fill, hand_in: HandIn, text: str, failure: str, again: bool, status: tuple[str, bool]
) -> None:
    judge = run_module.Judge(course, released_manifest(course, CHAPTER), GradingSettings(seed=7), Provenance)
    path = hand_in("ann", filled())
    sent, digest = run_module.build_submission(
        "ann", path, judge.manifest, run_module.read_submitted_companions(course, CHAPTER, path)
    )
    try:
        done = replace(Scripted().grade_one(sent), failure=failure, **({"notebook": text} if text in ("", "[") else {}))
        outcome = judge.judge_execution(done, "hash", digest if text == "sent" else "", again=again)
    except RecordError as error:
        outcome = judge.failure_outcome("ann", "hash", error, again=again)
    assert (outcome.result.status, outcome.by_submission) == status
