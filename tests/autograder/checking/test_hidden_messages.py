"""What is said of a wrong answer to a hidden question: enough to know what kind of thing is wrong, and nothing that could be passed on."""

from __future__ import annotations

import pytest
import torch

from autograder.checking.hidden_messages import OWN_KINDS, hidden_message, told_kind
from autograder.checking.judges import JUDGES
from autograder.checking.request import Observation

WHERE = "on a question that is not among the visible ones"
SECRET = "0.0727 is the secret"
RIGHT = Observation(outputs={"output": torch.tensor([1.0, 2.0])})
OPTIONS = {"claim": "another tile size gives another result", "axis": "queries", "limit": 8, "outputs": ["output"]}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (Observation(error=f"ValueError: {SECRET}"), "it raised an exception"),
        (Observation(error=f"{SECRET}: {SECRET}"), "it raised an exception"),
        (Observation(error=f"print: {SECRET}"), "it raised an exception"),
        (Observation(error=f"MemoryLimit: {SECRET}"), "it raised MemoryLimit"),
        (Observation(outputs={SECRET: torch.ones(2)}), "it returns something of another form"),
        (Observation(outputs={"output": SECRET}), "it returns something of another type"),
        (Observation(outputs={"output": torch.ones(1234)}), "a result has another shape"),
        (Observation(outputs={"output": torch.ones(2).double()}), "a result has another dtype"),
        (Observation(outputs={"output": torch.tensor([1.0, float("nan")])}), "a result has NaN among its numbers"),
        (Observation(outputs={"output": torch.tensor([1.0, 0.0727])}), "a result is not right"),
        (Observation(outputs={"output": torch.ones(2, device="meta")}), "what it returns cannot be compared"),
    ],
)
def test_the_kind_of_mistake_is_named_and_nothing_of_the_answer(given: Observation, said: str) -> None:
    assert hidden_message("matches", [given], [RIGHT], OPTIONS) == f"{WHERE} {said}"


def test_an_answer_that_should_have_been_refused_is_said_to_be() -> None:
    refused = Observation(error="ValueError: a mask is boolean")
    assert (
        hidden_message("answers", [RIGHT], [refused], {})
        == f"{WHERE} it accepts wrong input, where a ValueError is asked for"
    )
    alike = Observation(error=f"ValueError: {SECRET}")
    other = Observation(outputs={"output": torch.zeros(2)})
    assert hidden_message("matches", [alike, other], [refused, RIGHT], {}) == f"{WHERE} a result is not right"


@pytest.mark.parametrize("judge", sorted(JUDGES))
@pytest.mark.parametrize(
    "given",
    [
        Observation(outputs={"output": torch.tensor([1.0, 0.0727])}, operations=727, largest=727, attached=(SECRET,)),
        Observation(outputs={"output": torch.tensor([1.0, 2.0])}, operations=727, largest=727, mutated=(SECRET,)),
        Observation(outputs={SECRET: SECRET}, functions=(SECRET,)),
        Observation(error=f"{SECRET}: {SECRET}"),
    ],
)
def test_whatever_judge_speaks_nothing_of_the_answer_and_of_the_right_one_is_told(
    judge: str, given: Observation
) -> None:
    told = hidden_message(judge, [given], [RIGHT], OPTIONS)
    assert told.startswith(WHERE)
    assert "secret" not in told
    assert "7" not in told


def test_of_all_kinds_of_exceptions_only_the_graders_own_are_named() -> None:
    assert all(told_kind(kind) == kind for kind in OWN_KINDS)
    assert {told_kind(kind) for kind in ("IndexError", "KeyboardInterrupt", "NotAsked0727")} == {"an exception"}
