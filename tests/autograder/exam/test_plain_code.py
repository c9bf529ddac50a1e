"""Code for a printed page computes the same, and does not tell which line an edit has changed."""

from __future__ import annotations

import ast
import re

import pytest

from autograder.checking.decision import decide
from autograder.checking.exercise import Exercise, Misconception
from autograder.checking.subject import LocalSubject
from autograder.checks import exercise, exercises
from autograder.mistakes.source_edits import EditError
from autograder.quizzes.exam.evidence import diagnosed_names
from autograder.quizzes.exam.plain_code import LONGEST_LINE, simplify_code
from autograder.quizzes.exam.shown_code import (
    list_used_checks,
    list_used_names,
    reason_to_leave_out,
    right_code,
    wrong_code,
)


def test_comments_are_left_out_because_they_describe_the_right_code() -> None:
    assert simplify_code("def f(x):\n    # the past only\n    return x  # (B, T)\n") == "def f(x):\n    return x"


def test_a_number_sign_in_a_text_stays() -> None:
    assert simplify_code('def f():\n    return "# no comment"') == 'def f():\n    return "# no comment"'


def test_messages_of_errors_are_short() -> None:
    code = 'def f(x):\n    if x < 0:\n        raise ValueError(\n            f"expected {x}"\n        )\n    return x'
    assert simplify_code(code) == 'def f(x):\n    if x < 0:\n        raise ValueError("…")\n    return x'


def test_what_only_a_message_has_used_is_left_out() -> None:
    code = "def f(x):\n    if x < 0:\n        words = str(x)\n        raise ValueError(words)\n    return x"
    assert simplify_code(code) == 'def f(x):\n    if x < 0:\n        raise ValueError("…")\n    return x'


def test_texts_have_one_kind_of_quotes() -> None:
    assert simplify_code("def f(a):\n    return a == 'x'") == 'def f(a):\n    return a == "x"'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("return ((x + 1))", "return x + 1"),
        ("return (x + 1)[0]", "return (x + 1)[0]"),
        ("return (g(x))", "return g(x)"),
        ("return -(x + 1)", "return -(x + 1)"),
    ],
)
def test_brackets_that_change_nothing_are_left_out(before: str, after: str) -> None:
    assert simplify_code(f"def f(x):\n    {before}") == f"def f(x):\n    {after}"


def test_a_long_line_is_divided() -> None:
    line = f"    return torch.stack([{', '.join(f'argument_{n}' for n in range(12))}], dim=0)"
    code = simplify_code(f"def f():\n{line}")
    assert max(map(len, code.split("\n"))) <= LONGEST_LINE < len(line)
    assert ast.dump(ast.parse(code)) == ast.dump(ast.parse(f"def f():\n{line}"))


def test_the_methods_of_a_class_stand_apart() -> None:
    code = "class A:\n    def f(self):\n        return 1\n    @staticmethod\n    def g():\n        return 2"
    assert simplify_code(code).split("\n")[3] == ""


def test_nearly_all_references_fit_on_a_page() -> None:
    longest = {name: max(map(len, right_code(one).lines)) for name, one in exercises().items()}
    assert len([name for name, width in longest.items() if width > LONGEST_LINE]) <= 9


TOO_MANY = "one key too many"


def known(name: str, mistake: str) -> tuple[Exercise, Misconception]:
    """Return an exercise and one of its known mistakes."""
    one = exercise(name)
    return one, next(item for item in one.misconceptions if item.name == mistake)


def test_a_known_mistake_is_shown_as_the_whole_function() -> None:
    one, mistake = known("causal_mask", TOO_MANY)
    code = wrong_code(one, mistake)
    assert code.lines[1:] == ["    return torch.ones(T, T, dtype=torch.bool, device=device).tril(1)"]
    assert diagnosed_names(decide(one.sheet(), LocalSubject(code.load()))) == [TOO_MANY]


def test_the_right_code_passes() -> None:
    one = exercise("soft_lookup")
    verdict = decide(one.sheet(), LocalSubject(right_code(one).load()))
    assert verdict.score == verdict.max_score


def test_private_helpers_are_shown_before_the_function() -> None:
    assert re.findall(r"^def (\w+)", right_code(exercise("top_k")).source, re.MULTILINE) == ["_keep", "top_k"]


def test_helpers_that_only_check_are_named_and_not_shown() -> None:
    code = right_code(exercise("score_variance"))
    assert list_used_checks(code) == ["_check_inputs"]
    assert "def _check_inputs" not in code.source


def test_other_exercises_that_the_code_uses_are_named() -> None:
    assert list_used_names(right_code(exercise("EncoderLayer"))) == ["FeedForward", "MultiHeadAttention"]


UNLIKELY = {"soft_lookup": ("changes its input", "arguments"), "causal_mask": ("one row after another", "result")}


@pytest.mark.parametrize("name", UNLIKELY)
def test_code_that_no_student_writes_is_left_out(name: str) -> None:
    mistake, word = UNLIKELY[name]
    one, item = known(name, mistake)
    assert word in reason_to_leave_out(one, item)
    with pytest.raises(EditError, match=word):
        wrong_code(one, item)
