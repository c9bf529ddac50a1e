"""A lesson's notebook runs on a student's machine with what the student has solved: with half of it, with all."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.course.authoring.chapter import find_chapter

from .own_code import ROOT, awaited, run_all, students_folder


# Some functions and classes with every second exercise solved, and many classes with all. The seam is the same everywhere: the other
# chapters run unsolved, and tests/autograder/authoring/test_real_packages.py runs all solutions in their packages.
@pytest.mark.parametrize(("name", "step"), [("09_gpt", 2), ("10_t5", 1)])
def test_cells_run_on_what_is_solved_and_the_others_wait_for_what_is_open(
    name: str, step: int, lessons: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chapter = find_chapter(ROOT, name)
    package = students_folder(chapter, lessons[name], step, tmp_path, monkeypatch)
    first, *cells = run_all(tmp_path, chapter, package)
    exercises = [exercise.name for exercise in chapter.exercises()]
    solved = exercises[::step]
    assert f"{len(solved)} of {len(exercises)} exercises" in first.outputs[-1].data["text/plain"]
    waiting = {awaited(cell) for cell in cells} - {""}
    assert waiting <= set(exercises) - set(solved)
    assert bool(waiting) is (step > 1)
    assert all(cell.execution_count for cell in cells)
