"""After the checks have changed it is told who moves, and what a person has graded stays graded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from nbformat.v4 import new_code_cell

from autograder.course.folder import Course
from autograder.course.lock import course_lock
from autograder.engine.settings import GradingSettings
from autograder.errors import CourseError
from autograder.grading.autograde import GradingStopped, autograde
from autograder.grading.plugin import autograder_config
from autograder.grading.record.gradebook_writer import GradebookWriter
from autograder.grading.record.journal import Journal
from autograder.grading.record.results import read_results
from autograder.grading.regrade import Regrade, ScoreChange, regrade, select_for_regrade
from autograder.grading.replay import replay

from .conftest import CHAPTER, Fill, HandIn, Snapshot
from .scripted import Scripted

SETTINGS = GradingSettings(seed=7)
MOVED = Scripted({"ann": {"causal_mask": 3, "soft_lookup": 0}, "cem": {"causal_mask": 0}})


@pytest.fixture
def graded(course: Course, filled: Fill, hand_in: HandIn) -> Course:
    """A course in which three have a grade, and Ann's and Ben's answers have points of a person."""
    for student in ("ann", "ben", "cem"):
        hand_in(student, filled(answer="Because."))
    autograde(course, CHAPTER, device="cpu", settings=SETTINGS, make_executor=Scripted())
    with GradebookWriter(course, CHAPTER, autograder_config(course)).gradebook() as gradebook:
        for student in ("ann", "ben"):
            grade = gradebook.find_grade("question_root", CHAPTER, CHAPTER, student)
            grade.manual_score, grade.needs_manual_grade = 3, False
            gradebook.find_comment("question_root", CHAPTER, CHAPTER, student).manual_comment = "Well said."
        gradebook.db.commit()
    return course


@pytest.fixture
def other_checks(graded: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks have changed since."""
    monkeypatch.setattr("autograder.grading.course_settings.checks_hash", lambda: "another")


def again(
    course: Course, executor: Scripted, students: Sequence[str] | None = None, *, dry_run: bool = False
) -> Regrade:
    """Grade again."""
    chosen = select_for_regrade(course, CHAPTER, students, SETTINGS)
    return regrade(course, chosen, SETTINGS, dry_run=dry_run, make_executor=executor)


def answers(course: Course) -> dict[str, tuple[float | None, bool, str | None]]:
    """What the gradebook says about everybody's answer: a person's points, whether it waits, the comment."""
    found = {}
    with GradebookWriter(course, CHAPTER, autograder_config(course)).gradebook() as gradebook:
        for student in ("ann", "ben", "cem"):
            grade = gradebook.find_grade("question_root", CHAPTER, CHAPTER, student)
            comment = gradebook.find_comment("question_root", CHAPTER, CHAPTER, student)
            found[student] = (grade.manual_score, bool(grade.needs_manual_grade), comment.manual_comment)
    return found


GIVEN = {"ann": (3, False, "Well said."), "ben": (3, False, "Well said."), "cem": (None, True, None)}


@pytest.mark.usefixtures("other_checks")
def test_who_moves_is_told_with_the_exercises_and_the_rest_is_counted(graded: Course) -> None:
    done = again(graded, MOVED)
    assert done.moves == (
        ScoreChange("ann", 3, 4, (("causal_mask", 1, 3), ("soft_lookup", 1, 0))),
        ScoreChange("cem", 3, 2, (("causal_mask", 1, 0),)),
    )
    assert (done.stayed, done.failed, done.skipped) == (1, [], ())
    assert answers(graded) == GIVEN
    assert {result.student: result.score for result in read_results(graded, CHAPTER)} == {"ann": 4, "ben": 3, "cem": 2}
    assert {result.provenance.checks for result in read_results(graded, CHAPTER)} == {"another"}


