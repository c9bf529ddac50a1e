"""A change of the reference is a drift: on a copy of the project, in a process that imports the copy."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from autograder.authoring.sync import sync
from autograder.errors import CourseError

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with one chapter of two exercises, in step."""
    root = tmp_path_factory.mktemp("copy") / "project"
    ignore = shutil.ignore_patterns("__pycache__", "*.pyc")
    for name in ("tfcourse", "autograder"):
        shutil.copytree(ROOT / name, root / name, ignore=ignore)
    checks = root / "autograder" / "checks"
    for path in checks.iterdir():
        if path.name not in ("__init__.py", "headings.py"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    (checks / "ch90_first").mkdir()
    (checks / "ch90_first" / "__init__.py").write_text("")
    (checks / "ch90_first" / "small.py").write_text(CHECKS)
    (checks / "ch90_first" / "small.toml").write_text("")
    folder = root / "chapters" / "90_first"
    folder.mkdir(parents=True)
    text = (Path(__file__).parent / "two_exercises.md").read_text()
    (folder / "exercises.md").write_text(text)
    assert run(root, check=False)
    assert run(root, check=True) == []
    return root


CHECKS = """\
from autograder.checking import rows
from autograder.checking.draw import Case
from autograder.checking.exercise import Exercise
from tfcourse import attention

def case(draw):
    return Case({"T": draw.sizes(1)[0]})

def matrices(draw):
    d, dk = draw.sizes(2)
    return Case({"w_q": draw.normal(d, dk), "w_k": draw.normal(d, dk)})

MASK = Exercise(reference=attention.causal_mask, rows=(rows.numbers(2, case),))
MERGE = Exercise(reference=attention.merge_query_key, rows=(rows.numbers(1, matrices),))
"""


def run(root: Path, *, check: bool) -> list[dict[str, Any]]:
    """Run sync where Python finds the copy first."""
    code = (
        "import json, sys; from pathlib import Path; from autograder.authoring.sync import sync\n"
        f"found = sync(Path(sys.argv[1]), check={check})\n"
        "print(json.dumps([{'file': str(d.file), 'cell': d.cell, 'what': d.what} for d in found]))"
    )
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(root)], env=environment, cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    result: list[dict[str, Any]] = json.loads(done.stdout)
    return result


@pytest.mark.parametrize(
    ("old", "new", "stub", "solution"),
    [
        ("Return the causal mask: position i", "Return a mask: position i", "docstring", "docstring"),
        ("def causal_mask(T: int, device", "def causal_mask(T: int, *, device", "signature", "signature"),
        ("device=device).tril()", "device=device).tril(0)", None, "body"),
    ],
    ids=["docstring", "signature", "solution"],
)
def test_a_change_of_the_reference_alone_is_a_drift(
    copy: Path, old: str, new: str, stub: str | None, solution: str
) -> None:
    path = copy / "tfcourse" / "attention.py"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    try:
        found = {(Path(drift["file"]).name, drift["cell"]): drift["what"] for drift in run(copy, check=True)}
    finally:
        path.write_text(text)
    expected = {("exercises.ipynb", "causal_mask")} | ({("exercises.md", "causal_mask")} if stub else set())
    assert set(found) == expected
    assert solution in found["exercises.ipynb", "causal_mask"]
    assert stub is None or stub in found["exercises.md", "causal_mask"]


def test_another_projects_package_is_not_taken_for_this_ones(copy: Path) -> None:
    with pytest.raises(CourseError, match="another one"):
        sync(copy, check=True)
