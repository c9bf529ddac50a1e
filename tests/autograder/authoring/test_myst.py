"""Text notebooks: read with ids that stay, and rewritten without touching a byte more than asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder.course.authoring.myst import CodeCell, parse_notebook, read_text, rewrite_code_cells, write_notebook
from autograder.errors import CourseError

HERE = Path("exercises.md")
TEXT = """\
---
kernelspec: {name: python3, display_name: Python 3, language: python}
---
# Title  \n\n\n\n````{note}
```{code-cell}
not a cell: it is shown
```
````

```{code-cell} ipython3
:tags: [x]

first = 1
```
Prose.
- in a list

  ```{code-cell}
  not a cell either
  ```

`````{code-cell} ipython3
---
nbgrader:
  grade_id: second   # a comment that stays
  points: 1 # so does this
---
second = 2
`````

+++ {"nbgrader": {"grade_id": "last"}}

End\twithout a newline"""


def test_cells_have_ids_from_their_grade_id_or_their_content() -> None:
    notebook = parse_notebook(TEXT, HERE)
    assert [cell.cell_type for cell in notebook.cells] == ["markdown", "code", "markdown", "code", "markdown"]
    assert notebook.cells[3].id == "second"
    assert notebook.cells[4].id == "last"
    assert parse_notebook(TEXT + "!", HERE).cells[1].id == notebook.cells[1].id
    assert len({cell.id for cell in parse_notebook(TEXT + "\n+++\nProse.\n+++\nProse.", HERE).cells}) == 7
    nbformat.validate(notebook)


def test_only_the_cells_that_are_named_are_rewritten() -> None:
    changed = rewrite_code_cells(TEXT, {1: CodeCell("second = 3\n\nthird = 4", 2.5)}, HERE)
    assert changed == TEXT.replace("points: 1 #", "points: 2.5 #").replace("second = 2", "second = 3\n\nthird = 4")
    changed = rewrite_code_cells(TEXT, {0: CodeCell("first = 5")}, HERE)
    assert changed == TEXT.replace("first = 1", "first = 5")


def test_an_empty_cell_is_filled() -> None:
    text = TEXT.replace("second = 2\n", "")
    assert rewrite_code_cells(text, {1: CodeCell("second = 2", 1)}, HERE) == TEXT


def test_code_that_would_end_its_cell_early_is_refused() -> None:
    with pytest.raises(CourseError, match="code"):
        rewrite_code_cells(TEXT, {0: CodeCell('def f():\n    """A docstring with a fence.\n\n```\nx\n```\n"""')}, HERE)
    # The second cell has five backticks around it, and takes it.
    rewrite_code_cells(TEXT, {1: CodeCell('s = """\n```\n"""')}, HERE)


def test_points_that_cannot_be_found_are_asked_for() -> None:
    with pytest.raises(CourseError, match="points"):
        rewrite_code_cells(TEXT, {0: CodeCell("first = 1", 2)}, HERE)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("# No front matter\n", "kernelspec"),
        (TEXT.replace("grade_id: second   #", "grade_id: [second   #"), "MyST"),
        (TEXT.replace('+++ {"nbgrader"', '+++ {"nbgrader'), "MyST"),
    ],
)
def test_what_is_no_notebook_is_refused_with_its_place(text: str, complaint: str) -> None:
    with pytest.raises(CourseError, match=complaint) as caught:
        parse_notebook(text, HERE)
    assert caught.value.where == "exercises.md"


def test_a_missing_file_and_another_encoding_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(CourseError, match="No such file"):
        read_text(tmp_path / "nothing.md")
    (tmp_path / "latin.md").write_bytes("für".encode("latin-1"))
    with pytest.raises(CourseError, match="not UTF-8"):
        read_text(tmp_path / "latin.md")


def test_a_notebook_that_jupyter_would_refuse_is_not_written() -> None:
    notebook: Any = parse_notebook(TEXT, HERE)
    notebook.cells[0]["id"] = "no blanks allowed"
    with pytest.raises(CourseError, match="not valid"):
        write_notebook(notebook)
