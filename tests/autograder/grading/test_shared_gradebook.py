"""One opened gradebook serves all of nbgrader's steps, and nbgrader itself does not notice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from typing import Any

import pytest
from nbgrader import preprocessors
from nbgrader.api import Gradebook, InvalidEntry, MissingEntry
from nbgrader.preprocessors import (
    AssignLatePenalties,
    ClearOutput,
    GetGrades,
    OverwriteCells,
    OverwriteKernelspec,
    SaveAutoGrades,
    saveautogrades,
)
from sqlalchemy import event
from traitlets.config import Config

from autograder.course.folder import Course
from autograder.gradebook.transactions import CachedGradebook, with_shared_gradebook
from autograder.grading.plugin import OthersCells, OthersKernelspec

from .conftest import CHAPTER

ABOUT = CHAPTER, CHAPTER, "ada"
TEST = "test_causal_mask"


@pytest.fixture
def shared(course: Course) -> Iterator[CachedGradebook]:
    gradebook = CachedGradebook(course.gradebook_url, "tfcourse")
    with gradebook:
        gradebook.add_student("ada")
        gradebook.add_submission(CHAPTER, "ada")
    yield gradebook
    gradebook.dispose()


@pytest.fixture
def plain(course: Course, shared: CachedGradebook) -> Iterator[Any]:
    with Gradebook(course.gradebook_url, "tfcourse") as gradebook:
        yield gradebook


def looked_up(gradebook: Any, find: str, name: str, about: tuple[str, ...]) -> dict[str, Any] | str:
    """Return the columns of what is found, or what nbgrader says where nothing is."""
    try:
        found = getattr(gradebook, find)(name, *about)
    except MissingEntry as error:
        return str(error)
    return {column.name: getattr(found, column.name) for column in found.__table__.columns}


@pytest.mark.parametrize(
    ("find", "about"),
    [
        ("find_source_cell", ABOUT[:2]),
        ("find_graded_cell", ABOUT[:2]),
        ("find_grade", ABOUT),
        ("find_comment", ABOUT),
    ],
)
def test_what_is_read_at_once_is_what_nbgrader_reads_one_by_one(
    shared: CachedGradebook, plain: Any, find: str, about: tuple[str, ...]
) -> None:
    names = ["setup", "causal_mask", TEST, "prompt_root", "question_root", "nowhere"]
    with shared:
        theirs = [looked_up(plain, find, name, about) for name in names]
        assert [looked_up(shared, find, name, about) for name in names] == theirs
    assert {type(found) for found in theirs} == {dict, str}


@pytest.mark.parametrize(
    ("find", "about"),
    [
        ("find_assignment", ABOUT[:1]),
        ("find_notebook", ABOUT[:2]),
        ("find_submission", ABOUT[1:]),
        ("find_submission_notebook", ABOUT),
    ],
)
def test_a_row_is_asked_for_once_a_unit(shared: CachedGradebook, plain: Any, find: str, about: tuple[str, ...]) -> None:
    asked: list[str] = []
    event.listen(shared.engine, "before_cursor_execute", lambda *said: asked.append(said[2]))
    for _ in range(2):
        with shared:
            found = getattr(shared, find)(*about)
            shared.db.commit()
            assert getattr(shared, find)(*about) is found
            assert found.id == getattr(plain, find)(*about).id
    assert len(asked) == 2
    nobody = ("nobody",) * len(about)
    with pytest.raises(MissingEntry) as ours:
        getattr(shared, find)(*nobody)
    with pytest.raises(MissingEntry) as theirs:
        getattr(plain, find)(*nobody)
    assert str(ours.value) == str(theirs.value)


def test_a_row_that_was_taken_out_is_not_found_again(shared: CachedGradebook) -> None:
    with shared:
        shared.find_submission(*ABOUT[1:])
        shared.find_submission_notebook(*ABOUT)
        shared.remove_submission(*ABOUT[1:])
        with pytest.raises(MissingEntry):
            shared.find_submission(*ABOUT[1:])
        with pytest.raises(MissingEntry):
            shared.find_submission_notebook(*ABOUT)
        shared.add_submission(*ABOUT[1:])
        assert shared.find_submission(*ABOUT[1:]).notebooks == [shared.find_submission_notebook(*ABOUT)]


def test_what_is_committed_is_written_in_one_query_when_the_gradebook_is_closed(
    shared: CachedGradebook, plain: Any
) -> None:
    asked: list[str] = []
    with shared:
        shared.find_grade(TEST, *ABOUT).auto_score = 2.0
    assert plain.find_grade(TEST, *ABOUT).auto_score is None, "nobody has committed it"
    event.listen(shared.engine, "before_cursor_execute", lambda *said: asked.append(said[2]))
    with shared:
        grade, *_ = (shared.find_grade(name, *ABOUT) for name in (TEST, "test_soft_lookup", "question_root"))
        assert len(asked) == 1
        notebook = shared.find_submission_notebook(*ABOUT)
        assert notebook.score == 0
        grade.auto_score = 3.0
        shared.db.flush()
        shared.db.commit()
        assert notebook.score == 3.0, "sums are counted anew"
        plain.db.rollback()
        assert plain.find_grade(TEST, *ABOUT).auto_score is None
        assert list(shared.db())
    assert not list(shared.db()), "nothing is kept in memory between units"
    assert not shared._known
    plain.db.rollback()
    assert plain.find_grade(TEST, *ABOUT).auto_score == 3.0
    with shared:
        found = shared.find_grade(TEST, *ABOUT).auto_score, shared.find_submission_notebook(*ABOUT).score
    assert found == (3.0, 3.0)


def nested(shared: CachedGradebook) -> None:
    for student in ("bo", "cy"):
        with shared:
            shared.add_student(student)
    assert [student.id for student in shared.students] == ["ada", "bo", "cy"]


def closed(shared: CachedGradebook) -> None:
    shared.add_student("bo")
    shared.close()
    shared.add_student("cy")


def failing(shared: CachedGradebook) -> None:
    shared.find_grade(TEST, *ABOUT).auto_score = 3.0
    shared.db.commit()
    shared.add_student("bo")
    raise RuntimeError("nothing was written")


def failing_within(shared: CachedGradebook) -> None:
    shared.add_student("bo")
    with suppress(MissingEntry), shared:
        shared.find_student("nobody")


def taken_back(shared: CachedGradebook) -> None:
    shared.add_student("bo")
    with suppress(InvalidEntry):
        shared.add_student("bo")
    shared.add_student("cy")


@pytest.mark.parametrize("work", [nested, closed, failing, failing_within, taken_back])
def test_a_block_with_all_within_it_is_one_unit_that_is_written_or_not(
    shared: CachedGradebook, plain: Any, work: Callable[[CachedGradebook], None]
) -> None:
    written = work in (nested, closed)
    commits: list[object] = []
    event.listen(shared.engine, "commit", commits.append)
    with nullcontext() if written else pytest.raises(RuntimeError, match="nothing was written"), shared:
        work(shared)
        assert [student.id for student in plain.students] == ["ada"], "not before the end"
    plain.db.rollback()
    there = ["ada", "bo", "cy"] if written else ["ada"]
    assert [student.id for student in plain.students] == there
    assert plain.find_grade(TEST, *ABOUT).auto_score is None
    assert len(commits) == written
    plain.db.rollback()
    with shared:
        assert shared.find_grade(TEST, *ABOUT).auto_score is None
    shared.add_student("dee")
    shared.close()  # who opens no block has it written at the end
    assert [student.id for student in plain.students] == [*there, "dee"]


@pytest.mark.parametrize(
    "step",
    [OverwriteCells, OverwriteKernelspec, SaveAutoGrades, AssignLatePenalties, OthersCells, OthersKernelspec],
)
def test_nbgraders_steps_use_the_shared_gradebook(shared: CachedGradebook, step: Any) -> None:
    variant = with_shared_gradebook(step, lambda: shared)
    assert issubclass(variant, step)
    assert variant is not step
    assert variant.preprocess.__globals__["Gradebook"]("sqlite:///elsewhere.db") is shared


def test_every_step_of_grading_that_opens_a_gradebook_is_known_here() -> None:
    """A new step of nbgrader's would go on opening its own, which is right and slow: then this list is too short."""
    steps = [getattr(preprocessors, name) for name in preprocessors.__all__]
    opening = {step for step in steps if with_shared_gradebook(step, CachedGradebook) is not step}
    opening -= {preprocessors.SaveCells, GetGrades}
    assert opening == {OverwriteCells, OverwriteKernelspec, SaveAutoGrades, AssignLatePenalties}


class Own(SaveAutoGrades):  # type: ignore[misc]
    """A lecturer's own step."""

    def preprocess(self, nb: Any, resources: Any) -> Any:
        return "mine"


class More(Own):
    """A step made of it."""


def test_nbgrader_and_what_opens_no_gradebook_are_left_alone(shared: CachedGradebook) -> None:
    before = SaveAutoGrades.preprocess
    config = Config()
    config.SaveAutoGrades.enabled = False
    assert with_shared_gradebook(SaveAutoGrades, lambda: shared)(config=config).enabled is False
    assert SaveAutoGrades.preprocess is before
    assert saveautogrades.Gradebook is Gradebook
    assert with_shared_gradebook(ClearOutput, lambda: shared) is ClearOutput
    for step in (Own, More):
        assert with_shared_gradebook(step, lambda: shared)().preprocess(None, None) == "mine"
