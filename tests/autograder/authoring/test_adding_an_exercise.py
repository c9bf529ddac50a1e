"""Follow docs/adding-an-exercise.md to the letter, on a copy of the repository, and see the new exercise work."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "adding-an-exercise.md"
BLOCK = re.compile(
    r"^<!-- (?P<marker>.+?) -->\n(?P<fence>`{3,})\w+\n(?P<content>.*?)^(?P=fence)$", re.DOTALL | re.MULTILINE
)
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAME = "attention_entropy"


def apply(root: Path, marker: str, content: str) -> Path:
    """Do what the comment above a box says."""
    if new := re.fullmatch(r"new file: (\S+)", marker):
        path = root / new[1]
        assert not path.exists(), f"{new[1]} is there already"
        path.write_text(content, encoding="utf-8")
    else:
        change = re.fullmatch(r"in (\S+), before: (.+)", marker)
        assert change is not None, f"what does this mean? {marker}"
        path = root / change[1]
        text = path.read_text(encoding="utf-8")
        assert text.count(change[2]) == 1, f"{change[1]} does not hold once: {change[2]}"
        path.write_text(text.replace(change[2], content + change[2]), encoding="utf-8")
    return path


def environment(root: Path) -> dict[str, str]:
    """Where the copy is the project that Python and the shell find."""
    programs = Path(sys.executable).parent
    return {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(root),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_ADDOPTS": "-p no:cacheprovider",
    }


def _not_copied(folder: str, names: list[str]) -> set[str]:
    """Return what a clone of the repository does not have: caches everywhere, generated folders at the top."""
    anywhere = shutil.ignore_patterns(".*", "__pycache__", "_build", "*.egg-info")(folder, names)
    at_the_top = {"build", "course", "demo", "dist"} if Path(folder) == ROOT else set()
    return anywhere | at_the_top & set(names)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository to which the page has been applied, box by box and command by command."""
    root = tmp_path_factory.mktemp("copy") / "project"
    shutil.copytree(ROOT, root, ignore=_not_copied)
    page = PAGE.read_text(encoding="utf-8")
    steps = [(match.start(), match) for pattern in (BLOCK, CONSOLE) for match in pattern.finditer(page)]
    for _, match in sorted(steps, key=lambda step: step[0]):
        if match.re is BLOCK:
            apply(root, match["marker"], match["content"])
            continue
        for command in match[1].splitlines():
            done = subprocess.run(
                ["bash", "-c", command], cwd=root, env=environment(root), capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, f"$ {command}\n{done.stdout}\n{done.stderr}"
    return root


def run(root: Path, code: str) -> Any:
    """Run code where the copy is the project, and return what it prints as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, env=environment(root), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_table_lists_the_files_of_all_boxes_and_no_others() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert "```" not in CONSOLE.sub("", BLOCK.sub("", page)), "every box is applied or run"
    files = [re.sub(r"^(new file: |in )|, before: .*$", "", match["marker"]) for match in BLOCK.finditer(page)]
    table = page.partition("Commands write")[0]
    cells = re.findall(r"^\| (`.+?) \|", table, re.MULTILINE)
    listed = [name for cell in cells for name in re.findall(r"`([\w./*]+)`", cell)]
    patterns = [re.sub(r"[A-Z]{2,}(_topic)?", "*", name) for name in listed]
    unlisted = [file for file in files if not any(fnmatch(file, f"*{pattern}") for pattern in patterns)]
    unused = [pattern for pattern in patterns if not any(fnmatch(file, f"*{pattern}") for file in files)]
    assert (unlisted, unused) == ([], [])


def test_the_reference_gets_everything_each_mistake_its_diagnosis_and_the_stub_nothing(copy: Path) -> None:
    found = run(
        copy,
        f"""
import json, torch, tfcourse
from torch import Tensor
from autograder.course.authoring.exercise_source import stub_source
from autograder.checks import check, exercise
from autograder.checking.decision import decide
from autograder.checking.subject import LocalSubject

about = exercise("{NAME}")
scope = {{"Tensor": Tensor}}
exec(stub_source(about), scope)
stub = check(scope["{NAME}"], hidden=True)
print(json.dumps({{
    "package": tfcourse.__file__,
    "points": about.points,
    "reference": check(about.reference).score,
    "stub": stub.score,
    "mistakes": {{
        m.name: [d.name for d in decide(about.sheet(hidden=True), LocalSubject(m.implementation)).diagnoses]
        for m in about.misconceptions
    }},
}}))
""",
    )
    assert found["package"].startswith(str(copy))
    assert (found["reference"], found["points"], found["stub"]) == (5.25, 5.25, 0)
    assert len(found["mistakes"]) == 6
    assert all(diagnoses == [name] for name, diagnoses in found["mistakes"].items()), found["mistakes"]


def test_no_change_of_the_reference_keeps_all_points(copy: Path) -> None:
    measures = json.loads((copy / "docs" / "grader-quality" / "mutants.json").read_text(encoding="utf-8"))[NAME]
    assert measures["mutants"] >= 10
    assert (measures["survivors"], measures["missed"]) == ([], [])
