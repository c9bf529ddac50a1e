"""A cluster on this machine with the real executor: the same grades as without it, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from autograder.engine.interface import Execution
from autograder.engine.sandbox.isolation import with_available_isolation
from autograder.engine.settings import GradingSettings
from autograder.engine.workers.executor import WorkerExecutor
from autograder.engine.workers.pool import run_concurrently
from autograder.grading.cluster.run import run_on_cluster
from tests.autograder.engine.workers import BEFORE, submission

INTERRUPTED = """
import os, sys
from autograder.grading.cluster.run import run_on_cluster
from autograder.engine.interface import Submission
from autograder.engine.settings import GradingSettings
from obedient import Obedient

if __name__ == "__main__":
    settings = GradingSettings(scheduler="local", jobs=2)
    submissions = [Submission("first", "03", ""), *(Submission(str(n), "03", "sleep 600") for n in range(3))]
    for execution in run_on_cluster(settings, submissions, make_executor=Obedient):
        print(execution.student, flush=True)
"""


@pytest.fixture
def settings(tmp_path: Path) -> GradingSettings:
    """What both ways of running are asked for: a wheel of the students' own, which only this machine has in this place."""
    wheel = tmp_path / "tfcourse-0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tfcourse/__init__.py", "WHERE_FROM = 'the wheel'\ndef check(f, hidden=False): pass\n")
    return with_available_isolation(GradingSettings(jobs=1, seed=7, package=str(wheel), allow_weaker=True))


SOLVED = "import torch\ndef causal_mask(T, device=None):\n    return torch.ones(T, T, dtype=torch.bool, device=device).tril()"
CHECKED = ("from tfcourse import check\ncheck(causal_mask, hidden=True)", "test_causal_mask")
# One solved, one that was left as it is, one that looks at its package.
SUBMISSIONS = [
    submission((SOLVED, None), CHECKED, student="student-0"),
    submission(("def causal_mask(T, device=None):\n    raise NotImplementedError", None), CHECKED, student="student-1"),
    submission(("import tfcourse\nprint('from', tfcourse.WHERE_FROM)", None), *BEFORE, student="student-2"),
]


def told(execution: Execution) -> Any:
    """What an execution says, but for the time that it took."""
    cells = json.loads(execution.notebook)["cells"]
    outputs = [cell.get("outputs") for cell in cells]
    return execution.student, execution.failure, execution.isolation, execution.layers, outputs


def test_a_cluster_gives_the_executions_that_this_machine_gives(settings: GradingSettings) -> None:
    here = list(run_concurrently(partial(WorkerExecutor, settings), SUBMISSIONS, jobs=1))
    there = list(run_on_cluster(GradingSettings(**{**vars(settings), "scheduler": "local"}), SUBMISSIONS))
    by_student = {execution.student: execution for execution in there}
    assert [told(by_student[execution.student]) for execution in here] == [told(execution) for execution in here]
    assert "from the wheel" in by_student["student-2"].notebook
    assert "application/vnd.tfcourse.verdict+json" in by_student["student-0"].notebook


def test_ctrl_c_ends_the_run_and_every_process_of_the_cluster(tmp_path: Path) -> None:
    script = tmp_path / "interrupted.py"
    script.write_text(INTERRUPTED)
    running = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent), "TMPDIR": str(tmp_path)},
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "first\n"
    os.killpg(running.pid, signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    assert running.returncode != 0
    assert errors.rstrip().endswith("KeyboardInterrupt")
    _wait_until_empty(running.pid)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("tfcourse-dask")] == []


def _wait_until_empty(group: int) -> None:
    """Wait until a process group has nobody left; the last ones are ended and wait for the system to take note of it."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    raise AssertionError(
        subprocess.run(["ps", "-eo", "pid,pgid,stat,args"], capture_output=True, text=True, check=False).stdout
    )
