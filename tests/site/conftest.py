"""A course of one tiny chapter with the real configuration, for tests that really build."""

import shutil
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]

NOTEBOOK_HEADER = """---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
    format_version: 0.13
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---
"""
LESSON = (
    NOTEBOOK_HEADER
    + """
# A lesson

(a-section)=
## A section

It says $a^2$.

```{code-cell} ipython3
print("six times seven is", 6 * 7)
```
"""
)
EXERCISES = (
    NOTEBOOK_HEADER
    + """
# Exercises of the lesson

```{code-cell} ipython3
raise RuntimeError("exercises are not executed")
```
"""
)
PAGE = "# Welcome\n\nSee {ref}`a-section` and {cite}`vaswani2017`.\n"
LITERATURE = "# Literature\n\n```{bibliography}\n```\n"


def make_course(root: Path) -> Path:
    """Write the course into an empty folder and return it."""
    chapter = root / "chapters" / "01_first"
    chapter.mkdir(parents=True)
    shutil.copytree(ROOT / "book/_static", root / "book/_static")
    for name in ("_config.yml", "book/references.bib"):
        shutil.copyfile(ROOT / name, root / name)
    files = ["chapters/01_first/lesson", "chapters/01_first/exercises", "book/literature"]
    toc = {"format": "jb-book", "root": "book/intro", "chapters": [{"file": file} for file in files]}
    (root / "book/_toc.yml").write_text(yaml.safe_dump(toc))
    (root / "book/intro.md").write_text(PAGE)
    (root / "book/literature.md").write_text(LITERATURE)
    (chapter / "lesson.md").write_text(LESSON)
    (chapter / "exercises.md").write_text(EXERCISES)
    return root


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A course that a test may spoil."""
    return make_course(tmp_path / "course")
