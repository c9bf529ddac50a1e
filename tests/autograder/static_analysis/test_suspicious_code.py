"""Text that reaches for what no exercise needs is named; ordinary work is not; and to read takes no longer than the text is."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from autograder.static_analysis.cell_ast import syntax_error
from autograder.static_analysis.suspicious_code import find_suspicious

PROJECT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import ctypes", "ctypes"),
        ("import os, gc as g", "gc"),
        ("from autograder.checking import sheet", "autograder"),
        ("from torch import library", "torch.library"),
        ("import torch._C", "…._C"),
        ("eval('1')", "eval"),
        ("handle = exec", "exec"),
        ("f.__globals__['check']", "….__globals__"),
        ("sys._getframe(1)", "…._getframe"),
        ("torch.ops.aten.relu", "torch.ops"),
        ("from . import x", "a relative import"),
        ("!python x.py", "!python"),
        ("%run x.py", "%run"),
        ("get_ipython().run_cell('1')", "%1"),
        ("#" + 200_001 * "-", "a cell of 200002 characters, which is too long to be read"),
        ("x = " + "+".join(20_000 * "1"), "a cell that is nested too deep to be read"),
    ],
)
def test_what_no_exercise_needs_is_named(source: str, name: str) -> None:
    assert find_suspicious([source]) == (name,)


@pytest.mark.parametrize(
    "source",
    [
        "import torch\nfrom torch import nn\nimport torch.nn.functional as F\nimport numpy as np",
        "class A(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self._x = 1",
        "if x.is_meta or x.device.type == 'meta': pass",
        "getattr(self, f'layer_{i}')",
        "!pip install einops\n%matplotlib inline\n%timeit 1 + 1",
        "x = 1\0",
        "def f(: pass",
        "%time " * 600,
    ],
)
def test_ordinary_work_and_what_cannot_run_are_not(source: str) -> None:
    assert find_suspicious([source]) == ()


def test_equal_names_are_told_once_and_many_in_part() -> None:
    assert find_suspicious(["eval\neval", "eval", "exec"]) == ("eval", "exec")
    names = find_suspicious(["\n".join(f"import unknown_{number}" for number in range(500))])
    assert len(names) == 31
    assert names[-1] == "and 470 others"


@pytest.mark.parametrize(
    "source",
    [
        "a = torch\n" + "".join(f"a = a.b{i}; b{i} = a.c; a = b{i}.d\n" for i in range(3000)),
        "x = " + "(" * 5000 + "1" + ")" * 5000,
        "x" + ".a" * 50_000,
        "!ls\n" * 40_000,
        "%time x = 1\n" * 800,
    ],
    ids=["names", "brackets", "attributes", "commands", "magics"],
)
def test_hostile_text_is_read_to_its_end(source: str) -> None:
    # Each took minutes, or raised.
    assert len(find_suspicious([source])) <= 1
    assert len(syntax_error(source)) < 200


@pytest.mark.parametrize(
    "path", sorted((PROJECT / "solutions").glob("*/exercises.ipynb")), ids=lambda path: path.parent.name
)
def test_no_solution_of_the_courses_own_is_named(path: Path) -> None:
    notebook = nbformat.read(path, 4)
    assert find_suspicious([cell.source for cell in notebook.cells if cell.cell_type == "code"]) == ()
