"""A lesson's notebook runs on a student's machine with what the student has solved: with half of it, with all."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.course.authoring.chapter import find_chapter

from .own_code import ROOT, WAITS, printed, run_all, students_folder


@pytest.mark.parametrize("name", ["04_multi_head", "09_gpt"])
def test_with_half_solved_some_cells_run_and_the_others_wait_for_what_is_open(
    name: str, lessons: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chapter = find_chapter(ROOT, name)
    package = students_folder(chapter, lessons[name], 2, tmp_path, monkeypatch)
    first, *cells = run_all(tmp_path, chapter, package)
    exercises = [exercise.name for exercise in chapter.exercises()]
    assert f"{len(exercises[::2])} of {len(exercises)} exercises" in first.outputs[-1].data["text/plain"]
    awaited = {printed(cell).partition(WAITS)[2].partition(".")[0] for cell in cells if WAITS in printed(cell)}
    assert awaited
    assert awaited <= set(exercises[1::2])


# A tokenizer, a model of many classes, a cache; two chapters of functions run half solved. The seam is the same everywhere; that the
# solutions of all chapters work in a student's package is asked by tests/autograder/authoring/test_real_packages.py, in less time.
@pytest.mark.parametrize("name", ["06_tokenization", "10_t5", "13_grouped_query"])
def test_with_all_solved_every_cell_runs(
    name: str, lessons: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chapter = find_chapter(ROOT, name)
    package = students_folder(chapter, lessons[name], 1, tmp_path, monkeypatch)
    first, *cells = run_all(tmp_path, chapter, package)
    assert f"{len(chapter.exercises())} of {len(chapter.exercises())} exercises" in first.outputs[-1].data["text/plain"]
    assert not [cell for cell in cells if WAITS in printed(cell)]
    assert all(cell.execution_count for cell in cells)
