"""Assign some of a chapter's exercises and questions: drop the others, and provide required exercises.

A section of the notebook (from a second-level heading to the next) is dropped if all its exercises and questions are left out. Exercises
that are left out and that an assigned one builds on are *provided*: the student package has the course's solution, and a locked cell below
the first one imports it. All other exercises that are left out stay stubs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

import nbformat

from autograder.checking.exercise import Exercise
from autograder.course.authoring.chapter import Chapter, grade_id, is_answer, is_stub, is_test
from autograder.errors import CourseError
from autograder.mistakes.source_edits import Sources

PROVIDED_CELL = "provided"

_NOTE = "# These exercises are not part of this assignment. What yours build on is the course's own:"


def names_to_choose(chapter: Chapter) -> list[str]:
    """Return the names of a chapter's exercises and questions in the order of the notebook."""
    cells = chapter.notebook().cells
    return [
        grade_id(cell) for cell in cells if is_answer(cell) or (is_stub(cell) and grade_id(cell) in chapter.registry)
    ]


def require_names(chapter: Chapter, names: Iterable[str]) -> None:
    """Check that a chapter has exercises or questions of these names.

    Raises:
        CourseError: for the first missing name, with the most similar existing one.
    """
    existing = names_to_choose(chapter)
    for name in names:
        if name not in existing:
            close = get_close_matches(name, existing, n=1)
            hint = f" Did you mean {close[0]}?" if close else ""
            raise CourseError(
                f"{chapter.name} has no exercise or question {name!r}.{hint}".rstrip("."),
                do=f"The chapter has: {', '.join(existing)}.",
            )


def select_exercises(chapter: Chapter, selects: Callable[[str], bool]) -> Chapter:
    """Return a chapter with only the selected exercises and questions assigned.

    Args:
        selects: returns whether an exercise or a question of that name is assigned.

    Raises:
        CourseError: if none remains.
    """
    names = names_to_choose(chapter)
    left_out = frozenset(name for name in names if not selects(name))
    if len(left_out) == len(names):
        raise CourseError(
            f"nothing of {chapter.name} is left to assign", do=f"Choose at least one of: {', '.join(names)}."
        )
    return replace(chapter, left_out=left_out)


def provided_exercises(chapter: Chapter) -> list[Exercise]:
    """Return the unassigned exercises that assigned ones require, directly or indirectly."""
    if not chapter.left_out:
        return []
    sources = Sources()
    assigned = [exercise for exercise in chapter.exercises() if exercise.name not in chapter.left_out]
    reached = {key for exercise in assigned for key in sources.reachable(_reference_key(exercise))}
    return [
        item for item in map(chapter.registry.get, sorted(chapter.left_out)) if item and _reference_key(item) in reached
    ]


def drop_left_out(notebook: Any, chapter: Chapter) -> None:
    """Remove unassigned sections from a chapter's notebook, and import the provided exercises."""
    if not chapter.left_out:
        return
    cells: list[Any] = []
    for section in _split_sections(notebook.cells):
        names = [_part_name(cell) for cell in section if is_stub(cell) or is_answer(cell)]
        if not names or any(name not in chapter.left_out for name in names):
            cells += [cell for cell in section if _part_name(cell) not in chapter.left_out]
    provided = provided_exercises(chapter)
    if provided:
        first = next(index for index, cell in enumerate(cells) if cell.cell_type == "code")
        cells.insert(first + 1, _provided_cell(provided))
    notebook.cells = cells


def _reference_key(exercise: Exercise) -> tuple[str, str]:
    return exercise.reference.__module__, exercise.reference.__name__


def _part_name(cell: Any) -> str:
    """Return the exercise or question to which a stub, test, answer or prompt belongs."""
    name = grade_id(cell)
    if is_test(cell):
        return name.removeprefix("test_")
    return name.replace("prompt_", "question_", 1) if name.startswith("prompt_") else name


def _split_sections(cells: Iterable[Any]) -> Iterator[list[Any]]:
    section: list[Any] = []
    for cell in cells:
        if cell.cell_type == "markdown" and cell.source.lstrip().startswith("## ") and section:
            yield section
            section = []
        section.append(cell)
    yield section


def _provided_cell(exercises: Iterable[Exercise]) -> Any:
    lines = sorted(f"from {exercise.reference.__module__} import {exercise.name}" for exercise in exercises)
    metadata = {"grade": False, "grade_id": PROVIDED_CELL, "locked": True, "solution": False, "task": False}
    return nbformat.v4.new_code_cell(
        "\n".join([_NOTE, *lines]), metadata={"nbgrader": {**metadata, "schema_version": 3}}
    )


def summarise_notebook(notebook: Any) -> str:
    """Summarise the numbers of exercises and questions in a notebook and their points, as a sentence."""
    exercises = [_cell_points(cell) for cell in notebook.cells if is_test(cell)]
    questions = [_cell_points(cell) for cell in notebook.cells if is_answer(cell)]
    parts = [_count_text(exercises, "exercise"), _count_text(questions, "question")]
    together = " and ".join(filter(None, parts))
    total = sum(exercises) + sum(questions)
    return f"{together}, {total:g} points in all." if all(parts) else f"{together}."


def list_notebook_parts(notebook: Any) -> list[tuple[str, float]]:
    """Return a notebook's exercises and questions in order, with their points."""
    cells = (cell for cell in notebook.cells if is_test(cell) or is_answer(cell))
    return [(grade_id(cell).removeprefix("test_"), _cell_points(cell)) for cell in cells]


def _cell_points(cell: Any) -> float:
    return float(cell.metadata.nbgrader.get("points") or 0)


def _count_text(points: list[float], noun: str) -> str:
    return f"{len(points)} {noun}{'' if len(points) == 1 else 's'} for {sum(points):g} points" if points else ""
