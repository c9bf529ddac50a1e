"""Every file of the corpus is read, or a verdict names what is wrong; what it earns is asked in ``test_class``."""

from __future__ import annotations

from typing import Any

import nbformat
import pytest

from autograder.intake.notebook import lazy_json, notebook_reader
from autograder.intake.notebook.intake import Intake
from autograder.intake.notebook.manifest import Manifest
from autograder.intake.notebook.problem import Problem
from tests.taken_in import taken_in

from .files import CASES, Case
from .material import ANSWER, CHAPTER, SECOND_ANSWER, Work

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


def answers(intake: Intake) -> list[str]:
    """Return the answers that a person would get to grade."""
    cells = {c.metadata.nbgrader["grade_id"]: c for c in intake.notebook.cells if "nbgrader" in c.metadata}
    found = [cells[name] for name in ("question_root", "question_mask")]
    assert {cell.cell_type for cell in found} == {"markdown"}
    # Half a character has become a question mark.
    return sorted(cell.source.strip(" ?") for cell in found)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_file_is_read_or_has_a_named_verdict(
    case: Case, released: Released, manifest: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = made(case, released)
    intake = taken_in(data, manifest)
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
        assert nbformat.writes(taken_in(data, manifest).notebook) == nbformat.writes(intake.notebook)
    at_once = read(data)
    monkeypatch.setattr(
        notebook_reader, "parse_top_level", lambda text, at_once: lazy_json.parse_top_level(text, at_once=0)
    )
    assert read(data) == at_once, "what is parsed at once is read as what is gone through"
