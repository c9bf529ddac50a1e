"""One run after another: what is kept, what is graded again, and what stops nobody. No kernel is run."""

from __future__ import annotations

import gc
import shutil
import sqlite3
from collections.abc import Callable, Collection
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook
from sqlalchemy.exc import OperationalError

from autograder.course.folder import CONFIG_NAME, Course
from autograder.engine.settings import GradingSettings
from autograder.errors import CourseError
from autograder.gradebook.transactions import _Unit
from autograder.grading import autograde as module
from autograder.grading import recorder
from autograder.grading.autograde import autograde
from autograder.grading.plugin import configured
from autograder.record.gradebook_writer import GradebookWriter, Recorded, RecordError
from autograder.record.journal import open_journal
from autograder.record.results import GradeResult, read_results
from autograder.selftest.sample_class import SAVED_AS, SampleStudent, sample_class

from .conftest import CHAPTER
from .scripted import Scripted
from .test_autograde import WEAKER, gradebook_scores

Fill = Callable[..., Any]
HandIn = Callable[..., Path]
LOST = Scripted(gone=("ann",))
SEED = GradingSettings(seed=1)


def run(course: Course, executor: Scripted | None = None, **options: Any) -> list[GradeResult]:
    """Grade on the CPU; everything is worth a point."""
    return autograde(course, CHAPTER, device="cpu", make_executor=executor or Scripted(), **options)


def statuses(course: Course, executor: Scripted | None = None) -> list[str]:
    """Grade, and return everybody's status."""
    return [result.status for result in run(course, executor)]


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
        journal.begun("ben", "hash")


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
    real = getattr(GradebookWriter, broken, None)

    def refuse(books: GradebookWriter, student: str, *rest: Any, **options: Any) -> Any:
        if student == "ann":
            raise RecordError("RecursionError: maximum recursion depth exceeded", by_submission=True)
        assert real is not None
        return real(books, student, *rest, **options)

    assert statuses(course) == ["graded", "graded"]
    with monkeypatch.context() as patched:
        if real is not None:
            patched.setattr(GradebookWriter, broken, refuse)
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


