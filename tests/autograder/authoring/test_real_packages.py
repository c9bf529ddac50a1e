"""The packages of all chapters: solutions get everything in them, the notebook nothing, and nothing gives a solution away."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import nbformat
import pytest

from autograder.course.release.leaks import Material, find_leaks
from autograder.course.release.secret_texts import project_secrets, written_texts

from .test_student_build import installed, run

ROOT = Path(__file__).parents[3]
CHAPTERS = sorted(path.parent.name for path in (ROOT / "chapters").glob("*/exercises.md"))
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
    notebook, wheel, _ = real_files[chapter]
    package = installed(wheel, tmp_path / "student")
    for path, part in ((ROOT / "solutions" / chapter / "exercises.ipynb", 1), (notebook, 0)):
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


def test_the_course_itself_gives_nothing_away(real_files: dict[str, list[Path]]) -> None:
    """Notebooks and packages of every real chapter, and every page that people wrote."""
    secrets, files = project_secrets(ROOT), real_files
    materials = [Material(path, chapter) for chapter, paths in files.items() for path in paths]
    assert len(materials) == 3 * len(CHAPTERS)
    assert find_leaks([*materials, *written_texts(ROOT)], secrets) == []
    # The control: with nobody's chapter, the last package gives the earlier ones away.
    last = sorted(files)[-1]
    assert "solution" in {leak.kind for leak in find_leaks([files[last][1]], secrets)}
