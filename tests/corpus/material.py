"""What the corpus is made of: a chapter of three exercises and a question, and a correct notebook of it as plain data."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from autograder.checks import exercise
from autograder.course.authoring.exercise_source import solution_source, standalone_source, stub_source

CHAPTER = "03_scaled_dot_product"
OTHER = "04_multi_head"
EXERCISES = {CHAPTER: ("causal_mask", "merge_query_key", "soft_lookup"), OTHER: ("split_heads",)}
SETUP = "import math\n\nimport torch\nfrom torch import Tensor, nn\n\nfrom tfcourse import check\n"
PROMPT = "## Why is there a square root?\n\nExplain in two sentences why the scores are divided by $\\sqrt{D_h}$."
SECOND_PROMPT = (
    "## What does a mask do?\n\nExplain what becomes of a key that no query may attend to, and of its gradient."
)
ANSWER = "Because the variance of a sum grows with the number of its terms."
SECOND_ANSWER = "Its weight is zero, and so is the gradient of its value."
UNANSWERED = "*Your answer.*"
HIDDEN = "\n### BEGIN HIDDEN TESTS\ncheck({name}, hidden=True)\n### END HIDDEN TESTS"


def points(name: str) -> float:
    """What an exercise is worth."""
    return float(exercise(name).points)


@cache
def right(name: str) -> str:
    """The right solution of an exercise, as a student would write it."""
    return standalone_source(exercise(name).reference, rename=name)


def mark(name: str, **flags: Any) -> dict[str, Any]:
    """Return nbgrader metadata."""
    plain = {"grade": False, "locked": False, "solution": False, "task": False, "schema_version": 3, "grade_id": name}
    return {"nbgrader": plain | flags}


def code(source: str, metadata: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a code cell."""
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": metadata or {},
        "outputs": [],
        "source": source,
    }


def markdown(source: str, metadata: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a Markdown cell."""
    return {"cell_type": "markdown", "metadata": metadata or {}, "source": source}


def source_cells(chapter: str, exercises: Iterable[str]) -> list[dict[str, Any]]:
    """Return the cells of a chapter's source notebook with some exercises in it."""
    cells = [markdown(f"# Exercises of {chapter}"), code(SETUP, mark("setup", locked=True))]
    for name in exercises:
        test = mark(f"test_{name}", grade=True, locked=True, points=exercise(name).points)
        cells += [
            markdown(f"## {name.replace('_', ' ').capitalize()}\n\nWrite `{name}`."),
            code(solution_source(exercise(name)), mark(name, solution=True)),
            code(f"check({name}){HIDDEN.format(name=name)}", test),
        ]
    for name, prompt in (("root", PROMPT), ("mask", SECOND_PROMPT)):
        cells += [
            markdown(prompt, mark(f"prompt_{name}", locked=True)),
            markdown(
                "### BEGIN SOLUTION\nModel.\n### END SOLUTION",
                mark(f"question_{name}", grade=True, solution=True, points=4),
            ),
        ]
    return cells


def notebook(cells: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a notebook in the format that Jupyter writes today."""
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    cells = [{**cell, "id": f"made-{number}"} for number, cell in enumerate(cells)]
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


@dataclass
class Work:
    """A correct notebook of a chapter, to be damaged. What a case does to it happens to a copy of its own.

    Attributes:
        data: the notebook as plain data.
    """

    data: dict[str, Any]

    @classmethod
    def done(cls, released: dict[str, Any]) -> Work:
        """Return a released notebook with everything in it done."""
        work = cls(copy.deepcopy(released))
        for cell in work.cells:
            name = cell["metadata"].get("nbgrader", {}).get("grade_id", "")
            if cell["metadata"].get("nbgrader", {}).get("solution") and cell["cell_type"] == "code":
                cell["source"] = right(name)
            elif name.startswith("question_"):
                cell["source"] = {"question_root": ANSWER}.get(name, SECOND_ANSWER)
        return work

    @property
    def cells(self) -> list[dict[str, Any]]:
        """The cells."""
        cells: list[dict[str, Any]] = self.data["cells"]
        return cells

    def at(self, name: str) -> int:
        """Return the place of the cell that carries a name."""
        return next(
            i for i, cell in enumerate(self.cells) if cell["metadata"].get("nbgrader", {}).get("grade_id") == name
        )

    def cell(self, name: str) -> dict[str, Any]:
        """Return the cell that carries a name."""
        return self.cells[self.at(name)]

    def bare(self) -> Work:
        """Take all metadata away; return the work itself."""
        for cell in self.cells:
            cell["metadata"] = {}
        return self

    def json(self) -> bytes:
        """Return the file."""
        return json.dumps(self.data, indent=1, ensure_ascii=False).encode("utf-8", "surrogatepass")


def stub(name: str) -> str:
    """Return an exercise as it is given out."""
    return stub_source(exercise(name))
