"""Several notebooks of one student: which one counts, if that can be told."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from autograder.intake.notebook.intake import prepare_submission
from autograder.intake.notebook.manifest import Manifest
from autograder.intake.notebook.notebook_reader import UnreadableError, read_notebook
from autograder.intake.notebook.problem import Problem
from autograder.intake.notebook.restore import names_present


@dataclass(frozen=True)
class Candidate:
    """A notebook that may be a student's submission."""

    data: bytes  # the file
    exact: bool = False  # whether its file name is the chapter's name
    fatal: Problem | None = None  # the reason why it cannot be graded; empty if it can
    cells: frozenset[str] = frozenset()  # names of the chapter's exercises and questions that it contains
    # names of the exercises and questions in which the student has written something
    solved: frozenset[str] = frozenset()
    written: tuple[str, ...] = ()  # the sources of all its cells, in order

    @property
    def digest(self) -> str:
        """A hash of the file."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def worth(self) -> tuple[bool, bool]:
        """Sorts what cannot be graded before what was not begun, and that before what holds work."""
        return (self.fatal is None, bool(self.solved))

    def covers(self, other: Candidate) -> bool:
        """Whether this has all the cells of the chapter that another has, and something written in all that the other has."""
        return self.cells >= other.cells and self.solved >= other.solved


def examine(data: bytes, manifest: Manifest, *, exact: bool = False) -> Candidate:
    """Read a file that may be a student's submission.

    Args:
        data: the file.
        manifest: the chapter's cells.
        exact: whether its file name is the chapter's name.
    """
    try:
        notebook, problems = read_notebook(data)
    except UnreadableError as error:
        return Candidate(data, exact, error.problem)
    cells = names_present(notebook) & manifest.work
    written = tuple(cell["source"].strip() for cell in notebook.cells if cell["source"].strip())
    restored = prepare_submission(notebook, problems, manifest)
    fatal = next((problem for problem in restored.problems if problem.fatal), None)
    solved = set()
    for cell in restored.notebook.cells:
        released = manifest.by_name.get(cell["metadata"].get("nbgrader", {}).get("grade_id", ""))
        if released is not None and released.solution and cell["source"].split() != released.source.split():
            solved.add(released.name)
    return Candidate(data, exact, fatal, cells, frozenset(solved), written)


def pick_candidate(candidates: Sequence[Candidate]) -> tuple[int | None, str]:
    """Select the notebook that counts from a student's notebooks.

    Notebooks that cannot be graded or contain only empty exercises are dropped if another one contains work. Among the others, a notebook
    with the chapter's file name wins. Otherwise a notebook wins if it contains and solves every exercise that any other notebook contains
    and solves.

    Args:
        candidates: the notebooks, the last one last.

    Returns:
        The index of the notebook that counts, or None if the rules do not decide; and the rule that decided.
    """
    best = max(candidate.worth for candidate in candidates)
    remaining = [i for i, candidate in enumerate(candidates) if candidate.worth == best]
    if len(remaining) == 1:
        return remaining[0], "it holds the work" if best == (True, True) else "the others cannot be graded"
    if named := [i for i in remaining if candidates[i].exact]:
        remaining = named
        if len(remaining) == 1:
            return remaining[0], "its name is the chapter's"
    if not candidates[remaining[-1]].worth[0]:
        return remaining[-1], "none of them can be graded"
    if len({candidates[i].written for i in remaining}) == 1:
        return remaining[-1], "they say the same"
    full = [i for i in remaining if all(candidates[i].covers(candidates[j]) for j in remaining)]
    return (full[0], "it has more of the chapter's cells solved") if len(full) == 1 else (None, "")
