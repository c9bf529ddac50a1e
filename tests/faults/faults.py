"""The faults, by name. ``QUICK`` are those that ``make test-deep`` tries; ``python -m tests.faults`` tries all."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import time
from pathlib import Path

from .trial import Fault, Trial

_CLOCK = Path(__file__).with_name("clock")


def _own_mounts() -> tuple[str, ...]:
    """Return the words that start a shell in a mount namespace of its own, so that nothing is mounted for anybody else."""
    as_root = () if os.geteuid() == 0 else ("--map-root-user",)
    return ("unshare", *as_root, "--mount", "--propagation", "private", "sh", "-euc")


def _killed(module: str, seed: int, times: int, *, server: bool = False) -> Fault:
    """Kill a process of the run, several times, at moments that the seed draws. The command itself is started again."""

    def fault(trial: Trial) -> None:
        moments, run = random.Random(seed), trial.start()
        for number in range(times):
            if number and run.process.poll() is not None:
                run = trial.start()
            time.sleep(moments.uniform(0.1, 0.8) * trial.subject.seconds)
            run.kill(module, server=server)
            if not module:
                run.wait()
        run.wait()

    return fault


def _signalled(number: signal.Signals) -> Fault:
    """Send the command a signal in the middle of its work."""

    def fault(trial: Trial) -> None:
        run = trial.start()
        time.sleep(0.5 * trial.subject.seconds)
        run.process.send_signal(number)
        run.wait()

    return fault


def _disk_full(spare: int) -> Fault:
    """Leave so many bytes on the disk of the course. What the run left there is the course of the next one."""
    script = """
        disk="$1"; course="$2"; kept="$3"; size="$4"; shift 4
        mount -t tmpfs -o size="$size" none "$disk"
        cp -a "$course"/. "$disk"/
        mount --bind "$disk" "$course"
        "$@" || true
        cp -a "$course"/. "$kept"/
    """

    def fault(trial: Trial) -> None:
        disk, kept = trial.folder / "disk", trial.folder / "kept"
        disk.mkdir()
        kept.mkdir()
        # Every file takes whole pages, and every folder one.
        used = sum(-(-path.stat().st_size // 4096) * 4096 + 4096 for path in trial.root.rglob("*"))
        places = (str(disk), str(trial.root), str(kept), str(used + spare))
        trial.start(before=(*_own_mounts(), script, "sh", *places)).wait()
        trial.root.rename(trial.folder / "before")
        kept.rename(trial.root)

    return fault


def _gradebook_read_only(trial: Trial) -> None:
    """Let the gradebook be a file that nobody can write."""
    gradebook = trial.root / "gradebook.db"
    script = 'mount --bind "$1" "$1"; mount -o remount,bind,ro "$1"; shift; "$@"'
    code = trial.start(before=(*_own_mounts(), script, "sh", str(gradebook))).wait()
    if code == 0:
        raise AssertionError("a gradebook that cannot be written was taken for one that was")


def _gradebook_locked(trial: Trial) -> None:
    """Let another program hold the gradebook for half of the run."""
    connection = sqlite3.connect(trial.root / "gradebook.db", isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    run = trial.start()
    time.sleep(0.5 * trial.subject.seconds)
    connection.execute("ROLLBACK")
    connection.close()
    run.wait()


def _at_once(commands: int) -> Fault:
    """Start several commands on one course at the same time."""

    def fault(trial: Trial) -> None:
        for run in [trial.start() for _ in range(commands)]:
            run.wait()

    return fault


def _clock_set_back(trial: Trial) -> None:
    """Set the clock of the main process back by an hour while it works."""
    after = str(0.4 * trial.subject.seconds)
    trial.start(environment={"PYTHONPATH": str(_CLOCK), "TFCOURSE_TEST_CLOCK_BACK_AFTER": after}).wait()


_MODULES = {
    "the command": "",
    "a worker": "autograder.engine.workers.worker",
    "a zygote": "autograder.engine.student.zygote",
}

FAULTS: dict[str, Fault] = {
    **{
        f"{name} killed, round {seed}": _killed(module, seed, times=4 if seed else 1)
        for name, module in _MODULES.items()
        for seed in range(3)
    },
    **{
        f"the server of {name.split()[-1]}s killed": _killed(module, 0, times=1, server=True)
        for name, module in _MODULES.items()
        if module
    },
    **{f"a disk with {spare // 1024} KiB left": _disk_full(spare) for spare in (4 << 10, 64 << 10, 512 << 10, 2 << 20)},
    "a gradebook that is read-only": _gradebook_read_only,
    "a gradebook that is locked": _gradebook_locked,
    "two commands at once": _at_once(2),
    "three commands at once": _at_once(3),
    "a clock that goes back": _clock_set_back,
    **{f"{number.name} in the middle": _signalled(number) for number in (
        signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)},
}  # fmt: skip

QUICK: tuple[str, ...] = (
    "the command killed, round 0",
    "a disk with 64 KiB left",
    "a gradebook that is read-only",
    "two commands at once",
    "SIGTERM in the middle",
)
