"""Known mistakes as code of students."""

from __future__ import annotations

import re

import pytest

from autograder.checking.decision import decide
from autograder.checking.exercise import Exercise, Misconception
from autograder.checking.subject import LocalSubject
from autograder.checks import exercise
from autograder.exam.evidence import names_of
from autograder.exam.shown_code import (
    changed_line,
    checks_used,
    names_used,
    reason_to_leave_out,
    right_code,
    wrong_code,
)
from autograder.mistakes.source_edits import EditError


def known(name: str, mistake: str) -> tuple[Exercise, Misconception]:
    """Return an exercise and one of its known mistakes."""
    one = exercise(name)
    return one, next(item for item in one.misconceptions if item.name == mistake)


def test_a_known_mistake_is_shown_as_the_whole_function() -> None:
    code = wrong_code(*known("causal_mask", "one key too many"))
    assert code.lines == [
        "def causal_mask(T: int, device: torch.device | str | None = None) -> Tensor:",
        "    return torch.ones(T, T, dtype=torch.bool, device=device).tril(1)",
    ]


def test_the_shown_code_runs_and_gets_its_diagnosis() -> None:
    one, mistake = known("causal_mask", "one key too many")
    verdict = decide(one.sheet(), LocalSubject(wrong_code(one, mistake).candidate()))
    assert names_of(verdict) == ["one key too many"]


def test_the_right_code_passes() -> None:
    one = exercise("soft_lookup")
    verdict = decide(one.sheet(), LocalSubject(right_code(one).candidate()))
    assert verdict.score == verdict.max_score


def test_private_helpers_are_shown_before_the_function() -> None:
    assert re.findall(r"^def (\w+)", right_code(exercise("top_k")).source, re.MULTILINE) == ["_keep", "top_k"]


def test_helpers_that_only_check_are_named_and_not_shown() -> None:
    code = right_code(exercise("score_variance"))
    assert checks_used(code) == ["_check_inputs"]
    assert "def _check_inputs" not in code.source


def test_other_exercises_that_the_code_uses_are_named() -> None:
    assert names_used(right_code(exercise("EncoderLayer"))) == ["FeedForward", "MultiHeadAttention"]


def test_the_line_of_a_mistake_is_found() -> None:
    one, mistake = known("causal_mask", "one key too many")
    assert changed_line(right_code(one), wrong_code(one, mistake)) == 2


def test_a_mistake_that_lacks_a_line_has_no_line() -> None:
    one, mistake = known("padding_mask", "any lengths will do")
    assert changed_line(right_code(one), wrong_code(one, mistake)) == 0


@pytest.mark.parametrize(
    ("name", "mistake", "reason"),
    [
        ("soft_lookup", "changes its input", "it prepares the arguments in a way that no student writes"),
        ("causal_mask", "one row after another", "it rewrites the result in a way that no student writes"),
    ],
)
def test_code_that_no_student_writes_is_left_out(name: str, mistake: str, reason: str) -> None:
    one, item = known(name, mistake)
    assert reason_to_leave_out(one, item) == reason
    with pytest.raises(EditError, match=reason):
        wrong_code(one, item)
