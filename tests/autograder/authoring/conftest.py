"""A small course of two chapters: few exercises, few questions, nothing that is still being written."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from nbgrader.api import Gradebook
from torch import Tensor, nn

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise, Misconception
from autograder.course.authoring.chapter import Chapter, load_chapters
from autograder.course.authoring.sync import sync
from autograder.course.folder import Course
from autograder.course.release.answer_keys import record_answer_keys
from autograder.course.release.secret_texts import Secrets, project_secrets
from autograder.course.release.student_files import StudentFiles
from tfcourse import attention, multihead

ROOT = Path(__file__).parents[3]
FIRST, SECOND = "90_first", "91_second"

FRONT = """\
---
jupytext:
  formats: md:myst
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
SETUP = """\

```{{code-cell}} ipython3
---
nbgrader:
  grade: false
  grade_id: setup
  locked: true
  schema_version: 3
  solution: false
  task: false
---
import math

import torch
from nbgrader.api import Gradebook
from torch import Tensor, nn

from tfcourse import check
{imports}
```
"""
EXERCISE = """\

## `{name}`

Write it.   Mind the *spaces* at the end of this line:\x20\x20
and this one.

```{{code-cell}} ipython3
---
nbgrader:
  grade: false
  grade_id: {name}
  locked: false
  schema_version: 3
  solution: true
  task: false
---
```

```{{code-cell}} ipython3
---
nbgrader:
  grade: true
  grade_id: test_{name}
  locked: true
  points: 0
  schema_version: 3
  solution: false
  task: false
---
```
"""
QUESTION = """\

+++ {"nbgrader": {"grade": false, "grade_id": "prompt_order", \
"locked": true, "schema_version": 3, "solution": false, "task": false}}

## In words: does the order matter?

Say why.

+++ {"nbgrader": {"grade": true, "grade_id": "question_order", "locked": false, \
"points": 3, "schema_version": 3, "solution": true, "task": false}}

YOUR ANSWER HERE
"""
RUBRIC = """\
# Rubrics

## question_order

### Model answer

The order of queries matters, because every output row belongs to the query of its row. \
Shuffled pairs of keys and values leave the sum as it was.

### Marks

- 1 point: rows of the output follow the queries when these are shuffled.
- 2 points: the sum over pairs does not know in which order its terms arrived.
"""


def triangle(draw: Draw) -> Case:
    """A length, and the device that every machine has."""
    return Case({"T": draw.sizes(1)[0], "device": "cpu"})


def pair(draw: Draw) -> Case:
    """Queries and keys."""
    t, s, dh = draw.sizes(3)
    return Case({"q": draw.normal(t, dh), "k": draw.normal(s, dh)})


def wide(draw: Draw) -> Case:
    """A batch of positions whose width two heads share."""
    b, t = draw.sizes(2)
    return Case({"x": draw.normal(b, t, 6), "n_heads": 2})


def layer(draw: Draw) -> Case:
    """A layer with weights of its own, biases among them."""
    b, t = draw.sizes(2)
    state = draw.weights(multihead.MultiHeadAttention(6, 2))
    return Case({"x": draw.normal(b, t, 6)}, init={"d_model": 6, "n_heads": 2}, state=state)


def strictly_below(T: int, device: torch.device | str | None = None) -> Tensor:
    """The diagonal is left out, so that no position sees itself."""
    return torch.ones(T, T, dtype=torch.bool, device=device).tril(-1)


