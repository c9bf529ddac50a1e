"""What a worker keeps for its checkers."""

from __future__ import annotations

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from autograder.checking.sheet import Sheet, decide
from autograder.checking.subject import LocalSubject
from autograder.checks import exercise
from autograder.engine.stock import Stock
from autograder.grading.settings import GradingSettings

NAME = "causal_mask"


@pytest.fixture
def stock() -> Stock:
    made = Stock(GradingSettings(seed=11))
    cell = new_code_cell(f"from tfcourse import check\ncheck({NAME}, hidden=True)")
    cell.metadata.nbgrader = {"grade": True, "grade_id": f"test_{NAME}", "locked": True}
    notebook = new_notebook(cells=[cell])
    assert made.lay_in(notebook)
    assert not made.lay_in(notebook), "the questions are there"
    for sheet in (hidden_sheet(), exercise(NAME).sheet()):
        sheet._answers.clear()  # as it is where nobody has made a mistake yet; a process makes a sheet only once
    return made


def hidden_sheet() -> Sheet:
    return exercise(NAME).sheet(hidden=True, seed=11)


def test_what_one_checker_has_asked_mistakes_the_next_need_not(stock: Stock) -> None:
    sheet = hidden_sheet()
    decide(sheet, LocalSubject(exercise(NAME).misconceptions[0].wrong))
    hidden, visible = stock.news()[NAME]
    assert hidden == list(sheet.answered)
    assert hidden
    assert not visible
    stock.learn(stock.news())
    assert stock.news() == {NAME: [[], []]}


def test_what_a_checker_has_asked_in_its_own_process_is_asked_here(stock: Stock) -> None:
    stock.learn({NAME: [[[0, 0, 0], [1, 0, 0]], []]})  # as JSON brings it
    assert list(hidden_sheet().answered) == [(0, 0, 0), (1, 0, 0)]
    assert stock.news() == {NAME: [[], []]}
