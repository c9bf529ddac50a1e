"""Workers and zygotes that fork servers have forked, beside those that are programs of their own."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from autograder.checks import exercises
from autograder.engine.settings import GradingSettings
from autograder.engine.transport.fork_server import ForkServerChild, kill_group
from autograder.engine.workers import engine, worker
from autograder.engine.workers.executor import WorkerExecutor, WorkerPool

from .workers import BEFORE, Graded, children, family, submission, until, zygote_below, zygote_of

SETTINGS = GradingSettings(seed=918_273_645)
SECRET = "TFCOURSE_TEST_TOKEN"
CHAPTER = "03_scaled_dot_product"
# What a student's process can find out about its start: variables, the order of sets, random numbers, open files.
LOOK = """
import os, random, stat, torch
own = {name: value for name, value in os.environ.items() if name not in ("TMPDIR", "IPYTHONDIR")}
print(sorted(own.items()))
print(hash("a"), random.random(), torch.rand(1).item(), torch.get_num_threads())
print([hasattr(torch._C, name) for name in ("_dispatch_get_computed_kernel_for_dispatch_key", "_jit_to_static_module")])
for descriptor in range(3, 1_000):
    try:
        print(stat.filemode(os.fstat(descriptor).st_mode))
    except OSError:
        pass
"""
AT_THE_START = "print(open('/proc/self/environ').read())"


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    """A pool whose servers have started before anything was to be graded."""
    with pytest.MonkeyPatch.context() as patch, WorkerPool() as pool:
        patch.setenv(SECRET, "s3cret")
        pool.start(SETTINGS)
        yield pool


def servers_of(pool: WorkerPool) -> tuple[int, int]:
    """The processes that fork workers and zygotes."""
    assert pool._servers is not None
    return pool._servers._workers.pid, pool._servers._zygotes.pid


def test_forked_processes_behave_as_programs_of_their_own(pool: WorkerPool) -> None:
    forked = pool.lease_executor(SETTINGS)
    with closing(WorkerExecutor(SETTINGS)) as spawned:
        one, other = (Graded(executor.grade_one(submission((LOOK, None), *BEFORE))) for executor in (forked, spawned))
    workers, zygotes = servers_of(pool)
    (child,) = children(workers)
    assert zygote_below(zygotes) not in family(child), "the zygote has no ancestor that holds the reference"
    forked.close()
    assert one.points == other.points == {"good": 1}
    assert one.printed(0) == other.printed(0)
    assert "[False, False]" in one.printed(0), "nothing leads past the dispatcher"
    assert set(one.printed(0).split()) >= {"srwxrwxrwx"}, "its connections"
    assert "-rw-------" not in one.printed(0), "no file"
    assert one.execution.layers == other.execution.layers


def test_a_students_process_shows_no_variable_of_the_instructors(pool: WorkerPool) -> None:
    forked = pool.lease_executor(SETTINGS)
    printed = Graded(forked.grade_one(submission((LOOK, None), (AT_THE_START, None)))).printed
    forked.close()
    assert os.environ[SECRET]
    assert "PYTHONHASHSEED" in printed(0)
    for text in (printed(0), printed(1)):
        assert SECRET not in text


def test_another_seed_gets_a_zygote_of_its_own(pool: WorkerPool) -> None:
    settings = replace(SETTINGS, seed=5)
    forked = WorkerExecutor(settings, servers=pool._servers)
    with closing(forked), closing(WorkerExecutor(settings)) as spawned:
        one, other = (Graded(executor.grade_one(submission((LOOK, None)))) for executor in (forked, spawned))
        assert zygote_of(forked)
    assert one.printed(0) == other.printed(0)


def test_a_server_tells_what_pytorch_uses(pool: WorkerPool) -> None:
    assert pool.cpu_capability() == torch.backends.cpu.get_cpu_capability()
    with WorkerPool() as without:
        assert without.cpu_capability() == ""


def test_without_its_servers_a_pool_grades(pool: WorkerPool) -> None:
    for server in servers_of(pool):
        os.kill(server, signal.SIGKILL)
    assert pool._servers is not None
    pool._servers._workers._process.wait()
    with closing(WorkerExecutor(SETTINGS, servers=pool._servers)) as executor:
        assert Graded(executor.grade_one(submission(*BEFORE))).points == {"good": 1}
        assert isinstance(executor._process, subprocess.Popen)
    assert pool.cpu_capability() == ""


def test_servers_end_with_a_program_that_is_killed(tmp_path: Path) -> None:
    code = (
        "import os, signal, socket, tempfile\nfrom autograder.engine.settings import GradingSettings\n"
        "from autograder.engine.workers.executor import WorkerPool\n"
        f"tempfile.tempdir = {str(tmp_path)!r}\npool = WorkerPool()\npool.start(GradingSettings(seed=1))\n"
        "print(pool._servers._workers.pid, pool._servers._zygotes.pid, flush=True)\n"
        "ours, theirs = socket.socketpair()\n"
        "pool._servers.fork_worker(theirs, theirs.fileno(), '', GradingSettings(seed=1), '')\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    # Standard error stays open until the servers have ended, too.
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stderr == "", "nobody is told of a worker that nobody waits for"
    servers = [int(pid) for pid in ran.stdout.split()]
    assert len(servers) == 2
    until(lambda: not any(_runs(pid) for pid in servers))
    assert list(tmp_path.iterdir()) == []


def _runs(pid: int) -> bool:
    try:
        return b"--fork-server" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def test_a_chapter_has_its_questions_before_workers_are_forked() -> None:
    names = [name for name, exercise in exercises().items() if exercise.chapter == CHAPTER]
    seed = 20_031
    assert engine.answer_cache(seed, "cpu").filter_missing(names) == sorted(names)
    worker._load_chapter({"seed": seed, "chapter": CHAPTER})
    gc.unfreeze()  # a server freezes what it has before it forks; this process goes on with other tests
    assert engine.answer_cache(seed, "cpu").filter_missing(names) == []
    assert engine.answer_cache(seed + 1, "cpu").filter_missing(names) == sorted(names)


def test_ending_a_process_that_has_ended_kills_no_other() -> None:
    process = subprocess.Popen(["true"], start_new_session=True)
    forked = ForkServerChild(process.pid, os.pidfd_open(process.pid))
    process.wait()
    assert forked.poll() == 0
    # Its number belongs to nobody now; a signal to its group would raise.
    kill_group(forked)
    kill_group(forked)
    assert forked.poll() == 0