def no_scale(q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
    """The scores are not divided by the square root of the width."""
    return attention.masked_attention_weights(q * q.shape[-1] ** 0.5, k, mask)


def interleaved(x: Tensor, n_heads: int) -> Tensor:
    """Every other column goes to the same head, where neighbours belong together."""
    return x.unflatten(-1, (-1, n_heads)).permute(0, 3, 1, 2)


class NoOutput(multihead.MultiHeadAttention):
    """The output projection is left out."""

    def forward(self, x: Tensor, context: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        self_o, self.o_proj = self.o_proj, nn.Identity()
        result = super().forward(x, context, mask)
        self.o_proj = self_o
        return result


def exercise(reference: object, chapter: str, maker: rows.Maker, wrong: Any, points: float) -> Exercise:
    """Declare a small exercise with one known mistake: its docstring is what a student is told."""
    told = " ".join(wrong.__doc__.split())
    mistake = Misconception(wrong.__name__.replace("_", " "), told, "causal-mask", "wrong", make=lambda: wrong)
    seen = (rows.inputs_kept(1, maker), rows.numbers(points - 1, maker))
    return Exercise(reference=reference, chapter=chapter, rows=seen, misconceptions=(mistake,))


REGISTRY = {
    item.name: item
    for item in (
        exercise(attention.causal_mask, FIRST, triangle, strictly_below, 2),
        exercise(attention.masked_attention_weights, FIRST, pair, no_scale, 3.5),
        exercise(multihead.split_heads, SECOND, wide, interleaved, 2),
        exercise(multihead.MultiHeadAttention, SECOND, layer, NoOutput, 4),
    )
}


@dataclass(frozen=True)
class SmallCourse:
    """A project in a temporary folder."""

    root: Path

    @property
    def registry(self) -> dict[str, Exercise]:
        return REGISTRY

    def chapter(self, name: str = FIRST) -> Chapter:
        return next(chapter for chapter in load_chapters(self.root, REGISTRY) if chapter.name == name)

    def edit(self, path: Path, old: str, new: str) -> None:
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")


def chapter_text(name: str, exercises: tuple[str, ...], imports: str, question: str) -> str:
    """Return an exercises.md whose stubs are still empty."""
    cells = "".join(EXERCISE.format(name=exercise) for exercise in exercises)
    return f"{FRONT}\n# {name}\n\nHow it begins.\n{SETUP.format(imports=imports)}{cells}{question}"


def make_project(root: Path) -> SmallCourse:
    """Write the small project, its stubs still empty."""
    for chapter, names, imports, question in (
        (FIRST, ("causal_mask", "masked_attention_weights"), "", QUESTION),
        (
            SECOND,
            ("split_heads", "MultiHeadAttention"),
            "from tfcourse.attention import scaled_dot_product_attention\nfrom tfcourse.multihead import merge_heads",
            "",
        ),
    ):
        folder = root / "chapters" / chapter
        folder.mkdir(parents=True)
        (folder / "exercises.md").write_text(chapter_text(chapter, names, imports, question), encoding="utf-8")
        (folder / "lesson.md").write_text("# A lesson\n\nAn idea, and a formula.\n", encoding="utf-8")
    (root / "chapters" / FIRST / "rubrics.md").write_text(RUBRIC, encoding="utf-8")
    shutil.copyfile(ROOT / "pyproject.toml", root / "pyproject.toml")
    return SmallCourse(root)


@pytest.fixture
def unsynced(tmp_path: Path) -> SmallCourse:
    return make_project(tmp_path / "project")


@pytest.fixture(scope="session")
def _synced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = make_project(tmp_path_factory.mktemp("synced") / "project")
    sync(project.root, registry=REGISTRY)
    with pytest.MonkeyPatch.context() as patch:
        # Tests that release chapters of a copy find them recorded: to record them takes a process that imports PyTorch.
        patch.setattr("autograder.checks.exercises", lambda: REGISTRY)
        record_answer_keys(REGISTRY.values(), project.root)
    return project.root


@pytest.fixture
def small(_synced: Path, tmp_path: Path) -> SmallCourse:
    shutil.copytree(_synced, tmp_path / "project")
    return SmallCourse(tmp_path / "project")


@pytest.fixture(scope="session")
def small_secrets(_synced: Path) -> Secrets:
    """What must not get out of the small project."""
    return project_secrets(_synced, REGISTRY)


@pytest.fixture(scope="session")
def real_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """Notebook, package and lesson of every chapter of the course itself."""
    files = StudentFiles(ROOT, tmp_path_factory.mktemp("files"))
    files.add_packages()
    return files.paths


@pytest.fixture(scope="session")
def empty_gradebook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A gradebook without entries: making one takes seconds, copying it none."""
    path = tmp_path_factory.mktemp("gradebook") / "gradebook.db"
    with pytest.MonkeyPatch.context() as patch:
        # The gradebook calls alembic by its name; it lies beside this Python.
        patch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        with Gradebook(f"sqlite:///{path}", "tfcourse"):
            return path


@pytest.fixture
def course(tmp_path: Path, empty_gradebook: Path) -> Course:
    course = Course.open(tmp_path / "course", create=True)
    shutil.copyfile(empty_gradebook, course.root / "gradebook.db")
    return course
