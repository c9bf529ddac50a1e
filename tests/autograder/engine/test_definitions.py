"""A cell that compares itself with a refused function loses no definition that does not need the function's result."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import dedent

import pytest

from autograder.checks.ch05_transformer.ready_made import NORMS

from .student import Student


@pytest.fixture
def student() -> Iterator[Student]:
    made = Student(forbidden=NORMS)
    assert made.run("import torch\nimport torch.nn.functional as F\nx = torch.rand(2, 4)")
    yield made
    made.close()


def defined(student: Student, source: str, *, complete: bool = True) -> dict[str, bool]:
    """Run a cell for what it defines, and say which of some names it has defined."""
    student.conversation.ask({"do": "define", "source": dedent(source), "complete": complete})
    names = ("f", "below")
    return {name: student.conversation.ask({"do": "look", "cell": 0, "name": name})["value"] for name in names}


COMPARES = "F.layer_norm(x, (4,))"
CELLS = {
    "top level": f"def f(x): return x\nexpected = {COMPARES}\nbelow = 1",
    "missing name": f"expected = {COMPARES}\nprint(expected.sum())\ndef f(x): return x\nbelow = 1",
    "one line": f"expected = {COMPARES}; below = 1\ndef f(x): return x",
    "with": f"with torch.no_grad():\n    expected = {COMPARES}\n    print(expected.sum())\n    below = 1\ndef f(x): return x",
    "for": f"below = []\nfor n in range(2):\n    expected = {COMPARES}\n    below.append(n)\nbelow[1]\ndef f(x): return below[1]",
    "if": f"if __name__ == '__main__':\n    expected = {COMPARES}\n    below = 1\n    def f(x): return x",
    "class": f"class Reference:\n    'Text.'\n    out = {COMPARES}\n    scale = 1\nbelow = Reference.scale\ndef f(x): return x",
    "decorator": f"def against(f):\n    assert torch.allclose(f(x), {COMPARES})\n    return f\n@against\ndef f(x): return x\nbelow = 1",
    "try": f"try:\n    expected = {COMPARES}\nexcept RuntimeError:\n    below = 1\ndef f(x): return x",
    "%%time": f"%%time\nexpected = {COMPARES}\nbelow = 1\ndef f(x): return x",
    "%%capture": f"%%capture out\nexpected = {COMPARES}\nbelow = 1\ndef f(x): return x",
    "%timeit": f"%timeit -n1 -r1 {COMPARES}\nbelow = 1\ndef f(x): return x",
    "future": f"from __future__ import annotations\nexpected = {COMPARES}\ndef f(x: Unknown): return x\nbelow = 1",
    "await": f"import asyncio\nawait asyncio.sleep(0)\nexpected = {COMPARES}\nbelow = 1\ndef f(x): return x",
}


def test_a_comparison_costs_no_definition(student: Student) -> None:
    for name, cell in CELLS.items():
        assert student.run("f = below = None\ndel f, below")
        assert defined(student, cell) == {"f": True, "below": True}, name


def test_a_cell_that_failed_elsewhere_ends_there_again(student: Student) -> None:
    cell = f"expected = {COMPARES}\ndef f(x): return x\nfor n in range(2):\n    1 / 0\nbelow = 1"
    assert defined(student, cell, complete=False) == {"f": True, "below": False}


def test_a_context_manager_sees_the_exception_that_it_waits_for(student: Student) -> None:
    cell = "import contextlib\ndef f(x): return x\nbelow = 1\nwith contextlib.suppress(ZeroDivisionError):\n    1 / 0\n    del below"
    assert defined(student, cell) == {"f": True, "below": True}


def test_nothing_is_left_in_the_cells_namespace(student: Student) -> None:
    defined(student, "before = sorted(globals())")
    left = "[name for name in globals() if 'pass_over' in name] + get_ipython().ast_transformers"
    assert student.run(f"assert not {left}"), student.outputs
