"""A notebook of 200 MB is read without much more memory than the file itself takes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .material import CHAPTER, Work

_READ = """
import resource, sys
from pathlib import Path
from autograder.intake.notebook.notebook_reader import read_file, read_notebook
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
before = peak()
notebook, problems = read_notebook(read_file(Path(sys.argv[1])))
print(len(notebook.cells), len(problems), peak() - before)
"""


def piece(kind: str) -> str:
    """Return about a megabyte of an output."""
    if kind == "lines":
        lines = [f"epoch {i} loss 0.12345\n" for i in range(35_000)]
        return json.dumps({"output_type": "stream", "name": "stdout", "text": lines})
    if kind == "pictures":
        return json.dumps(
            {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo" * 95_000}, "metadata": {}}
        )
    return json.dumps({"output_type": "display_data", "data": {"x": [[1.5, None, "a"], {"y": {}}] * 33_000}})


# Lists in lists are the slowest to pass over, and no faster for being more.
@pytest.mark.parametrize(("kind", "megabytes"), [("lines", 200), ("pictures", 200), ("plots", 50)])
def test_outputs_are_passed_over(
    kind: str, megabytes: int, released: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    work = Work.done(released[CHAPTER])
    work.cell("causal_mask")["outputs"] = ["HERE"]
    head, _, tail = work.json().decode().partition('"HERE"')
    path, output = tmp_path / "large.ipynb", piece(kind)
    with path.open("w", encoding="utf-8") as file:
        file.write(head)
        for number in range(megabytes * 1024**2 // len(output) + 1):
            file.write(("," if number else "") + output)
        file.write(tail)
    assert path.stat().st_size > megabytes * 1024**2
    done = subprocess.run(
        [sys.executable, "-c", _READ, str(path)], capture_output=True, text=True, check=True, timeout=120
    )
    path.unlink()
    cells, problems, grown = map(int, done.stdout.split())
    assert (cells, problems) == (len(work.cells), 0)
    assert grown < megabytes + 100, f"reading {megabytes} MB took {grown} MB"
