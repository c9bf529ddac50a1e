"""Honest notebooks with something odd in them, graded by the real engine: each loses what it says that it loses, and most lose nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest

import pytest

from autograder.engine.settings import GradingSettings
from autograder.grading.course_settings import settings_for_release
from autograder.grading.record.results import ExerciseResult, GradeResult
from autograder.grading.replay import rerun_submissions
from autograder.intake.downloads.store import submitted_notebook
from autograder.intake.notebook.manifest import released_manifest

from .conftest import plain, release
from .material import CHAPTER, Work, notebook, source_cells
from .oddities import CELLS, EVERYTHING, EXERCISES, Oddity
from .oddities_in_solutions import SOLUTIONS

ODDITIES = (*CELLS, *SOLUTIONS)
SETTINGS = GradingSettings(seed=1, jobs=2, allow_weaker=True)


@dataclass(frozen=True)
class Graded:
    """A notebook that was graded.

    Attributes:
        oddities: what is odd in it.
        result: what came of it.
    """

    oddities: tuple[Oddity, ...]
    result: GradeResult


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> dict[str, Graded]:
    """What came of the oddities that this run's tests look at, by name; graded as for a replay, which records nothing."""
    course = release(tmp_path_factory.mktemp("oddities") / "course", {CHAPTER: EXERCISES})
    looked_at = [item.callspec.params.get("oddity") for item in request.session.items if hasattr(item, "callspec")]
    handed_in = {
        f"odd-{number:03d}": oddities
        for number, oddities in enumerate(_notebooks([oddity for oddity in ODDITIES if oddity in looked_at]))
    }
    released = plain(course.root / "release" / CHAPTER / f"{CHAPTER}.ipynb")
    for student, oddities in handed_in.items():
        work = Work.done(released)
        for oddity in oddities:
            oddity.make(work)
        path = submitted_notebook(course, CHAPTER, student)
        path.parent.mkdir(parents=True)
        path.write_bytes(work.json())
    known = [GradeResult(student, CHAPTER, "graded") for student in handed_in]
    results = rerun_submissions(
        course, released_manifest(course, CHAPTER), known, settings_for_release(course, CHAPTER, SETTINGS)
    )
    return {
        oddity.name: Graded(handed_in[result.student], result)
        for result in results
        for oddity in handed_in[result.student]
    }


def _notebooks(oddities: Iterable[Oddity]) -> list[tuple[Oddity, ...]]:
    """Put into one notebook what does not meet in it: the cells of different exercises. To ask for one alone is to see it alone."""
    alone = [(oddity,) for oddity in oddities if not oddity.exercise]
    columns = [[oddity for oddity in oddities if oddity.exercise == name] for name in EXERCISES]
    return alone + [tuple(filter(None, row)) for row in zip_longest(*columns)]


def _failed(exercise: ExerciseResult) -> tuple[str, ...]:
    """Return the aspects of an exercise that failed, or that all of them did."""
    findings = exercise.verdict.findings if exercise.verdict else ()
    failed = tuple(finding.aspect for finding in findings if not finding.passed)
    return EVERYTHING if len(failed) == len(findings) else failed


def _story(oddity: Oddity, graded: Graded) -> str:
    """Tell what somebody needs to know who sees it for the first time."""
    result, lost = graded.result, dict(oddity.lost) or "nothing"
    lines = [f"“{oddity.name}” should lose {lost}. Its notebook has {result.score:g} of {result.max_score:g} points:"]
    for exercise in result.exercises:
        if exercise.score < exercise.max_score and oddity.exercise in ("", exercise.name):
            lines.append(str(exercise.verdict) if exercise.verdict else f"{exercise.name}: {exercise.error}")
    others = [f"“{other.name}”" for other in graded.oddities if other is not oddity]
    beside = f"In the same notebook: {', '.join(others)}." if others else ""
    return "\n".join([*lines, "Problems:", *map(str, result.problems or ["none"]), beside])


@pytest.mark.parametrize("oddity", ODDITIES, ids=lambda oddity: oddity.name)
def test_an_honest_notebook_loses_nothing_for_what_is_odd_in_it(graded: dict[str, Graded], oddity: Oddity) -> None:
    seen = graded[oddity.name]
    result, story = seen.result, _story(oddity, seen)
    assert result.status == "graded", story
    assert [exercise.name for exercise in result.exercises] == list(EXERCISES)
    failed = {item.name: _failed(item) for item in result.exercises if oddity.exercise in ("", item.name)}
    assert {name: aspects for name, aspects in failed.items() if aspects} == dict(oddity.lost), story
    told = frozenset[str]().union(*(other.told for other in seen.oddities))
    assert {problem.kind for problem in result.problems} == told, story


def test_an_oddity_changes_something_and_says_why_if_it_costs_points() -> None:
    cells = notebook(source_cells(CHAPTER, EXERCISES))
    assert len({oddity.name for oddity in ODDITIES}) == len(ODDITIES)
    for oddity in ODDITIES:
        work = Work.done(cells)
        oddity.make(work)
        assert work.data != Work.done(cells).data, f"“{oddity.name}” leaves the notebook as it is"
        assert oddity.why or not oddity.lost, f"“{oddity.name}” loses points: say why"
