"""A lesson's notebook runs on the machine of a student who has solved nothing yet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autograder.course.authoring.chapter import find_chapter

from .own_code import NAMES, ROOT, SHORT_TRAININGS, TRAINING, awaited, run_all, students_folder


@pytest.mark.parametrize("name", NAMES)
def test_with_nothing_solved_cells_wait_by_name_and_keep_the_courses_output(
    name: str, lessons: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chapter = find_chapter(ROOT, name)
    package = students_folder(chapter, lessons[name], 0, tmp_path, monkeypatch)
    first, *cells = run_all(tmp_path, chapter, package, SHORT_TRAININGS)
    assert f"0 of {len(chapter.exercises())} exercises" in first.outputs[-1].data["text/plain"]
    waiting = [cell for cell in cells if awaited(cell)]
    exercises = {exercise.name for exercise in chapter.exercises()}
    names = {awaited(cell) for cell in waiting} - {TRAINING}
    assert names
    assert names <= exercises
    stored = json.loads(lessons[name])["cells"]
    for cell in waiting:
        before = next(old for old in stored if "".join(old["source"]) == cell.source)
        shown = [output for output in before["outputs"] if "data" in output]
        again = [output for output in cell.outputs if "data" in output]
        assert [set(output.data) for output in again] == [set(output["data"]) for output in shown]