@pytest.mark.usefixtures("other_checks")
@pytest.mark.parametrize(
    "place", [(Journal, "mark_stale"), (Journal, "record_begin"), (GradebookWriter, "record")], ids=lambda p: p[1]
)
def test_they_stay_also_if_it_is_stopped_and_gone_on_with_by_autograde(
    graded: Course, monkeypatch: pytest.MonkeyPatch, place: tuple[type, str]
) -> None:
    owner, name = place
    work = getattr(owner, name)

    def stopping(*arguments: Any, **options: Any) -> Any:
        work(*arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, name, stopping)
    with pytest.raises(GradingStopped, match="of 3"):
        again(graded, MOVED)
    monkeypatch.setattr(owner, name, work)
    autograde(graded, CHAPTER, device="cpu", settings=SETTINGS, make_executor=MOVED)
    assert answers(graded) == GIVEN
    assert {result.student: result.score for result in read_results(graded, CHAPTER)} == {"ann": 4, "ben": 3, "cem": 2}


@pytest.mark.usefixtures("other_checks")
def test_an_answer_that_a_person_has_not_seen_waits_for_one(graded: Course, filled: Fill, hand_in: HandIn) -> None:
    hand_in("ann", filled(answer="I think otherwise now."))
    done = again(graded, MOVED)
    assert done.skipped == (("ann", "changed"),)
    autograde(graded, CHAPTER, device="cpu", settings=SETTINGS, make_executor=MOVED)
    assert answers(graded)["ann"] == (3, True, "Well said.")


def test_a_blank_answer_is_worth_nothing_and_waits_for_nobody(graded: Course, filled: Fill, hand_in: HandIn) -> None:
    for student in ("ann", "cem"):
        hand_in(student, filled())
    override(graded, "ben", "question_root", 2)
    autograde(graded, CHAPTER, device="cpu", settings=SETTINGS, make_executor=MOVED)
    assert {student: given[:2] for student, given in answers(graded).items()} == {
        "ann": (None, False),
        "ben": (2, False),
        "cem": (None, False),
    }


def test_points_for_a_blank_answer_stay_while_it_stays_blank(graded: Course, filled: Fill, hand_in: HandIn) -> None:
    hand_in("ann", filled())
    autograde(graded, CHAPTER, device="cpu", settings=SETTINGS, make_executor=MOVED)
    override(graded, "ann", "question_root", 2)
    hand_in("ann", filled(causal_mask="def causal_mask(T): ..."))
    autograde(graded, CHAPTER, device="cpu", settings=SETTINGS, make_executor=MOVED)
    assert waits(graded, "ann", "question_root") == (2, False)


@pytest.mark.usefixtures("other_checks")
def test_a_dry_run_tells_the_same_and_writes_nothing(graded: Course, snapshot: Snapshot) -> None:
    before = snapshot(graded.root)
    dry = again(graded, MOVED, dry_run=True)
    assert snapshot(graded.root) == before
    done = again(graded, MOVED)
    assert (dry.moves, dry.stayed, dry.skipped) == (done.moves, done.stayed, done.skipped)
    assert (dry.to_dict()["dry_run"], done.to_dict()["dry_run"]) == (True, False)
    assert [result.score for result in read_results(graded, CHAPTER)] == [result.score for result in dry.results]


def test_what_was_graded_in_just_this_way_is_left_alone_unless_it_is_asked_for(graded: Course) -> None:
    executor = Scripted()
    done = again(graded, executor)
    assert (executor.ran, done.results) == ([], ())
    again(graded, executor, ["ben"])
    assert executor.ran == ["ben"]


def test_only_those_are_graded_again_that_were_graded_otherwise(graded: Course) -> None:
    for settings in (replace(SETTINGS, memory_mb=1), replace(SETTINGS, seed=8), replace(SETTINGS, device="cuda")):
        assert select_for_regrade(graded, CHAPTER, None, settings).students == ("ann", "ben", "cem")
    autograde(
        graded,
        CHAPTER,
        students=["cem"],
        device="cpu",
        force=True,
        settings=replace(SETTINGS, memory_mb=1),
        make_executor=Scripted(),
    )
    assert select_for_regrade(graded, CHAPTER, None, SETTINGS).students == ("cem",)


