"""A cell that meets an empty exercise says so and shows what was stored; any other error stays an error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from tfcourse.lessons.waiting_cells import let_cells_wait, source_key

STUB = 'def soft_lookup():\n    raise NotImplementedError("soft_lookup is an exercise of chapter 03_x: write it in the notebook")'


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Any]:
    """An IPython shell in which the exercise soft_lookup is empty, and cells wait."""
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.run_cell(STUB)
    lesson = tmp_path / "03_lesson.ipynb"
    stored = {source_key("value = soft_lookup()\nvalue"): [{"output_type": "stream", "text": ["stored\n"]}]}
    lesson.write_text(json.dumps({"metadata": {"tfcourse": {"outputs": stored}}}), encoding="utf-8")
    let_cells_wait(lesson)
    yield shell
    shell.ast_transformers.clear()
    InteractiveShell.clear_instance()


def test_a_cell_that_needs_an_empty_exercise_says_which_and_shows_what_was_stored(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shell.run_cell("value = soft_lookup()\nvalue").success
    assert capsys.readouterr().out == (
        "This cell waits for your soft_lookup. Below is what the course's own code shows.\nstored\n"
    )


def test_a_cell_that_needs_what_a_waiting_cell_was_to_make_waits_too(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell("table = {'a': 1}\nvalue = 3")
    shell.run_cell("value = soft_lookup()\ntable['b'] = 2\nprint('not here')")
    capsys.readouterr()
    assert shell.run_cell("print(value)").success
    assert shell.run_cell("print(table['b'])").success
    assert capsys.readouterr().out == "This cell waits for your soft_lookup.\n" * 2


def test_what_comes_before_the_empty_exercise_is_still_printed_and_imports_stay(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell("import math\nprint('before')\nsoft_lookup()")
    assert shell.run_cell("print(math.pi > 3)").success
    assert capsys.readouterr().out == "before\nThis cell waits for your soft_lookup.\nTrue\n"


def test_a_solved_exercise_ends_the_waiting(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell("value = soft_lookup()")
    shell.run_cell("def soft_lookup():\n    return 7")
    shell.run_cell("value = soft_lookup()\nvalue")
    capsys.readouterr()
    assert shell.run_cell("print(value)").success
    assert capsys.readouterr().out == "7\n"


@pytest.mark.parametrize("cell", ["1 / 0", "print(nobody_made_this)", "raise NotImplementedError('mine')"])
def test_any_other_error_stays_an_error(shell: Any, cell: str) -> None:
    assert not shell.run_cell(cell).success


def test_the_value_of_a_last_line_is_displayed(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell("x = 3\nx + 4")
    assert "7" in capsys.readouterr().out
