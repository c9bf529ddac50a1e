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


WAITS = "waits for your soft_lookup"
# Cells that are run before, the cell, and what it prints: lines, or words of them.
CELLS = [
    ([], "value = soft_lookup()\nvalue", [WAITS, "stored"]),
    (["value = soft_lookup()"], "print(value)", [WAITS]),
    (["table = {'a': 1}", "value = soft_lookup()\ntable['b'] = 2\nprint('not here')"], "print(table['b'])", [WAITS]),
    (["value = 3", "value = soft_lookup()"], "print(value)", [WAITS]),
    ([], "print('before')\nsoft_lookup()", ["before", WAITS]),
    (["import math\nsoft_lookup()"], "print(math.pi > 3)", ["True"]),
    (["value = soft_lookup()", "def soft_lookup():\n    return 7", "value = soft_lookup()"], "print(value)", ["7"]),
]


@pytest.mark.parametrize(("before", "cell", "printed"), CELLS)
def test_a_cell_waits_for_an_empty_exercise_and_for_what_a_waiting_cell_was_to_make(
    shell: Any, capsys: pytest.CaptureFixture[str], before: list[str], cell: str, printed: list[str]
) -> None:
    for earlier in before:
        shell.run_cell(earlier)
    capsys.readouterr()
    assert shell.run_cell(cell).success
    lines = capsys.readouterr().out.splitlines()
    assert [expected in line for expected, line in zip(printed, lines, strict=True)] == [True] * len(lines)


@pytest.mark.parametrize("cell", ["1 / 0", "print(nobody_made_this)", "raise NotImplementedError('mine')"])
def test_any_other_error_stays_an_error(shell: Any, cell: str) -> None:
    assert not shell.run_cell(cell).success


def test_the_value_of_a_last_line_is_displayed(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell("x = 3\nx + 4")
    assert "7" in capsys.readouterr().out
