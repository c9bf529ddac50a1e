"""What a worker keeps for its checkers."""

from __future__ import annotations

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from autograder.checking.decision import decide
from autograder.checking.request import Observation
from autograder.checking.sheet import Sheet
from autograder.checking.subject import LocalSubject
from autograder.checks import exercise
from autograder.engine.checker.answer_cache import AnswerCache
from autograder.engine.transport.serialization import pack

NAME = "causal_mask"


@pytest.fixture
def stock() -> AnswerCache:
    made = AnswerCache(11, "cpu")
    cell = new_code_cell(f"from tfcourse import check\ncheck({NAME}, hidden=True)")
    cell.metadata.nbgrader = {"grade": True, "grade_id": f"test_{NAME}", "locked": True}
    notebook = new_notebook(cells=[cell])
    assert made.missing_exercises(notebook) == [NAME]
    made.fill([NAME])
    assert made.missing_exercises(notebook) == []
    for sheet in (hidden_sheet(), plain_sheet()):
        sheet._answers.clear()  # as it is where nobody has made a mistake yet; a process makes a sheet only once
    return made


def plain_sheet() -> Sheet:
    return exercise(NAME).sheet(seed=11)


def hidden_sheet() -> Sheet:
    return exercise(NAME).sheet(hidden=True, seed=11)


def test_what_mistakes_have_answered_in_one_checker_the_next_need_not_ask(
    stock: AnswerCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = LocalSubject(exercise(NAME).misconceptions[0].implementation)
    sheets = hidden_sheet(), plain_sheet()
    sheet = sheets[0]
    verdict = decide(sheet, wrong)
    answered = [dict(asked.computed_answers) for asked in sheets]
    # Visible answers alone name a mistake.
    assert [bool(answers) for answers in answered] == [False, True]
    news = stock.new_answers()
    for asked in sheets:
        asked._answers.clear()  # the checker is gone, and what it has worked out with it
    stock.merge(news)
    assert [list(asked.computed_answers) for asked in sheets] == [list(before) for before in answered]
    assert stock.new_answers() == b""

    def never(mistake: int, section: int, probe: int) -> None:
        raise AssertionError("it has been asked")

    for asked in sheets:
        monkeypatch.setitem(vars(asked), "ask_mistake", never)
    assert decide(sheet, wrong) == verdict


def test_an_answer_that_cannot_be_told_is_asked_for_again(stock: AnswerCache) -> None:
    sheet = plain_sheet()
    sheet._answers[0, 0, 0] = [Observation(outputs={"output": object()})]
    stock.merge(stock.new_answers())
    news = pack({NAME: [[[1, 0, 0, []]], []]})
    stock.merge(news)
    assert sheet.computed_answers[1, 0, 0][0].outputs


def test_what_a_mistake_says_when_no_memory_is_left_is_not_kept(
    stock: AnswerCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    sheet = plain_sheet()
    with monkeypatch.context() as patched:
        patched.setitem(vars(sheet), "ask_mistake", lambda *place: [Observation(error="MemoryError: ")])
        assert sheet.answer(0, 0, 0)[0].error == "MemoryError: "
    assert sheet.answer(0, 0, 0)[0].error is None
