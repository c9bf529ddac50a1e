"""The students' package of every chapter, installed: solutions get everything, the notebook as it is given out nothing."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import nbformat
import pytest

from .test_student_build import installed, run

CHAPTERS = sorted(path.parent.name for path in (Path(__file__).parents[3] / "chapters").glob("*/exercises.md"))
NOTEBOOK = """
verdicts, scope = {}, {}
for source in json.loads(open(sys.argv[3], encoding="utf-8").read()):
    if source.startswith("check("):
        verdict = eval(source, scope)
        verdicts[verdict.exercise] = [verdict.score, verdict.max_score, str(verdict)]
    else:
        exec(source, scope)
print(json.dumps(verdicts))
"""


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapters_solutions_get_everything_from_its_package_and_its_notebook_nothing(
    chapter: str, real_files: dict[str, list[Path]], tmp_path: Path
) -> None:
    root = Path(__file__).parents[3]
    notebook, wheel, _ = real_files[chapter]
    package = installed(wheel, tmp_path / "student")
    for path, part in ((root / "solutions" / chapter / "exercises.ipynb", 1), (notebook, 0)):
        cells = nbformat.read(path, as_version=4).cells
        sources = [cell.source for cell in cells if cell.cell_type == "code"]
        (tmp_path / "cells.json").write_text(json.dumps(sources))
        verdicts = run(package, NOTEBOOK, str(tmp_path / "cells.json"))
        assert len(verdicts) == len([source for source in sources if source.startswith("check(")]) >= 6
        for score, maximum, text in verdicts.values():
            assert score == part * maximum, text


def test_the_package_brings_the_pre_check_as_a_command(real_files: dict[str, list[Path]], tmp_path: Path) -> None:
    notebook, wheel, _ = real_files[CHAPTERS[0]]
    package = installed(wheel, tmp_path / "student")
    done = subprocess.run(
        [str(package / "bin" / "tfcourse"), "validate", str(notebook), "--json"],
        env={**os.environ, "PYTHONPATH": str(package)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    result = json.loads(done.stdout)
    assert result["score"] == 0 < result["max_score"]
    assert result["missing"] == []
