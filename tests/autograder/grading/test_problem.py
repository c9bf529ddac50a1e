"""What is told about a submission has limits: a student may decide how long it would be."""

from __future__ import annotations

import pytest
from nbformat.v4 import new_notebook

from autograder.submission.problem import LEFT_OUT, LONGEST, MOST, Problem, add_problems, problems_of, shortened


@pytest.mark.parametrize("part", ["what", "where", "do"])
def test_a_problem_of_eight_thousand_names_is_cut(part: str) -> None:
    names = ", ".join(f"a_name_{i}" for i in range(8_000))
    told = Problem(**{"kind": "worth a look", "what": "It uses names.", part: f"Names: {names}."})
    assert len(str(told)) < LONGEST + 100
    assert f"… ({len(names) + 8:,} characters in all)." in str(told)
    assert Problem.from_dict(told.to_dict()) == told


def test_short_texts_stay_as_they_are() -> None:
    assert shortened("a" * LONGEST) == "a" * LONGEST
    assert len(shortened("a" * (LONGEST + 1))) == LONGEST


def test_of_many_problems_the_worst_are_kept() -> None:
    notebook = new_notebook()
    for i in range(300):
        add_problems(
            notebook, [Problem(f"remark {i}", "It is so.", remark=True), Problem(f"problem {i}", "It is bad.")]
        )
    add_problems(notebook, [Problem("the worst", "It cannot be graded.", fatal=True)])
    problems = problems_of(notebook)
    assert len(problems) == MOST
    assert [problem.kind for problem in problems[:2]] == ["problem 0", "problem 1"]
    assert [problem.kind for problem in problems[-2:]] == ["the worst", LEFT_OUT]
