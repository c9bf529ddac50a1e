"""The questions about every reference and every alternative, answered by an author in another process.

It takes ten minutes: ``make test-questions``. A sample of it is in tests/autograder/questions.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autograder.checks import exercise, exercises
from autograder.quizzes.questions.code import Code, NoSourceError
from autograder.quizzes.questions.facts import Facts, gather_facts
from autograder.quizzes.questions.kinds import make_questions
from tests.questions.author import solutions

pytestmark = [pytest.mark.audit, pytest.mark.usefixtures("one_thread")]

# So many solutions give four questions; the sheet of a student goes on with the next exercise where one gives fewer.
SHARE_WITH_FOUR = 0.25
COUNTS: list[int] = []
# Alternatives that no student could write at the top level of a cell: subclasses without code, and functions within functions.
NO_SOURCE = ("has no code in Python", "is defined inside another function")


@pytest.fixture(scope="module")
def ask() -> Iterator[Callable[[str, int, list[tuple[str, tuple[str, ...]]]], list[str]]]:
    """Yield a function that asks the author in a process with other hashes of texts."""
    program = Path(__file__).with_name("author.py")
    environment = {**os.environ, "PYTHONHASHSEED": "7", "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [sys.executable, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def answers(name: str, number: int, asked: list[tuple[str, tuple[str, ...]]]) -> list[str]:
            order = json.dumps({"exercise": name, "number": number, "questions": asked})
            process.stdin.write(f"{order}\n")  # type: ignore[union-attr]
            process.stdin.flush()  # type: ignore[union-attr]
            found: list[str] = json.loads(process.stdout.readline())  # type: ignore[union-attr]
            return found

        yield answers
        process.stdin.close()


def facts_of(name: str) -> dict[int, Facts]:
    found, refused = {}, {}
    for number, solution in enumerate(solutions(name)):
        try:
            found[number] = gather_facts(Code.from_candidate(solution), exercise(name).sheet())
        except NoSourceError as error:
            refused[number] = str(error)
    assert 0 not in refused, "a reference has source"
    assert all(reason.endswith(NO_SOURCE) for reason in refused.values())
    return found


@pytest.mark.parametrize("name", list(exercises()))
def test_every_key_is_the_author_s(name, ask) -> None:
    for number, facts in facts_of(name).items():
        chosen = make_questions(facts, "one")
        assert sum(one.generic for one in chosen) <= 2
        COUNTS.append(len(chosen))
        # The second execution is in another process, and the options have another order.
        asked = [*chosen, *make_questions(facts, "another")]
        answers = ask(name, number, [(one.text, tuple(reversed(one.options))) for one in asked])
        assert [(one.text, one.answer) for one in asked] == [
            (one.text, answer) for one, answer in zip(asked, answers, strict=True)
        ]


def test_a_quarter_of_the_solutions_give_four_questions() -> None:
    assert not COUNTS or COUNTS.count(4) >= SHARE_WITH_FOUR * len(COUNTS)
