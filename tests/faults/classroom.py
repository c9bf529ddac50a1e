"""The course that faults are tried on: two exercises, one question in words, and a class that hands in all kinds of things."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat

from tests.attacks.ground import CHAPTER, LIGHT, Ground, ground, right

STUDENTS = ("ada", "ben", "cem", "dee", "eve", "fay", "gus", "hal")
SEED = "2305843009213693951"


@contextmanager
def classroom() -> Iterator[tuple[Path, str]]:
    """Yield a course folder in which eight students have handed something in, and the chapter's name."""
    with ground(LIGHT) as place:
        (place.course / "secret_seed").write_text(SEED)
        for number, student in enumerate(STUDENTS):
            _hand_in(place, student, solved=number % 3)
        yield place.course, CHAPTER


def _hand_in(place: Ground, student: str, solved: int) -> None:
    """Hand in the released notebook with so many exercises solved; ``cem`` hands in a PDF."""
    path = place.course / "submitted" / student / CHAPTER / f"{CHAPTER}.ipynb"
    path.parent.mkdir(parents=True)
    if student == "cem":
        path.write_bytes(b"%PDF-1.7")
        return
    notebook = nbformat.read(place.course / "release" / CHAPTER / f"{CHAPTER}.ipynb", as_version=4)
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name in LIGHT[:solved]:
            cell.source = right(name)
    nbformat.write(notebook, path)
