"""Code for a printed page computes the same, and does not tell which line an edit has changed."""

from __future__ import annotations

import ast

import pytest

from autograder.checks import exercises
from autograder.exam.plain_code import LONGEST_LINE, plain
from autograder.exam.shown_code import right_code


def test_comments_are_left_out_because_they_describe_the_right_code() -> None:
    assert plain("def f(x):\n    # the past only\n    return x  # (B, T)\n") == "def f(x):\n    return x"


def test_a_number_sign_in_a_text_stays() -> None:
    assert plain('def f():\n    return "# no comment"') == 'def f():\n    return "# no comment"'


def test_messages_of_errors_are_short() -> None:
    code = 'def f(x):\n    if x < 0:\n        raise ValueError(\n            f"expected {x}"\n        )\n    return x'
    assert plain(code) == 'def f(x):\n    if x < 0:\n        raise ValueError("…")\n    return x'


def test_what_only_a_message_has_used_is_left_out() -> None:
    code = "def f(x):\n    if x < 0:\n        words = str(x)\n        raise ValueError(words)\n    return x"
    assert plain(code) == 'def f(x):\n    if x < 0:\n        raise ValueError("…")\n    return x'


def test_texts_have_one_kind_of_quotes() -> None:
    assert plain("def f(a):\n    return a == 'x'") == 'def f(a):\n    return a == "x"'


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
    assert plain(f"def f(x):\n    {before}") == f"def f(x):\n    {after}"


def test_a_long_line_is_divided() -> None:
    line = f"    return torch.stack([{', '.join(f'argument_{n}' for n in range(12))}], dim=0)"
    code = plain(f"def f():\n{line}")
    assert max(map(len, code.split("\n"))) <= LONGEST_LINE < len(line)
    assert ast.dump(ast.parse(code)) == ast.dump(ast.parse(f"def f():\n{line}"))


def test_the_methods_of_a_class_stand_apart() -> None:
    code = "class A:\n    def f(self):\n        return 1\n    @staticmethod\n    def g():\n        return 2"
    assert plain(code).split("\n")[3] == ""


def test_nearly_all_references_fit_on_a_page() -> None:
    longest = {name: max(map(len, right_code(one).lines)) for name, one in exercises().items()}
    assert len([name for name, width in longest.items() if width > LONGEST_LINE]) <= 9
