"""Run the solutions and the stubs: every exercise must get full marks from the one and none from the other."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from autograder.authoring.chapter import Chapter, find_chapter
from autograder.checking.verdict import Verdict
from autograder.errors import CourseError

VERDICT_MIME = "application/vnd.tfcourse.verdict+json"
CELL_SECONDS = 300


@dataclass(frozen=True)
class Solved:
    """What came of one exercise.

    Attributes:
        chapter: the chapter.
        exercise: the exercise.
        solution: the verdict on the solution, or None if its cell failed.
        stub: the verdict on the stub, or None if its cell failed.
        error: what was raised, if something was.
    """

    chapter: str
    exercise: str
    solution: Verdict | None
    stub: Verdict | None
    error: str = ""

    @property
    def sound(self) -> bool:
        """Whether the solution gets everything and the stub nothing."""
        full = self.solution is not None and self.solution.passed
        return full and self.stub is not None and self.stub.score == 0

    def __str__(self) -> str:
        mine = self.error if self.solution is None else f"{self.solution.score:g} of {self.solution.max_score:g}"
        stub = "no verdict" if self.stub is None else f"{self.stub.score:g}"
        lines = [
            f"{'sound' if self.sound else 'UNSOUND'}  {self.chapter}  {self.exercise}: solution {mine}, stub {stub}"
        ]
        missed = [] if self.solution is None else [f for f in self.solution.findings if not f.passed]
        return "\n".join([*lines, *(f"         {finding.aspect}: {finding.message}" for finding in missed)])


def solve(
    root: Path, chapters: Sequence[str], *, device: str = "cpu", progress: Callable[[str], None] = lambda step: None
) -> list[Solved]:
    """Run the solution notebooks and the stubs of some chapters, each from a clean kernel, on a device.

    Args:
        root: the project.
        chapters: names of chapters.
        device: ``"cpu"`` or ``"cuda"``.
        progress: is told each notebook when it is done.

    Raises:
        CourseError: if a chapter has no solution notebook.
    """
    found = []
    for name in chapters:
        chapter = find_chapter(root, name)
        solutions = _verdicts(_solution_notebook(chapter), device)
        progress(f"{chapter.name}: solutions")
        stubs = _verdicts(chapter.notebook(), device)
        progress(f"{chapter.name}: stubs")
        for exercise in chapter.exercises():
            solution, error = solutions.get(exercise.name, (None, "the notebook has no test cell for it"))
            found.append(Solved(chapter.name, exercise.name, solution, stubs.get(exercise.name, (None, ""))[0], error))
    return found


def _solution_notebook(chapter: Chapter) -> Any:
    path = chapter.solution_path
    if not path.is_file():
        raise CourseError(
            "the solution notebook is missing", where=path, do="Write it from the reference: tfcourse sync"
        )
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        exercise = _tested(cell)
        if exercise:
            # The grader's own question: visible and hidden rounds, and no borrowing from the installed reference.
            cell.source = f"check({exercise}, hidden=True)"
    return notebook


def _tested(cell: Any) -> str | None:
    grade_id = str(cell.metadata.get("nbgrader", {}).get("grade_id", ""))
    return grade_id.removeprefix("test_") if cell.cell_type == "code" and grade_id.startswith("test_") else None


def _verdicts(notebook: Any, device: str) -> dict[str, tuple[Verdict | None, str]]:
    """Run a notebook and return for every exercise its verdict, or None and what was raised."""
    with tempfile.TemporaryDirectory() as folder, _environment(TFCOURSE_DEVICE=device, MPLBACKEND="agg"):
        client = NotebookClient(
            notebook,
            timeout=CELL_SECONDS,
            kernel_name="python3",
            allow_errors=True,
            resources={"metadata": {"path": folder}},
        )
        client.execute()
    found: dict[str, tuple[Verdict | None, str]] = {}
    for cell in notebook.cells:
        exercise = _tested(cell)
        if exercise:
            found[exercise] = _read(cell.outputs)
    return found


def _read(outputs: Sequence[Any]) -> tuple[Verdict | None, str]:
    for output in outputs:
        if output.output_type == "execute_result" and VERDICT_MIME in output.data:
            return Verdict.from_dict(output.data[VERDICT_MIME]), ""
        if output.output_type == "error":
            return None, f"{output.ename}: {output.evalue}"
    return None, "the test cell showed no verdict"


@contextmanager
def _environment(**values: str) -> Any:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
