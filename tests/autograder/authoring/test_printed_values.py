"""A lesson prints the numbers in its prose, in text and in formulas, and leaves code alone."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from myst_nb.core.read import read_myst_markdown_notebook

from autograder.course.authoring.printed_values import append_values_cell, count_values, fill_in_values, printed_values
from autograder.errors import CourseError

LESSON = """---
kernelspec: {name: python3}
---

# A lesson

The loss falls to {{losses["last"]:.2f}}, by {{losses["last"] - (1 if x != 2 else 0):+.2f}}; $x^{2} = {{-x[1:][0]:d}}$ of {{1234:,}}.

```{code-cell} ipython3
text = f"{{x}}"
```
"""
PATH = Path("lesson.md")
VALUES = ["0.25", "-0.75", "-3", "1,234"]


def test_expressions_are_evaluated_by_a_hidden_cell_after_the_others() -> None:
    notebook = read_myst_markdown_notebook(append_values_cell(LESSON, PATH), path=PATH)
    *_, cell = notebook.cells
    assert cell.metadata["tags"] == ["remove-cell"]
    names = {"losses": {"last": 0.25}, "x": [0, 3], "print": (printed := []).append}
    exec(cell.source, names)
    assert printed == VALUES
    cell.outputs = [nbformat.v4.new_output("stream", text="".join(f"{value}\n" for value in printed))]
    assert printed_values(notebook) == VALUES


def test_values_take_the_place_of_their_expressions_in_prose_and_formulas_but_not_in_code() -> None:
    assert count_values(LESSON) == 4
    filled = fill_in_values(LESSON, VALUES)
    assert "falls to 0.25, by \N{MINUS SIGN}0.75; $x^{2} = -3$ of 1,234." in filled
    assert 'f"{{x}}"' in filled


def test_a_lesson_without_expressions_stays_as_it_is() -> None:
    assert append_values_cell("text\n", PATH) == "text\n"


@pytest.mark.parametrize("written", ["{{x}}", "{{:.2f}}", "{{x[1:2]}}", "{{x:.2f} and {y:.2f}}"])
def test_an_expression_without_a_format_is_refused(written: str) -> None:
    with pytest.raises(CourseError) as error:
        append_values_cell(written, PATH)
    assert error.value.where == str(PATH)
    assert written in error.value.what
