"""A student's folder with what the student has solved, and a lesson that runs in it."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

from autograder.course.authoring.chapter import Chapter, grade_id, is_stub, load_chapters
from autograder.course.authoring.exercise_source import standalone_source
from autograder.course.release import student_build
from autograder.course.release.lesson_notebook import lesson_name

from ..chapters.lesson import KernelOverFiles

ROOT = Path(__file__).parents[2]
NAMES = [chapter.name for chapter in load_chapters(ROOT)]
WAITS = "This cell waits for your "
# A training ends after two steps as if it had called an exercise of this name.
TRAINING = "training"
SHORT_TRAININGS = f"""\
from torch.optim import optimizer as _optimizers

def _stop(optimizer, *arguments):
    optimizer.steps_taken = getattr(optimizer, "steps_taken", 0) + 1
    if optimizer.steps_taken > 2:
        raise NotImplementedError("{TRAINING} is an exercise of chapter 00: write it in the notebook")

_optimizers.register_optimizer_step_post_hook(_stop)
"""


def students_folder(
    chapter: Chapter, lesson: bytes, solved: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Make the folder of a student who has solved every exercise (1), every second one (2), or none (0); return the package's place."""
    # Recordings are for checks, which a lesson does not ask for.
    monkeypatch.setattr(student_build, "_read_recordings", lambda root, chapter: {})
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


def run_all(folder: Path, chapter: Chapter, package: Path, before: str = "") -> list[Any]:
    """Run all cells of the lesson as Jupyter does, on the student's package, after some code; return the lesson's code cells."""
    notebook = nbformat.read(folder / lesson_name(chapter), as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(before))
    client = nbclient.NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=300,
        kernel_manager_class=KernelOverFiles,
        extra_arguments=["--log-level=40"],
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute(env={**os.environ, "PYTHONPATH": str(package), "OMP_NUM_THREADS": "1"})
    return [cell for cell in notebook.cells[1:] if cell.cell_type == "code"]


def awaited(cell: Any) -> str:
    """Return the exercise that a cell waits for, or nothing."""
    text = "".join(output.text for output in cell.outputs if output.output_type == "stream")
    return text.partition(WAITS)[2].partition(".")[0]
