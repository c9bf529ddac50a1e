"""Every file of the corpus gets the points that are intact in it, or a verdict that names what is wrong."""

from __future__ import annotations

from typing import Any

import nbformat
import pytest

from autograder.submission import lazy_json, notebook_reader
from autograder.submission.intake import Intake, take_in
from autograder.submission.manifest import Manifest
from autograder.submission.problem import Problem

from .files import ALL, CASES, Case
from .in_process import run
from .material import ANSWER, CHAPTER, OTHER, SECOND_ANSWER, Work, points

Released = dict[str, dict[str, Any]]


def made(case: Case, released: Released) -> bytes:
    """Make a file of the corpus."""
    what = case.make(Work.done(released[CHAPTER]))
    return what if isinstance(what, bytes) else what.json()


def read(data: bytes) -> tuple[Any, list[Problem]]:
    """Read a file, or return the problem that it is."""
    try:
        return notebook_reader.read_notebook(data)
    except notebook_reader.UnreadableError as error:
        return None, [error.problem]


def scores(intake: Intake) -> dict[str, float]:
    """Run a notebook as the grader has it after reading, and return the points of its exercises."""
    notebook = nbformat.from_dict(intake.notebook)
    run(notebook)
    found: dict[str, float] = {}
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
        if name.startswith("test_"):
            (output,) = cell.outputs
            assert name not in found, f"{name} is in the notebook twice"
            found[name.removeprefix("test_")] = float(output.data["text/plain"]) if "data" in output else 0.0
    return found


def answers(intake: Intake) -> list[str]:
    """Return the answers that a person would get to grade."""
    cells = {c.metadata.nbgrader["grade_id"]: c for c in intake.notebook.cells if "nbgrader" in c.metadata}
    found = [cells[name] for name in ("question_root", "question_mask")]
    assert {cell.cell_type for cell in found} == {"markdown"}
    # Half a character has become a question mark.
    return sorted(cell.source.strip(" ?") for cell in found)


def test_the_corpus_is_as_large_as_it_should_be() -> None:
    assert len(CASES) >= 100
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_file_that_is_parsed_at_once_is_read_as_one_that_is_gone_through(
    case: Case, released: Released, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = made(case, released)
    at_once = read(data)
    monkeypatch.setattr(notebook_reader, "top_level", lambda text, at_once: lazy_json.top_level(text, at_once=0))
    assert read(data) == at_once


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_file_gets_the_points_that_are_intact_or_a_named_verdict(
    case: Case, released: Released, manifest: Manifest
) -> None:
    data = made(case, released)
    intake = take_in(data, manifest)
    told = "\n".join(map(str, intake.problems))
    assert tuple(problem.kind for problem in intake.problems) == case.kinds, told
    assert intake.gradable is not case.fatal
    for words in case.says:
        assert words in told
    nbformat.validate(intake.notebook)
    if case.answers:
        assert answers(intake) == sorted([ANSWER, SECOND_ANSWER])
    # Large files are read once: they differ from the others in nothing but their size.
    if len(data) < 1_000_000:
        assert nbformat.writes(take_in(data, manifest).notebook) == nbformat.writes(intake.notebook)
    assert scores(intake) == {name: 0.0 if name in case.lost else points(name) for name in ALL}, told


def test_a_notebook_of_another_chapter_is_named(released: Released, manifest: Manifest) -> None:
    for work in (Work.done(released[OTHER]), Work.done(released[OTHER]).bare()):
        intake = take_in(work.json(), manifest)
        assert [problem.kind for problem in intake.problems] == ["wrong chapter"]
        assert OTHER in str(intake.problems[0])
        assert f"Ask for {CHAPTER}.ipynb" in str(intake.problems[0])
