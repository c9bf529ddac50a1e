"""Count what an assignment asks, from the cells of its notebook."""

from __future__ import annotations

from typing import Any

from autograder.course.authoring.chapter import grade_id, is_answer, is_test


def summary_of(notebook: Any) -> str:
    """Return a sentence with the numbers of exercises and questions of a notebook and their points."""
    exercises = [_points(cell) for cell in notebook.cells if is_test(cell)]
    questions = [_points(cell) for cell in notebook.cells if is_answer(cell)]
    parts = [_counted(exercises, "exercise"), _counted(questions, "question")]
    together = " and ".join(filter(None, parts))
    total = sum(exercises) + sum(questions)
    return f"{together}, {total:g} points in all." if all(parts) else f"{together}."


def parts_of(notebook: Any) -> list[tuple[str, float]]:
    """Return the exercises and questions of a notebook in order, with their points."""
    cells = (cell for cell in notebook.cells if is_test(cell) or is_answer(cell))
    return [(grade_id(cell).removeprefix("test_"), _points(cell)) for cell in cells]


def _points(cell: Any) -> float:
    return float(cell.metadata.nbgrader.get("points") or 0)


def _counted(points: list[float], noun: str) -> str:
    return f"{len(points)} {noun}{'' if len(points) == 1 else 's'} for {sum(points):g} points" if points else ""
