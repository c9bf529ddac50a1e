"""Each operator on a small function: what comes out is the code that a mistaken author might have written."""

from __future__ import annotations

import textwrap

import pytest

from autograder.quizzes.mutation.operators import list_mutations


def changes(body: str, operator: str) -> list[str]:
    """The lines that a kind of change puts in the place of others, in a function with this body."""
    code = "def f(x, y, n=None):\n" + textwrap.indent(textwrap.dedent(body), "    ")
    return [mutation.after for mutation in list_mutations(code) if mutation.operator == operator]


@pytest.mark.parametrize(
    ("body", "operator", "after"),
    [
        ("return x < y", "comparison", ["x <= y", "x >= y"]),
        ("return x >= y", "comparison", ["x > y", "x < y"]),
        ("return x == y", "comparison", ["x != y", "x <= y", "x >= y"]),
        ("return x is None", "comparison", ["x is not None"]),
        ("return x in y", "comparison", ["x not in y"]),
        ("return x + y", "arithmetic", ["x - y"]),
        ("return x // y", "arithmetic", ["x * y", "x / y"]),
        ("x *= y\nreturn x", "arithmetic", ["x /= y"]),
        ("return -x", "arithmetic", ["x"]),
        ("return x and y", "boolean", ["x or y"]),
        ("return not x", "boolean", ["x"]),
        ("return x and y", "condition dropped", ["y", "x"]),
        ("return x if y else n", "condition dropped", ["x", "n"]),
        ("return [i for i in x if i]", "condition dropped", [" for i in x".strip()]),
        ("if x:\n    y = n\nreturn y", "condition dropped", ["y = n", "pass"]),
        ("while x:\n    y = n\nreturn y", "condition dropped", ["pass"]),
        ("if x:\n    raise ValueError('no')\nreturn y", "error not raised", ["pass"]),
        ("return x + 4", "constant", ["5", "3", "6"]),
        ("return x.sum(-1)", "constant", ["0", "-2"]),
        ("return f(x, n=True)", "constant", ["False"]),
        ("return f(x, n=y)", "keyword dropped", ["f(x)"]),
        ("return f(x, y)", "arguments exchanged", ["f(y, x)"]),
        ("return x.to(y)", ".to() dropped", ["x"]),
        ("return x.clone()", ".clone() dropped", ["x"]),
        ("return x.contiguous()", ".contiguous() dropped", ["x"]),
        ("return x.detach()", ".detach() dropped", ["x"]),
        ("return x + y", ".detach() added", ["return (x + y).detach()"]),
        ("return x + y", ".to() added", ["return (x + y).to(torch.float32)"]),
        ("x.add_(y)\nreturn x", "statement dropped", ["pass"]),
        ("x = x * y\nreturn x", "statement dropped", ["pass"]),
        ("with torch.no_grad():\n    x = y\nreturn x", "no_grad dropped", ["x = y"]),
        ("return min(x, y)", "min/max", ["max(x, y)"]),
        ("return x.amax(0)", "min/max", ["x.amin(0)"]),
        ("return x.clamp(min=y)", "min/max", ["x.clamp(max=y)"]),
    ],
)
def test_each_operator_changes_one_place(body: str, operator: str, after: list[str]) -> None:
    assert changes(body, operator) == after


def test_a_mode_of_autograd_is_dropped_as_decorator() -> None:
    code = "@torch.no_grad()\ndef f(x):\n    return x\n"
    (found,) = [mutation for mutation in list_mutations(code) if mutation.operator == "no_grad dropped"]
    assert "no_grad" not in found.code


@pytest.mark.parametrize(
    "body",
    [
        "raise ValueError(f'{x + 1} is not {y}')",
        "assert x > 0",
        "x: dict[str, Literal[1]]",
    ],
)
def test_what_is_only_said_is_not_changed(body: str) -> None:
    assert {m.operator for m in list_mutations(f"def f(x, y):\n    {body}\n")} <= {"error not raised"}


@pytest.mark.parametrize(
    ("body", "operator"),
    [
        ("return list(zip(x, y, strict=True))", "keyword dropped"),
        ("return x.topk(n, dim=-1)", "keyword dropped"),
        ("return torch.maximum(x, y)", "arguments exchanged"),
        ("return x.transpose(-1, -2)", "arguments exchanged"),
        ("return x.shape[-1]", "arithmetic"),
        ("z = x\nreturn z", "statement dropped"),
    ],
)
def test_changes_that_mean_the_same_are_left_out(body: str, operator: str) -> None:
    assert changes(body, operator) == []


def test_what_is_never_negative_is_compared_with_0_once() -> None:
    assert changes("return len(x) == 0", "comparison") == ["len(x) != 0", "len(x) >= 0"]


def test_a_mutant_says_its_line_and_is_valid_code() -> None:
    found = list_mutations("def f(x):\n    y = x + 1\n    return y < 2\n")
    assert {mutation.line for mutation in found} == {2, 3}
    for mutation in found:
        compile(mutation.code, "mutant", "exec")
    assert len({mutation.code for mutation in found}) == len(found)
