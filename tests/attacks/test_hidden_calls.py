"""Every hidden call of a forbidden function earns what a plain call earns: nothing."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import dedent

import pytest

from autograder.checking.decision import decide
from autograder.checking.sheet import Sheet
from autograder.checks import exercises
from tests.autograder.engine.student import Student

from .families.forbidden_functions import HONEST
from .families.hidden_calls import LATER, WAYS

NAME = "scaled_dot_product_attention"
SETUP = "import math\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n"


@pytest.fixture(scope="module")
def sheet() -> Sheet:
    return exercises()[NAME].sheet(hidden=True, seed=5)


@pytest.fixture
def student() -> Iterator[Student]:
    made = Student()
    yield made
    made.close()


@pytest.fixture
def refusing(sheet: Sheet) -> Iterator[Student]:
    """A process in which the exercise's forbidden functions are refused, as the grader makes it."""
    made = Student(forbidden=sheet.forbidden)
    yield made
    made.close()


def define(student: Student, source: str) -> None:
    """Run a cell as the grader does where functions are refused: it goes on below what fails."""
    student.conversation.ask({"do": "define", "source": source, "complete": True})


COUNT = 4  # calls are honest before the hidden one: those of the rules


@pytest.fixture(scope="module")
def honest_score(sheet: Sheet) -> float:
    """What the honest calls earn on their own: the score of code that raises an exception where the other calls."""
    made = Student(forbidden=sheet.forbidden)
    for cell in (SETUP + dedent(HONEST), "def ready(*_):\n    raise RuntimeError\n", LATER.format(count=COUNT)):
        define(made, cell)
    score = decide(sheet, made.subject(NAME)).score
    made.close()
    return score


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_a_hidden_call_earns_nothing(refusing: Student, sheet: Sheet, way: str, honest_score: float) -> None:
    for cell in (SETUP + dedent(HONEST), way, LATER.format(count=COUNT)):
        define(refusing, cell)
    verdict = decide(sheet, refusing.subject(NAME))
    assert verdict.score <= honest_score, [finding.message for finding in verdict.findings]


def test_each_way_leads_to_the_function_where_nothing_is_forbidden(student: Student) -> None:
    for name, way in WAYS.items():
        assert student.run(SETUP + way), (name, student.outputs)
        assert student.run("q = torch.rand(1, 2, 3)\nassert ready(q, q, q, None).shape == q.shape"), name


def test_the_same_code_without_the_call_earns_more_than_what_is_honest_in_it(
    refusing: Student, sheet: Sheet, honest_score: float
) -> None:
    # Four honest calls are enough for the plain case, which is the first row, and for nothing else.
    assert honest_score == sheet.sections[0].points
    refusing.run(SETUP + dedent(HONEST) + "ready = honest\n" + LATER.format(count=COUNT))
    assert decide(sheet, refusing.subject(NAME)).score > honest_score
