"""Changes of other lines that might repair code, some of which never end."""

from __future__ import annotations

from time import process_time

import pytest

from autograder.checks import exercise
from autograder.exam.repair import passes, repairs
from autograder.exam.shown_code import right_code

pytestmark = pytest.mark.usefixtures("one_thread")


def test_a_change_that_loops_for_ever_does_not_hide_one_that_repairs() -> None:
    right = right_code(exercise("wordpiece_encode"))
    number = next(n for n, line in enumerate(right.lines, start=1) if "while" in line)
    broken = right.with_source(right.source.replace("while start < len(word):", "while start <= len(word):"))
    assert not passes(broken)
    begin = process_time()
    assert repairs(broken, number)
    assert process_time() - begin < 60
