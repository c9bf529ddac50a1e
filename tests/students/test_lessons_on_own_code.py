"""A lesson's notebook runs on a student's machine with what the student has solved: with nothing, with half of it, with all."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

from autograder.authoring import student_build
from autograder.authoring.chapter import Chapter, chapters, find_chapter, grade_id, is_stub
from autograder.authoring.lesson_notebook import lesson_name, lesson_notebooks
from autograder.authoring.source import standalone_source

from ..chapters.lesson import KernelOverFiles

ROOT = Path(__file__).parents[2]
NAMES = [chapter.name for chapter in chapters(ROOT)]
WAITS = "This cell waits for your "


@pytest.fixture(scope="session")
def lessons() -> dict[str, bytes]:
    """The lesson notebooks of all chapters."""
    return lesson_notebooks(chapters(ROOT))


def students_folder(
    chapter: Chapter, lesson: bytes, solved: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Make the folder of a student who has solved every exercise (1), every second one (2), or none (0); return the package's place."""
    # Recordings are for checks, which a lesson does not ask for.
    monkeypatch.setattr(student_build, "_recordings", lambda root, chapter: {})
    wheel = student_build.build_student_wheel(ROOT, chapter, folder / "wheel")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "package")
    notebook = chapter.notebook()
    names = [grade_id(cell) for cell in notebook.cells if is_stub(cell)]
    for cell in notebook.cells:
        if is_stub(cell) and solved and names.index(grade_id(cell)) % solved == 0:
            cell.source = standalone_source(chapter.registry[grade_id(cell)].reference, rename=grade_id(cell))
    nbformat.write(notebook, folder / f"{chapter.name}.ipynb")
    (folder / lesson_name(chapter)).write_bytes(lesson)
    return folder / "package"


def run_all(folder: Path, chapter: Chapter, package: Path) -> list[Any]:
    """Run all cells of the lesson as Jupyter does, on the student's package; return the code cells."""
    notebook = nbformat.read(folder / lesson_name(chapter), as_version=4)
    client = nbclient.NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=300,
        kernel_manager_class=KernelOverFiles,
        extra_arguments=["--log-level=40"],
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute(env={**os.environ, "PYTHONPATH": str(package), "OMP_NUM_THREADS": "1"})
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def printed(cell: Any) -> str:
    return "".join(output.text for output in cell.outputs if output.output_type == "stream")


@pytest.mark.parametrize("name", NAMES)
def test_with_nothing_solved_cells_wait_by_name_and_keep_the_courses_output(
    name: str, lessons: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chapter = find_chapter(ROOT, name)
    package = students_folder(chapter, lessons[name], 0, tmp_path, monkeypatch)
    first, *cells = run_all(tmp_path, chapter, package)
    assert f"0 of {len(chapter.exercises())} exercises of yours run" in first.outputs[-1].data["text/plain"]
    waiting = [cell for cell in cells if WAITS in printed(cell)]
    assert waiting
    exercises = {exercise.name for exercise in chapter.exercises()}
    awaited = {printed(cell).partition(WAITS)[2].partition(".")[0] for cell in waiting}
    assert awaited <= exercises
    stored = json.loads(lessons[name])["cells"]
    for cell in waiting:
        before = next(old for old in stored if "".join(old["source"]) == cell.source)
        shown = [output for output in before["outputs"] if "data" in output]
        again = [output for output in cell.outputs if "data" in output]
        assert [set(output.data) for output in again] == [set(output["data"]) for output in shown]


@pytest.mark.parametrize("name", NAMES)
def test_with_half_solved_some_cells_run_and_the_others_wait_for_what_is_open(
    name: str, lessons: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chapter = find_chapter(ROOT, name)
    package = students_folder(chapter, lessons[name], 2, tmp_path, monkeypatch)
    first, *cells = run_all(tmp_path, chapter, package)
    exercises = [exercise.name for exercise in chapter.exercises()]
    assert f"{len(exercises[::2])} of {len(exercises)} exercises of yours run" in first.outputs[-1].data["text/plain"]
    awaited = {printed(cell).partition(WAITS)[2].partition(".")[0] for cell in cells if WAITS in printed(cell)}
    assert awaited
    assert awaited <= set(exercises[1::2])


@pytest.mark.parametrize("name", NAMES)
def test_with_all_solved_every_cell_runs(
    name: str, lessons: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chapter = find_chapter(ROOT, name)
    package = students_folder(chapter, lessons[name], 1, tmp_path, monkeypatch)
    first, *cells = run_all(tmp_path, chapter, package)
    assert f"{len(chapter.exercises())} of {len(chapter.exercises())} exercises" in first.outputs[-1].data["text/plain"]
    assert not [cell for cell in cells if WAITS in printed(cell)]
    assert all(cell.execution_count for cell in cells)
