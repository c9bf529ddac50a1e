"""Of a wrong answer to a hidden question one thing is told, whatever it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from autograder.checking.decision import CollectedAnswers, judge_answers
from autograder.checking.hidden_messages import FORBIDDEN, OWN_KINDS, WRONG, public_error_name
from autograder.checking.judges import JUDGES
from autograder.checking.request import Observation, Request
from autograder.checking.rows import Probe
from autograder.checking.sheet import Answers, Section, Sheet

SECRET = "0.0727 is the secret"
RIGHT = Observation(outputs={"output": torch.tensor([1.0, 2.0])})
OPTIONS = {"claim": "another tile size gives another result", "axis": "queries", "limit": 8, "outputs": ["output"]}
WRONG_ANSWERS = (
    Observation(error=f"ValueError: {SECRET}"),
    Observation(error=f"{SECRET}: {SECRET}"),
    Observation(error="MemoryLimit: 4 GiB"),
    Observation(error="WeightsError: it lacks q_proj"),
    Observation(error="NotImplementedError", unfinished=True),
    Observation(outputs={SECRET: torch.ones(2)}),
    Observation(outputs={"output": SECRET}),
    Observation(outputs={"output": torch.ones(1234)}),
    Observation(outputs={"output": torch.ones(2).double()}),
    Observation(outputs={"output": torch.tensor([1.0, float("nan")])}),
    Observation(outputs={"output": torch.tensor([1.0, 0.0727])}, operations=727, mutated=(SECRET,)),
    Observation(outputs={"output": torch.ones(2, device="meta")}),
)


def message(hidden: Sequence[Observation], *, judge: str = "matches", expected: Observation = RIGHT) -> str:
    """Return what is told of answers to two hidden questions, the visible one being answered right."""
    probe = Probe((Request("call", {}),), judge, OPTIONS)
    answers: Answers = [[expected], *([given] for given in hidden)]
    section = Section("values", "The numbers are right.", 4.0, [probe] * 3, [[expected]] * 3, visible=1)
    rule = Probe((Request("functions", {}),), "free_of", {"names": ["einsum", "matmul"]})
    sheet = Sheet("f", "01", [rule], [section], [], lambda mistake, section, probe: [])
    (finding,) = judge_answers(sheet, CollectedAnswers(answers=[answers])).findings
    assert not finding.example
    return finding.message


@pytest.mark.parametrize("given", WRONG_ANSWERS)
def test_one_kind_is_told_of_whatever_was_answered(given: Observation) -> None:
    assert message([RIGHT, given]) == message([given, RIGHT]) == message([given, given]) == WRONG


def test_an_answer_that_should_have_been_refused_is_told_no_other_way() -> None:
    refused = Observation(error="ValueError")
    assert message([refused, RIGHT], judge="answers", expected=refused) == WRONG
    assert message([refused, Observation(error="TypeError")], judge="answers", expected=refused) == WRONG


@pytest.mark.parametrize("judge", sorted(set(JUDGES) - {"answers"}))
def test_every_judge_tells_the_same(judge: str) -> None:
    assert message([Observation(error=SECRET), RIGHT], judge=judge) == WRONG


def test_which_forbidden_function_was_called_is_not_told() -> None:
    told = {
        message([replace(RIGHT, functions=called), RIGHT])
        for called in [("einsum",), ("matmul",), ("einsum", "matmul")]
    }
    assert told == {FORBIDDEN}


def test_of_all_kinds_of_exceptions_only_the_graders_own_are_named() -> None:
    assert all(public_error_name(kind) == kind for kind in OWN_KINDS)
    assert {public_error_name(kind) for kind in ("IndexError", "KeyboardInterrupt", "NotAsked0727")} == {"an exception"}