@pytest.mark.usefixtures("other_checks")
def test_a_failure_of_the_grader_is_neither_a_move_nor_a_stay(graded: Course) -> None:
    done = again(graded, Scripted({"ben": None}))
    assert ([result.student for result in done.failed], done.moves, done.stayed) == (["ben"], (), 2)


def test_where_nothing_was_graded_it_is_said(course: Course, graded: Course) -> None:
    with pytest.raises(CourseError, match="04_multi_head"):
        select_for_regrade(course, "04_multi_head", None, SETTINGS)
    with pytest.raises(CourseError, match="of ghost"):
        select_for_regrade(course, CHAPTER, ["ann", "ghost"], SETTINGS)


@pytest.mark.usefixtures("other_checks")
def test_it_waits_for_nobody_who_is_grading_but_a_dry_run_may_look(graded: Course) -> None:
    with course_lock(graded):
        with pytest.raises(CourseError):
            again(graded, MOVED)
        assert again(graded, MOVED, dry_run=True).moves


# --------------------------------------------------------------------------------- what a person has seen stays decided

LATE = "2021-01-01 10:00:00 UTC"


def override(course: Course, student: str, cell: str, points: float) -> None:
    """Give points to a test by hand, as the formgrader does."""
    with GradebookWriter(course, CHAPTER, autograder_config(course)).gradebook() as gradebook:
        grade = gradebook.find_grade(cell, CHAPTER, CHAPTER, student)
        grade.manual_score, grade.needs_manual_grade = points, False
        gradebook.db.commit()


def waits(course: Course, student: str, cell: str) -> tuple[float | None, bool]:
    """Return a person's points for a cell, and whether it waits for a person."""
    with GradebookWriter(course, CHAPTER, autograder_config(course)).gradebook() as gradebook:
        grade = gradebook.find_grade(cell, CHAPTER, CHAPTER, student)
        return grade.manual_score, bool(grade.needs_manual_grade)


def test_a_time_stamp_that_comes_late_sends_nothing_back_to_a_person(graded: Course) -> None:
    override(graded, "ann", "test_causal_mask", 2.5)
    (graded.root / "submitted" / "ann" / CHAPTER / "timestamp.txt").write_text(LATE)
    assert "changed" not in dict(select_for_regrade(graded, CHAPTER, None, SETTINGS).skipped).values()
    results = autograde(graded, CHAPTER, device="cpu", settings=SETTINGS, make_executor=MOVED)
    assert [result.student for result in results if not result.unchanged] == ["ann"]
    assert answers(graded) == GIVEN
    assert waits(graded, "ann", "test_causal_mask") == (2.5, False)


def test_other_code_sends_the_overridden_points_to_a_person_and_not_the_answer(
    graded: Course, filled: Fill, hand_in: HandIn
) -> None:
    override(graded, "ann", "test_causal_mask", 2.5)
    hand_in("ann", filled(answer="Because.", causal_mask="def causal_mask(*sizes):\n    return None"))
    autograde(graded, CHAPTER, device="cpu", settings=SETTINGS, make_executor=MOVED)
    assert waits(graded, "ann", "test_causal_mask") == (2.5, True)
    assert answers(graded)["ann"] == (3, False, "Well said.")


def test_another_helper_in_a_cell_without_a_name_sends_the_overridden_points_to_a_person(
    graded: Course, filled: Fill, hand_in: HandIn
) -> None:
    override(graded, "ann", "test_causal_mask", 2.5)
    notebook = filled(answer="Because.")
    notebook.cells.insert(1, new_code_cell("helper = 1"))
    hand_in("ann", notebook)
    autograde(graded, CHAPTER, device="cpu", settings=SETTINGS, make_executor=MOVED)
    assert waits(graded, "ann", "test_causal_mask") == (2.5, True)


@pytest.fixture
def graded_once(course: Course, filled: Fill, hand_in: HandIn) -> Course:
    """A course in which Ann has a grade, made with limits and a seed of its own."""
    hand_in("ann", filled(answer="Because."))
    settings = GradingSettings(seed=7, memory_mb=512)
    autograde(course, CHAPTER, device="cpu", settings=settings, make_executor=Scripted())
    return course


