"""Read scores, verdicts, errors and times from an executed notebook, by exercise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from nbgrader.utils import determine_grade

from autograder.checking.verdict import VERDICT_MIME, Verdict
from autograder.course.folder import Course
from autograder.course.paths import shell_command
from autograder.errors import list_first
from autograder.grading.record.results import ExerciseResult, Notebook
from autograder.intake.notebook.manifest import Manifest
from autograder.intake.notebook.problem import Problem, shorten

_LONGEST_ERROR = 500


def exercise_results(
    manifest: Manifest, notebook: Any, scores: Mapping[str, float], seconds: Mapping[str, float]
) -> tuple[ExerciseResult, ...]:
    """Return the results of a chapter's exercises from an executed notebook.

    Args:
        manifest: the chapter's cells.
        notebook: the executed notebook.
        scores: points by test cell.
        seconds: running time by cell.
    """
    return tuple(_read_exercises(manifest, notebook, scores, seconds))


def _read_exercises(
    manifest: Manifest, notebook: Any, scores: Mapping[str, float], seconds: Mapping[str, float]
) -> Iterator[ExerciseResult]:
    cells = _cells_by_name(notebook)
    for cell in manifest.cells:
        if cell.is_test and cell.name in cells:
            verdict, error = _read_verdict(cells[cell.name])
            yield ExerciseResult(
                name=tested_exercise(cell.name),
                score=scores[cell.name],
                max_score=cell.points,
                verdict=verdict,
                error=error,
                seconds=seconds.get(cell.name, 0.0),
            )


def zero_results(manifest: Manifest, why: str) -> tuple[ExerciseResult, ...]:
    """Return results with zero points and a reason, for a chapter that could not run."""
    return tuple(
        ExerciseResult(tested_exercise(cell.name), 0.0, cell.points, error=why)
        for cell in manifest.cells
        if cell.is_test
    )


def missing_notebook_problem(folder: Path) -> Problem:
    """Describe a submission without the chapter's notebook as a problem that lists the submitted files."""
    student, chapter = folder.parent.name, folder.name
    problem = f"The folder submitted/{student}/{chapter} has no {chapter}.ipynb"
    names = sorted(path.name for path in folder.glob("*") if path.name != "timestamp.txt")
    if names:
        problem += f"; handed in was: {list_first(names, 5)}"
    do = f"Ask for {chapter}.ipynb, or give points to what is there: tfcourse decide."
    if any(name.endswith(".ipynb") for name in names):
        do = f"Rename the notebook to {chapter}.ipynb."
    return Problem("no notebook", f"{problem}.", do=do, fatal=True)


def undecided_problem(course: Course, student: str, chapter: str, notebooks: Sequence[Notebook]) -> Problem:
    """Describe a submission with several notebooks and no chosen one as a problem."""
    problem = f"{len(notebooks)} notebooks, and it is open which one counts: {'; '.join(map(str, notebooks))}."
    command = shell_command(course, "choose", student, chapter, "FILE")
    return Problem("to decide", problem, do=f"No score is recorded before you choose: {command}")


def tested_exercise(test: str) -> str:
    """Return the exercise name of a test cell."""
    return test.removeprefix("test_")


def read_scores(notebook: Any) -> dict[str, float]:
    """Return the points of each graded cell, as nbgrader reads them from its outputs."""
    cells = _cells_by_name(notebook).items()
    return {name: float(determine_grade(cell)[0] or 0.0) for name, cell in cells if cell.metadata.nbgrader["grade"]}


def read_seconds(notebook: Mapping[str, Any]) -> dict[str, float]:
    """Return the running time in seconds of each named cell of an executed notebook."""
    seconds = {}
    for name, cell in _cells_by_name(notebook).items():
        times = cell["metadata"].get("execution", {})
        begin, end = times.get("iopub.status.busy"), times.get("shell.execute_reply")
        if begin and end:
            seconds[name] = round((datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds(), 3)
    return seconds


def _cells_by_name(notebook: Mapping[str, Any]) -> dict[str, Any]:
    marked = (cell for cell in notebook["cells"] if cell["metadata"].get("nbgrader"))
    return {cell["metadata"]["nbgrader"]["grade_id"]: cell for cell in marked}


def _read_verdict(cell: Any) -> tuple[Verdict | None, str]:
    """Return a test cell's verdict, or the reason why it has none."""
    for output in cell.outputs:
        if output.output_type == "error":
            return None, shorten(f"{output.ename}: {output.evalue}".strip(": "), _LONGEST_ERROR)
        if output.output_type == "execute_result" and VERDICT_MIME in output.data:
            try:
                return Verdict.from_dict(output.data[VERDICT_MIME]), ""
            except (KeyError, TypeError):
                return None, "The verdict could not be read."
    return None, ""
