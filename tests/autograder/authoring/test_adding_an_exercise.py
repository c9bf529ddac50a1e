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
NAME, CHAPTER = "attention_entropy", "03_scaled_dot_product"


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
    files = [re.sub(r"^(new file: |in )|, before: .*$", "", match["marker"]) for match in BLOCK.finditer(page)]
    table = page.partition("Commands write")[0]
    cells = re.findall(r"^\| (`.+?) \|", table, re.MULTILINE)
    listed = [name for cell in cells for name in re.findall(r"`([\w./*]+)`", cell)]
    patterns = [re.sub(r"[A-Z]{2,}(_topic)?", "*", name) for name in listed]
    unlisted = [file for file in files if not any(fnmatch(file, f"*{pattern}") for pattern in patterns)]
    unused = [pattern for pattern in patterns if not any(fnmatch(file, f"*{pattern}") for file in files)]
    assert (unlisted, unused) == ([], [])


def test_every_box_of_the_page_is_applied_or_run() -> None:
    page = PAGE.read_text(encoding="utf-8")
    outside = CONSOLE.sub("", BLOCK.sub("", page))
    assert "```" not in outside
    assert len(BLOCK.findall(page)) == 8
    assert len(CONSOLE.findall(page)) == 3


def test_the_reference_gets_everything_each_mistake_its_diagnosis_and_the_stub_nothing(copy: Path) -> None:
    found = run(
        copy,
        f"""
import json, torch, tfcourse
from torch import Tensor
from autograder.authoring.exercise_source import stub_source
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
    "stub": [stub.score, sorted({{finding.message for finding in stub.findings}})],
    "mistakes": {{
        m.name: [d.name for d in decide(about.sheet(hidden=True), LocalSubject(m.wrong)).diagnoses]
        for m in about.misconceptions
    }},
}}))
""",
    )
    assert found["package"].startswith(str(copy))
    assert found["reference"] == found["points"] == 5.25
    assert found["stub"] == [0, ["not written yet"]]
    assert len(found["mistakes"]) == 6
    assert all(diagnoses == [name] for name, diagnoses in found["mistakes"].items()), found["mistakes"]


def test_no_change_of_the_reference_keeps_all_points(copy: Path) -> None:
    measures = json.loads((copy / "docs" / "grader-quality" / "mutants.json").read_text(encoding="utf-8"))[NAME]
    assert measures["mutants"] >= 10
    assert (measures["survivors"], measures["missed"]) == ([], [])


@pytest.fixture(scope="module")
def moved(copy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The copy with the example in a module that was there before, as the page says: nothing else changes."""
    root = tmp_path_factory.mktemp("moved") / "project"
    shutil.copytree(copy, root)
    module = (root / "tfcourse" / "spread.py").read_text(encoding="utf-8")
    (root / "tfcourse" / "spread.py").unlink()
    (root / "tests" / "tfcourse" / "test_spread.py").unlink()
    place = root / "tfcourse" / "attention.py"
    text = place.read_text(encoding="utf-8")
    function = module[module.index("def attention_entropy") :]
    place.write_text(text.replace("__all__ = [", '__all__ = [\n    "attention_entropy",', 1) + "\n\n" + function)
    check = root / "autograder" / "checks" / f"ch{CHAPTER}" / f"{NAME}.py"
    declared = check.read_text(encoding="utf-8")
    declared = declared.replace("from tfcourse import attention, spread", "from tfcourse import attention")
    check.write_text(declared.replace("spread.attention_entropy", "attention.attention_entropy"), encoding="utf-8")
    for command in ("tfcourse sync", f"python -m autograder.selftest.quality {NAME}"):
        done = subprocess.run(
            ["bash", "-c", command], cwd=root, env=environment(root), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    return root


def test_an_exercise_in_a_module_that_exists_needs_nothing_more(moved: Path) -> None:
    selected = "attention_entropy or has_a_check or test_no_exercise_changes_its_inputs or meta_device"
    paths = ["tests/autograder/checks/test_quality.py", "tests/tfcourse/test_attention.py"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *paths, "-k", selected],
        cwd=moved,
        env=environment(moved),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
