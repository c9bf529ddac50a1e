"""Many submissions at once: each is answered for, even if its worker is taken away."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

import pytest

from autograder.grading.execution import Submission
from autograder.grading.pool import run_all

# The executor must be a module that a worker process can import.
OBEDIENT = """
import os, signal
from dataclasses import dataclass
from autograder.grading.execution import Execution

@dataclass(frozen=True)
class Obedient:
    def grade_one(self, submission):
        if submission.notebook == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        return Execution(submission.student, f"done in {os.getpid()}", 0.1)
"""


@pytest.fixture
def obedient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An executor that does what the notebook says."""
    (tmp_path / "obedient_executor.py").write_text(OBEDIENT)
    monkeypatch.syspath_prepend(tmp_path)
    return importlib.import_module("obedient_executor").Obedient()


def submissions(**wishes: str) -> list[Submission]:
    return [Submission(student, "03", wish) for student, wish in wishes.items()]


def test_one_job_runs_in_this_process_and_in_order(obedient: Any) -> None:
    done = list(run_all(obedient, submissions(b="", a="", c=""), jobs=1))
    assert [execution.student for execution in done] == ["b", "a", "c"]
    assert {execution.notebook for execution in done} == {f"done in {os.getpid()}"}


def test_a_submission_that_kills_its_worker_costs_itself_only(obedient: Any) -> None:
    done = list(run_all(obedient, submissions(a="", b="die", c="", d="", e="", f=""), jobs=2))
    by_student = {execution.student: execution for execution in done}
    assert len(done) == 6
    assert "killed" in by_student["b"].failure
    assert all(by_student[student].failure == "" for student in "acdef")
    assert all(str(os.getpid()) not in by_student[student].notebook for student in "acdef")


@pytest.mark.parametrize("jobs", [1, 2])
def test_nothing_to_do_is_done_at_once(obedient: Any, jobs: int) -> None:
    assert list(run_all(obedient, [], jobs=jobs)) == []