def test_the_same_comes_out_with_the_recorded_seed_and_limits_and_nothing_is_written(
    graded_once: Course, snapshot: Snapshot
) -> None:
    before = snapshot(graded_once.root)
    again = Scripted()
    done = replay(graded_once, CHAPTER, "ann", make_executor=again)
    assert (done.is_same, done.differences, done.changes) == (True, (), ())
    assert (again.seen[0].seed, again.seen[0].memory_mb, again.seen[0].device) == (7, 512, "cpu")
    assert done.again == replace(
        done.recorded, unchanged=False, seconds=done.again.seconds, exercises=done.again.exercises
    )
    assert snapshot(graded_once.root) == before


def notebook(course: Course) -> Path:
    """Return Ann's notebook."""
    return course.folder("submitted", "ann", CHAPTER) / f"{CHAPTER}.ipynb"


def age(course: Course) -> None:
    """Let the grade be of a version that had another limit."""
    path = course.root / "results" / CHAPTER / "ann.json"
    path.write_text(path.read_text().replace('"memory_mb": 512', '"memory_of_old": 512'))


Change = Callable[[Course], object]
OTHER = Scripted({"ann": {"causal_mask": 2}}, said="Not as it should be.")
# What happens before the replay, who runs it, and words of the differences.
DIFFERENT: dict[str, tuple[Change, Scripted, tuple[str, ...]]] = {
    "points": (lambda course: None, OTHER, ("causal_mask", "soft_lookup")),
    "submission": (lambda course: notebook(course).write_bytes(b"%PDF"), Scripted(), ("submission",)),
    "nothing": (lambda course: notebook(course).unlink(), Scripted(), ("not gradable",)),
    "failure": (lambda course: None, Scripted({"ann": None}), ("not recorded",)),
    "limit": (age, Scripted(), ()),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_what_is_different_is_named(graded_once: Course, what: str) -> None:
    change, executor, words = DIFFERENT[what]
    change(graded_once)
    done = replay(graded_once, CHAPTER, "ann", make_executor=executor)
    assert done.is_same is (not words)
    assert [word for word in words if word not in "\n".join(done.differences)] == []
    if what == "limit":
        assert any("memory_of_old" in change for change in done.changes)
    if what == "points":
        assert done.to_dict()["score_again"] == done.to_dict()["score"] + 1


def test_other_checks_make_no_other_grade_and_no_notebook_is_replayed_as_well(
    graded_once: Course, hand_in: HandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_in("ben", b"%PDF-1.7")
    autograde(graded_once, CHAPTER, students=["ben"], device="cpu", make_executor=Scripted())
    assert replay(graded_once, CHAPTER, "ben", make_executor=Scripted()).is_same
    monkeypatch.setattr("autograder.grading.course_settings.checks_hash", lambda: "another")
    done = replay(graded_once, CHAPTER, "ann", make_executor=Scripted())
    assert (done.is_same, len(done.changes)) == (True, 1)
    notebook(graded_once).parent.rename(graded_once.root / "elsewhere")
    with pytest.raises(CourseError, match="gone"):
        replay(graded_once, CHAPTER, "ann", make_executor=Scripted())


def test_where_there_is_no_grade_it_is_said_how_to_get_one(graded_once: Course, filled: Fill, hand_in: HandIn) -> None:
    with pytest.raises(CourseError, match="no grade of ghost") as caught:
        replay(graded_once, CHAPTER, "ghost", make_executor=Scripted())
    assert str(graded_once.folder("submitted", "ghost", CHAPTER)) in caught.value.do
    hand_in("unlucky", filled())
    with pytest.raises(CourseError, match="no grade of unlucky") as caught:
        replay(graded_once, CHAPTER, "unlucky", make_executor=Scripted())
    assert f"tfcourse autograde {CHAPTER}" in caught.value.do
    autograde(graded_once, CHAPTER, device="cpu", make_executor=Scripted({"unlucky": None}))
    with pytest.raises(CourseError, match="unlucky"):
        replay(graded_once, CHAPTER, "unlucky", make_executor=Scripted())
