"""A real scheduler and real workers, some of which are killed: every submission comes back once, and the others do not suffer."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from pathlib import Path
from typing import Any

import dask.config
import pytest
import yaml
from distributed.utils import LoopRunner

from autograder.engine.interface import Execution, Submission
from autograder.engine.settings import GradingSettings
from autograder.errors import CourseError
from autograder.grading.cluster.run import run_on_cluster

from .conftest import DaskProcesses

PAGE = Path(__file__).parents[3] / "docs" / "scale.md"
PRELOAD = "import autograder.grading.cluster.compatibility as fitness\nfitness.version = lambda package: '0.0.1'\n"


def submissions(**commands: str) -> list[Submission]:
    return [Submission(student, "03", command) for student, command in commands.items()]


def graded(processes: Any, obedient: Any, patience: float = 30, jobs: int = 1, **commands: str) -> dict[str, Execution]:
    """Run submissions; return what came of each, by student, of whom each must come back once."""
    settings = GradingSettings(scheduler=processes.address, jobs=jobs, package=commands.pop("wheel", ""))
    done = list(run_on_cluster(settings, submissions(**commands), make_executor=obedient, patience=patience))
    assert sorted(execution.student for execution in done) == sorted(commands)
    return {execution.student: execution for execution in done}


def test_everything_comes_back_as_the_executors_returned_it_also_after_a_run_that_ended_early(
    shared: Any, obedient: Any, tmp_path: Path
) -> None:
    taken: list[int] = []

    def many() -> Any:
        for number in range(50):
            taken.append(number)
            yield Submission(f"s{number}", "03", "")

    early = run_on_cluster(GradingSettings(scheduler=shared.address), many(), make_executor=obedient)
    next(early)
    early.close()
    assert len(taken) <= 8, "submissions are taken as workers need them"
    wheel = tmp_path / "students.whl"
    wheel.write_text("the bytes of a wheel")
    commands = {f"student-{number}": f"say {number}" for number in range(30)}
    done = graded(shared, obedient, wheel=str(wheel), bjørn="package", **commands)
    assert done["bjørn"].notebook == "the bytes of a wheel"
    expected = Execution("student-7", "say 7 by student-7", 0.5, "", "none", ("one", "two"))
    assert done["student-7"] == expected
    assert list(run_on_cluster(GradingSettings(scheduler="tcp://127.0.0.1:1"), [])) == [], "nothing needs no scheduler"


def test_a_failure_is_believed_when_two_workers_agree(shared: Any, obedient: Any, tmp_path: Path) -> None:
    done = graded(shared, obedient, a="", odd="raise", b="fail", c=f"fail {tmp_path / 'once'}")
    assert done["odd"].failure == "LookupError: no such thing"
    assert done["b"].failure.startswith("failed on ")
    assert (tmp_path / "once").exists()
    assert done["a"].failure == done["c"].failure == ""


def test_a_new_worker_goes_on_where_all_others_were_killed(processes: Any, obedient: Any, tmp_path: Path) -> None:
    doomed = [processes.add_worker(), processes.add_worker()]

    def replace_them() -> None:
        for worker in doomed:
            worker.wait()
        processes.add_worker()

    rescue = threading.Thread(target=replace_them)
    rescue.start()
    done = graded(processes, obedient, a=f"die {tmp_path / 'a'}", b=f"die {tmp_path / 'b'}", c="", d="", e="")
    rescue.join()
    assert all(execution.failure == "" for execution in done.values())


def test_what_kills_every_worker_is_given_up_and_its_neighbours_are_graded(processes: Any, obedient: Any) -> None:
    for _ in range(3):
        processes.add_worker()
    done = graded(processes, obedient, a="", b="", killer="die", c="", d="", e="", f="")
    assert "2 workers of the cluster were lost" in done.pop("killer").failure
    assert all(execution.failure == "" for execution in done.values())
    assert sum(worker.poll() is None for worker in processes.workers) == 1


def test_a_lost_scheduler_ends_the_run_with_what_to_do(processes: Any, obedient: Any) -> None:
    processes.add_worker()
    settings = GradingSettings(scheduler=processes.address)
    commands = {"first": "", **{f"later-{number}": "sleep 0.2" for number in range(50)}}
    running = run_on_cluster(settings, submissions(**commands), make_executor=obedient)
    assert next(running).student == "first"
    processes.scheduler.kill()
    with pytest.raises(CourseError, match="lost"):
        list(running)


def test_without_a_worker_that_fits_or_a_scheduler_the_run_ends(
    processes: Any, obedient: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    with pytest.raises(CourseError, match="no worker for 1 seconds"):
        graded(processes, obedient, patience=1, a="")
    (tmp_path / "older.py").write_text(PRELOAD)
    processes.add_worker("--preload", str(tmp_path / "older.py"), threads=4)
    with pytest.raises(CourseError, match=r"tfcourse is 0\.0\.1 there") as refused:
        graded(processes, obedient, a="")
    assert "4 threads" in str(refused.value)
    processes.scheduler.kill()
    processes.scheduler.wait()
    monkeypatch.setattr("autograder.grading.cluster.connection._CONNECT_SECONDS", 1)
    with pytest.raises(CourseError, match="no Dask"):
        graded(processes, obedient, a="")


def test_a_worker_of_another_version_that_comes_later_gets_nothing(
    processes: Any, obedient: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "older.py").write_text(PRELOAD)
    processes.add_worker()

    def late() -> Any:
        yield Submission("a", "03", "")
        processes.add_worker("--preload", str(tmp_path / "older.py"))
        # Goes on until the newcomer has been judged.
        number = 0
        while "left out" not in caplog.text:
            number += 1
            yield Submission(f"b{number}", "03", "sleep 0.05")

    settings = GradingSettings(scheduler=processes.address)
    done = list(run_on_cluster(settings, late(), make_executor=obedient))
    assert all(execution.failure == "" for execution in done)
    assert "torch is 0.0.1 there" in caplog.text


def test_with_the_certificate_of_the_page_all_parts_meet_and_strangers_do_not(
    tmp_path: Path, obedient: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    [commands] = re.findall(r"^```bash\n(mkdir.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    [settings] = re.findall(
        r"^```yaml\n(distributed:.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    home = {**os.environ, "HOME": str(tmp_path)}
    subprocess.run(["bash", "-ec", commands], env=home, check=True, capture_output=True)
    config = tmp_path / "dask"
    config.mkdir()
    (config / "distributed.yaml").write_text(settings.replace("/home/lecturer", str(tmp_path)))
    monkeypatch.setenv("DASK_CONFIG", str(config))
    processes = DaskProcesses(tmp_path, "--protocol", "tls")
    try:
        processes.add_worker()
        assert processes.address.startswith("tls://")
        told = yaml.safe_load((config / "distributed.yaml").read_text())
        with dask.config.set(dask.config.merge(dask.config.config, told)):
            assert graded(processes, obedient, a="")["a"].failure == ""
        with pytest.raises(CourseError, match="tls://"):
            graded(processes, obedient, a="")
    finally:
        processes.end()


def test_an_event_loop_that_does_not_begin_in_time_is_started_again_but_not_for_ever(
    shared: Any, obedient: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = LoopRunner.start

    def held_up(runner: LoopRunner) -> None:
        assert next(attempts, None) is None
        start(runner)

    monkeypatch.setattr(LoopRunner, "start", held_up)
    attempts = iter(range(2))
    assert graded(shared, obedient, a="")["a"].failure == ""
    attempts = iter(range(100))
    with pytest.raises(CourseError, match="event loop"):
        graded(shared, obedient, a="")
