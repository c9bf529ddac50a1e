"""A failure follows from another exercise only where code and verdicts say so."""

from __future__ import annotations

import pytest

from autograder.checking.verdict import NOT_JUDGED, NOT_WRITTEN, Diagnosis, Finding, Verdict
from autograder.grading.feedback.follow_ups import Outcome, find_causes

SCALE = Diagnosis("no scale", "The scores are not divided.", "why-scale")
SCALE_THERE = Diagnosis("no scale", "The scores of the layer are not divided.", "layers")
MASK = Diagnosis("mask inverted", "The mask is inverted.", "masks")
ERROR = "it raised ValueError: 3 is odd"
CALLS = "def layer(x):\n    return softmax(x)"


def verdict(name: str, *rows: Diagnosis | str | None) -> Verdict:
    """Return a verdict with a row per entry: a known mistake, a message, or None for one that passed."""
    return Verdict(
        name,
        "03",
        tuple(
            Finding(str(i), "Right.", 2, row is None, row if isinstance(row, str) else "off", _known(row))
            for i, row in enumerate(rows)
        ),
    )


def _known(row: Diagnosis | str | None) -> Diagnosis | None:
    return row if isinstance(row, Diagnosis) else None


def causes(first: Verdict | None, second: Verdict | None, code: str = CALLS) -> dict[str, str]:
    return find_causes([Outcome("softmax", "def softmax(x): ...", first), Outcome("layer", code, second)])


@pytest.mark.parametrize("rows", [(SCALE_THERE, None), (SCALE_THERE, NOT_JUDGED), (ERROR, SCALE_THERE)])
def test_the_same_mistakes_and_errors_follow(rows: tuple[Diagnosis | str | None, ...]) -> None:
    assert causes(verdict("softmax", SCALE, ERROR), verdict("layer", *rows)) == {"layer": "softmax"}


@pytest.mark.parametrize(
    "rows", [(MASK,), (SCALE_THERE, MASK), ("the largest deviation is 0.3",), (None,), (NOT_JUDGED,)]
)
def test_anything_of_its_own_does_not_follow(rows: tuple[Diagnosis | str | None, ...]) -> None:
    first = verdict("softmax", SCALE, "the largest deviation is 0.3")
    assert causes(first, verdict("layer", *rows)) == {}


@pytest.mark.parametrize(
    "code",
    [
        "def layer(x):\n    return torch.softmax(x)",
        "def layer(x):\n    # softmax(x)\n    return 'softmax(x)'",
        "def softmax(x):\n    return x",
        "def layer(x):\n    return softmax(x)\n    raise NotImplementedError()",
        "def layer(x:\n  softmax",
    ],
)
def test_code_that_does_not_call_the_exercise_does_not_follow(code: str) -> None:
    assert causes(verdict("softmax", ERROR), verdict("layer", ERROR), code) == {}


def test_nothing_follows_from_what_is_right_or_without_verdict() -> None:
    assert causes(verdict("softmax", None), verdict("layer", SCALE)) == {}
    assert causes(None, verdict("layer", ERROR)) == {}
    assert causes(verdict("softmax", SCALE), None) == {}


def test_code_that_calls_an_empty_exercise_follows_from_it() -> None:
    empty = verdict("softmax", NOT_WRITTEN, NOT_WRITTEN)
    assert causes(empty, verdict("layer", NOT_WRITTEN, None)) == {"layer": "softmax"}
    stub = "def layer(x):\n    # softmax(x)\n    raise NotImplementedError()"
    assert causes(empty, verdict("layer", NOT_WRITTEN), stub) == {}


def test_a_chain_leads_to_its_beginning() -> None:
    outcomes = [
        Outcome("a", "def a(): ...", verdict("a", SCALE)),
        Outcome("b", "def b(): return a()", verdict("b", SCALE)),
        Outcome("c", "def c(): return b()", verdict("c", SCALE)),
    ]
    assert find_causes(outcomes) == {"b": "a", "c": "a"}


def test_hostile_code_calls_nothing_and_ends() -> None:
    for code in ("(" * 100_000, "x" + ".b" * 100_000, "'" * 99_999, "\0"):
        assert causes(verdict("softmax", SCALE), verdict("layer", SCALE), code) == {}
