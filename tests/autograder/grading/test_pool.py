"""Many submissions at once: each is answered for, whatever happens to what runs them."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from autograder.engine.interface import Execution, Submission
from autograder.engine.workers.pool import run_concurrently


class Scripted:
    """An executor that does what the notebook says."""

    def __init__(self, made: list[Scripted]) -> None:
        self.number = len(made)
        self.closed = False
        self.busy = threading.Lock()
        made.append(self)

    def grade_one(self, submission: Submission) -> Execution:
        assert self.busy.acquire(blocking=False), "two submissions at once in one executor"
        try:
            if submission.notebook == "fail":
                raise RuntimeError("out of paper")
            return Execution(submission.student, f"done by {self.number}", 0.1)
        finally:
            self.busy.release()

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def made() -> list[Scripted]:
    return []


@pytest.fixture
def make(made: list[Scripted]) -> Callable[[], Scripted]:
    return lambda: Scripted(made)


def submissions(count: int, **wishes: str) -> list[Submission]:
    plain = {f"s{i:03d}": "" for i in range(count)}
    return [Submission(student, "03", wish) for student, wish in {**plain, **wishes}.items()]


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_every_submission_is_answered_for_and_every_executor_closed(make, made, jobs):
    # Quick ones end together, which is when the next must not be forgotten.
    for _ in range(20):
        done = list(run_concurrently(make, submissions(17), jobs=jobs))
        assert sorted(execution.student for execution in done) == [f"s{i:03d}" for i in range(17)]
    assert len(made) == 20 * jobs
    assert all(executor.closed for executor in made)


def test_an_executor_that_fails_costs_the_submission_that_it_ran(make):
    done = {execution.student: execution for execution in run_concurrently(make, submissions(5, odd="fail"), jobs=2)}
    assert done["odd"].failure == "RuntimeError: out of paper"
    assert [student for student, execution in done.items() if execution.failure] == ["odd"]


def test_with_nothing_to_do_nothing_is_made(make, made):
    assert list(run_concurrently(make, [], jobs=3)) == []
    assert made == []


def test_submissions_are_prepared_no_further_ahead_than_is_needed(make):
    taken: list[str] = []

    def prepared():
        for submission in submissions(50):
            taken.append(submission.student)
            yield submission

    answers = run_concurrently(make, prepared(), jobs=2)
    next(answers)
    assert len(taken) <= 6
    answers.close()


def test_whoever_stops_asking_leaves_no_executor_open(make, made):
    answers = run_concurrently(make, submissions(10), jobs=2)
    next(answers)
    answers.close()
    assert all(executor.closed for executor in made)
