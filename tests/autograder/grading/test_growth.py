"""Putting a submission in order takes time in proportion to its size, whatever is in it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from autograder.static_analysis import cell_names
from autograder.submission import cell_reader
from autograder.submission.cell_reader import BUDGET
from autograder.submission.intake import Intake, take_in
from autograder.submission.manifest import Manifest, SourceCell
from autograder.submission.text_comparison import STEPS, TextComparison

EXERCISES = [f"f{i}" for i in range(6)]
BODY = "\n".join(f"    y{i} = x + {i}" for i in range(8))
PROMPT = "Write the function that does what the lesson says about it, with words enough for two lines of text"
Cell = dict[str, Any]


def source_cell(name: str, source: str, kind: str = "code", **marks: Any) -> SourceCell:
    about = {"locked": False, "grade": False, "solution": False, "task": False, "points": 0.0, "checksum": None}
    return SourceCell(name=name, cell_type=kind, source=source, **(about | marks))


def chapter() -> Manifest:
    cells = [source_cell("setup", "from tfcourse import check\nimport torch\n", locked=True)]
    for name in EXERCISES:
        cells += [
            source_cell(f"text_{name}", f"## {name}\n\n{PROMPT} {name}", "markdown", locked=True),
            source_cell(name, f"def {name}(x):\n    raise NotImplementedError\n", solution=True),
            source_cell(f"test_{name}", f"check({name})\n", locked=True, grade=True, points=3.0),
        ]
    cells.append(source_cell("why", "Your answer", "markdown", solution=True, grade=True, points=2.0))
    return Manifest("03", tuple(cells))


MANIFEST = chapter()


def code(source: str, name: str = "") -> Cell:
    return {"cell_type": "code", "source": source, "metadata": {"nbgrader": {"grade_id": name}} if name else {}}


def text(source: str, name: str = "") -> Cell:
    return {**code(source, name), "cell_type": "markdown"}


def solution(number: int) -> str:
    name = EXERCISES[number % len(EXERCISES)]
    return f"def {name}(x):\n{BODY}\n    return {number}"


def page() -> list[Cell]:
    return [{**code(cell.source, cell.name), "cell_type": cell.cell_type} for cell in MANIFEST.cells]


def shuffled(number: int) -> str:
    words = PROMPT.split()
    turn = number % len(words)
    return f"## f0\n\n{' '.join(words[turn:] + words[:turn])} f0"


NOTEBOOKS: dict[str, Callable[[int], Iterator[Cell]]] = {
    "text and code": lambda n: (make(solution(i)) for i in range(n // 2) for make in (text, code)),
    "text alone": lambda n: (text(solution(i)) for i in range(n)),
    "solutions": lambda n: (code(solution(i)) for i in range(n)),
    "all in each": lambda n: (code("\n".join(f"def {f}(x): return {i}" for f in EXERCISES)) for i in range(n)),
    "stubs": lambda n: (code(f"def f{i % 6}(x):\n    raise NotImplementedError\n") for i in range(n)),
    "one name": lambda n: (code(f"z = {i}", "f1") for i in range(n)),
    "one name, defined": lambda n: (code(solution(i), "f1") for i in range(n)),
    "answers": lambda n: (text(f"It is {i}.", "why") for i in range(n)),
    "prompts": lambda n: (text(shuffled(i)) for i in range(n)),
    "edited tests": lambda n: (code(f"# {i}\ncheck(f1)", "test_f1") for i in range(n)),
    "buried": lambda n: (code(f"class A{i}:\n    def f{i % 6}(x): return {i}") for i in range(n)),
    "misspelled": lambda n: (code(f"f_{i}x = {i}") for i in range(n)),
    "invisible": lambda n: (code(f"x\u200b = {i}") for i in range(n)),
    "magics": lambda n: (code(f"!ls f1 {i}\n%time f1()") for i in range(n)),
    "imports": lambda n: (code(f"from tfcourse import check\nx = {i}") for i in range(n)),
}


def read(cells: list[Cell]) -> Intake:
    cell_reader._outline_of_short_cell.cache_clear()  # as if no notebook had been read before
    return take_in(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode(), MANIFEST)


def calls(work: Callable[[], object]) -> int:
    """Return how many times Python enters a function or goes on with a generator during some work."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("kind", NOTEBOOKS)
def test_twice_the_cells_take_twice_the_steps(kind: str) -> None:
    few, many = (calls(lambda n=n: read([*page(), *NOTEBOOKS[kind](n)])) for n in (100, 200))
    assert many < 2.2 * few


@pytest.mark.parametrize("kind", ["text and code", "solutions"])
def test_more_cells_than_a_cache_holds_are_parsed_once(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    real = cell_names._tree
    monkeypatch.setattr(cell_names, "_tree", lambda text: parsed.append(text) or real(text))
    cell_names._outline.cache_clear()
    cells = list(NOTEBOOKS[kind](1_200))
    read([*page(), *cells])
    assert len(parsed) < 1.1 * len(cells)


def test_code_beyond_the_budget_is_searched_and_told() -> None:
    filler = "x = 1\n" * 30_000
    cells = [*page(), *(code(f"y = {i}\n{filler}") for i in range(7)), code("def f1(x):\n    return x\n" + filler)]
    found = read(cells)
    (told,) = (problem for problem in found.problems if problem.kind == "much code")
    assert "3 of its cells" in told.what
    assert f"{BUDGET:,}" in told.what
    # The last solution of f1 counts, though nobody parsed it.
    names = [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in found.notebook.cells]
    assert found.notebook.cells[names.index("f1")].source.endswith(filler)


def test_texts_are_compared_within_a_budget() -> None:
    texts = TextComparison()
    words = [f"w{i}" for i in range(500)]
    cells = [{"source": " ".join(words[i:] + words[:i])} for i in range(1, 400)]
    assert texts.first_alike(cells, " ".join(words[::-1])) is None
    assert texts._steps < 0
    assert texts._steps > -STEPS / 10