def test_a_notebook_that_is_not_the_one_that_was_sent_is_not_recorded(
    course: Course, filled: Fill, hand_in: HandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    for student in ("ann", "cem"):
        hand_in(student, filled())
    record = GradebookWriter.record

    def change(self: GradebookWriter, student: str, executed: Any, settled: Collection[str]) -> Recorded:
        if student == "ann":
            executed.cells[0].source += "!"
        return record(self, student, executed, settled)

    monkeypatch.setattr(module.GradebookWriter, "record", change)
    assert statuses(course) == ["not recorded", "graded"]


@pytest.mark.parametrize("reason", ["database is locked", "database or disk is full"])
def test_a_gradebook_in_use_fails_one_and_a_full_disk_ends_the_run(
    course: Course, filled: Fill, hand_in: HandIn, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    for student in ("ann", "ben", "cem"):
        hand_in(student, filled())
    full = "full" in reason
    if not full:
        (course.root / "submitted" / "ben" / CHAPTER / f"{CHAPTER}.ipynb").unlink()
    with monkeypatch.context() as patched:
        refuse(patched, reason, "ben", *(() if full else ("ann",)))
        with pytest.raises(CourseError, match=reason) if full else nullcontext():
            assert statuses(course) == ["not recorded", "not recorded", "graded"]
    results = run(course)
    assert [(result.status, result.unchanged) for result in results] == [
        ("graded", full),
        ("graded" if full else "not gradable", False),
        ("graded", not full),
    ]


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
    monkeypatch.setattr("autograder.engine.settings.cuda_is_there", lambda: False)
    hand_in("ann", filled())
    with pytest.raises(CourseError, match=word):
        autograde(course, **({"chapter": CHAPTER, "device": "cpu"} | options))
    assert read_results(course, CHAPTER) == []
    (course.root / "gradebook.db").unlink()
    with pytest.raises(CourseError):
        autograde(course, CHAPTER, device="cpu")
    assert not (course.root / "gradebook.db").exists()


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
    monkeypatch.setattr("autograder.grading.dispatch.run_concurrently", lambda *arguments, **options: iter(()))
    with pytest.raises(RuntimeError, match="no result for ann"):
        autograde(course, CHAPTER, device="cpu", make_executor=Scripted())


def refuse(patched: pytest.MonkeyPatch, reason: str, *students: str) -> None:
    """Let the database refuse to commit what is about some students."""
    settle, recorded = _Unit.settle, [""]

    def watched(record: Any) -> Any:
        def about(books: GradebookWriter, student: str, *arguments: str) -> Any:
            recorded[0] = student
            try:
                return record(books, student, *arguments)
            finally:
                recorded[0] = ""

        return about

    def commit(session: Any) -> None:
        if recorded[0] in students:
            raise OperationalError("COMMIT", {}, sqlite3.OperationalError(reason))
        settle(session)

    patched.setattr(_Unit, "settle", commit)
    for name in ("record", "record_zero"):
        patched.setattr(GradebookWriter, name, watched(getattr(GradebookWriter, name)))


@pytest.mark.parametrize(("student", "says"), [("b[e]n", "letters, digits"), ("Con.2", "con or nul")])
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
    monkeypatch.setattr(recorder, "write_result", lambda *about: frozen.append(gc.get_freeze_count()))
    autograde(course, CHAPTER, device="cpu", make_executor=Scripted())
    assert frozen[0] > 0
    assert gc.get_freeze_count() == 0
    with pytest.raises(CourseError):
        autograde(course, CHAPTER, device="cpu", make_executor=Scripted(), students=["nobody"])
    assert gc.get_freeze_count() == 0


def test_a_sample_class_is_the_same_for_the_same_seed_and_spares_real_submissions(
    course: Course, filled: Fill, hand_in: HandIn
) -> None:
    first = sample_class(Path.cwd(), course, [CHAPTER], students=3, seed=1)
    saved = (course.root / SAVED_AS).read_bytes()
    files = {path: path.read_bytes() for path in course.root.glob("submitted/*/*/*")}
    assert sample_class(Path.cwd(), course, [CHAPTER], students=3, seed=1) == first
    assert (course.root / SAVED_AS).read_bytes() == saved
    assert {path: path.read_bytes() for path in course.root.glob("submitted/*/*/*")} == files

    def done(students: list[SampleStudent], *, predicted: bool) -> list[tuple[str, str]]:
        exercises = [item for student in students for item in student.chapters[CHAPTER].exercises.values()]
        assert {item.score is not None for item in exercises if item.kind == "mistake"} == {predicted}
        assert all(item.score is not None for item in exercises if item.kind != "mistake")
        return [(item.kind, item.mistake) for item in exercises]

    predicted = sample_class(Path.cwd(), course, [CHAPTER], students=3, seed=1, predict=True)
    assert done(predicted, predicted=True) == done(first, predicted=False)
    assert {path: path.read_bytes() for path in course.root.glob("submitted/*/*/*")} == files
    hand_in("real", filled())
    with pytest.raises(CourseError, match="real students here: real"):
        sample_class(Path.cwd(), course, [CHAPTER], students=3)


def test_in_a_class_of_two_chapters_somebody_misses_one(course: Course) -> None:
    made = sample_class(Path.cwd(), course, [CHAPTER, "04_multi_head"], students=5, seed=0)
    missing = [student.id for student in made if student.chapters["04_multi_head"].oddity == "not handed in"]
    assert len(missing) == 1
    assert not (course.root / "submitted" / missing[0] / "04_multi_head").exists()
    assert (course.root / "submitted" / missing[0] / CHAPTER).exists()


@pytest.mark.parametrize(
    ("plugin", "said"),
    [
        ("'penalties.PerHour'", "penalties.PerHour"),
        ("'broken_penalties.PerHour'", "invalid syntax"),
        ("'helpless_penalties.PerHour'", "no rate is set"),
    ],
    ids=["not there", "no Python", "cannot be made"],
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


def test_a_gradebook_that_fails_costs_nobody_anything(
    course: Course, filled: Fill, hand_in: HandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_in("ann", filled())
    autograde(course, CHAPTER, device="cpu", make_executor=Scripted())

    def refuse(*arguments: Any, **options: Any) -> Any:
        raise RecordError("OperationalError: database is locked")

    monkeypatch.setattr(GradebookWriter, "record", refuse)
    for _ in range(3):
        (result,) = autograde(course, CHAPTER, device="cpu", make_executor=Scripted(), force=True)
        assert result.status == "not recorded"
    assert gradebook_scores(course.root)["ann"]["test_causal_mask"] == 1, "the same file"


def test_a_persons_points_for_an_earlier_file_wait_for_another_look(
    course: Course, filled: Fill, hand_in: HandIn
) -> None:
    hand_in("ann", filled(answer="Because."))
    hand_in("ben", filled())
    autograde(course, CHAPTER, device="cpu", make_executor=Scripted())
    books = GradebookWriter(course, CHAPTER, configured(course))
    with books.gradebook() as gradebook:
        grade = gradebook.find_grade("question_root", CHAPTER, CHAPTER, "ann")
        grade.manual_score, grade.needs_manual_grade = 3, False
        gradebook.db.commit()
    hand_in("ann", filled(answer="Another file."))
    autograde(course, CHAPTER, device="cpu", make_executor=LOST)
    with books.gradebook() as gradebook:
        grade = gradebook.find_grade("question_root", CHAPTER, CHAPTER, "ann")
        assert (grade.manual_score, grade.needs_manual_grade) == (3, True)
