"""Convert a submitted file to a gradable notebook, or report the problem that prevents it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbformat.v4 import new_notebook

from autograder.checks_version import checks_stamp
from autograder.intake.notebook.answer_pictures import attach_pictures
from autograder.intake.notebook.cell_reader import CellReader
from autograder.intake.notebook.manifest import Manifest
from autograder.intake.notebook.notebook_reader import UnreadableError, read_file, read_notebook
from autograder.intake.notebook.problem import METADATA_KEY, Problem, set_problems
from autograder.intake.notebook.restore import make_reader, names_present, restore


@dataclass(frozen=True)
class Intake:
    """A restored submission that nbgrader accepts, and its problems."""

    notebook: Any  # all the cells of the chapter, with their true metadata, and the problems in the notebook's metadata
    # the problems. If the submission cannot be graded, one is fatal, and the notebook must not run.
    problems: tuple[Problem, ...]

    @property
    def gradable(self) -> bool:
        """Whether the notebook may be run."""
        return not any(problem.fatal for problem in self.problems)


def read_submission(path: Path) -> tuple[Any, list[Problem]]:
    """Read any submitted file as a notebook without outputs; an unreadable file gives an empty notebook."""
    try:
        return read_notebook(read_file(path, above=2))
    except UnreadableError as error:
        return new_notebook(), [error.problem]


def load_submission(path: Path, manifest: Manifest) -> Intake:
    """Convert a submitted file to a notebook that nbgrader accepts; if it cannot be graded, to one with stubs and the reason.

    Args:
        path: ``submitted/STUDENT/CHAPTER/FILE``; the pictures of answers lie beside it.
    """
    intake = prepare_submission(*read_submission(path), manifest)
    attach_to_answers(intake.notebook, manifest, path.parent)
    return intake


def attach_to_answers(notebook: Any, manifest: Manifest, folder: Path) -> None:
    """Attach images from the notebook's folder to a restored notebook's written answers."""
    answers = {cell.name for cell in manifest.cells if cell.is_answer and cell.cell_type == "markdown"}
    named = (cell for cell in notebook.cells if cell["cell_type"] == "markdown")
    attach_pictures((cell for cell in named if cell["metadata"].get("nbgrader", {}).get("grade_id") in answers), folder)


def prepare_submission(notebook: Any, problems: list[Problem], manifest: Manifest) -> Intake:
    """Restore a parsed notebook, or report that it belongs to another chapter."""
    collected = list(problems)
    stamp = (notebook.metadata.pop(METADATA_KEY, None) or {}).get("checks", "")
    reader = make_reader(manifest)
    if not any(problem.fatal for problem in collected) and (
        other := _other_chapter_problem(notebook, manifest, reader)
    ):
        collected.append(other)
    restored = restore(notebook, manifest, reader)
    if not any(problem.fatal for problem in collected):
        collected += restored + _stamp_problems(stamp)
    set_problems(notebook, collected)
    return Intake(notebook, tuple(collected))


def _stamp_problems(stamp: str) -> list[Problem]:
    """Report that a notebook was released with other checks than the grader's; one without a stamp is accepted."""
    if not stamp or stamp == checks_stamp():
        return []
    message = f"The notebook comes with checks {stamp}; it was graded with {checks_stamp()}, so a check at home may have differed."
    do = "Download the chapter's package again before you go on working with it."
    return [Problem("other checks", message, do=do, remark=True)]


def identify_chapter(notebook: Any, manifest: Manifest, reader: CellReader | None = None) -> str | None:
    """Identify a notebook's chapter by its contents: the manifest's, another one in the gradebook, or None."""
    names = names_present(notebook, reader)
    # Setup cells and headings do not identify a chapter: chapters outside the gradebook have them, too.
    if names & manifest.unique_names & manifest.work:
        return manifest.chapter
    chapter_names = frozenset(manifest.by_name)
    others = {
        chapter: len(names & (other_names - chapter_names)) for chapter, other_names in manifest.elsewhere.items()
    }
    best = max(others, key=lambda chapter: (others[chapter], chapter), default=None)
    if best is not None and others[best]:
        return best
    # Courses that number their problems use the same names in every assignment.
    return manifest.chapter if names & manifest.work else None


def _other_chapter_problem(notebook: Any, manifest: Manifest, reader: CellReader) -> Problem | None:
    chapter = identify_chapter(notebook, manifest, reader)
    if chapter == manifest.chapter:
        return None
    kind, message = "other notebook", f"None of the exercises and questions of {manifest.chapter} is in this notebook."
    if chapter is not None:
        kind, message = "wrong chapter", f"This is the notebook of chapter {chapter}, not of {manifest.chapter}."
    return Problem(kind, message, do=f"Ask for {manifest.chapter}.ipynb.", fatal=True)
