"""Folders of runs that were killed are removed by the next one, and nobody else's; what was started ends with who started it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from autograder.engine.settings import GradingSettings
from autograder.engine.workers import temp_folders
from autograder.engine.workers.executor import WorkerExecutor
from autograder.engine.workers.temp_folders import LOCK, locked_temp_folder, remove_abandoned_folders


@pytest.fixture(autouse=True)
def _own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(temp_folders, "_YOUNG_SECONDS", -1.0)


def killed_run() -> Path:
    """Return the folder of a process that has made one, put something into it, and was killed."""
    code = (
        "import os, pathlib, signal, subprocess, sys, tempfile\nfrom autograder.engine.workers.temp_folders import locked_temp_folder\n"
        f"tempfile.tempdir = {tempfile.gettempdir()!r}\nfolder, _ = locked_temp_folder()\n"
        "pathlib.Path(folder, 'packages').mkdir()\nprint(folder, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    return Path(
        subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=False).stdout.strip()
    )


def test_the_folder_of_a_run_that_was_killed_is_removed_by_the_next(tmp_path: Path) -> None:
    left = killed_run()
    assert (left / "packages").is_dir()
    executor = WorkerExecutor(GradingSettings(seed=1, allow_weaker=True))
    executor.start()
    try:
        assert not left.exists()
        assert len(list(tmp_path.iterdir())) == 1, "its own"
    finally:
        executor.close()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_use_stays_also_if_who_has_made_it_is_gone(tmp_path: Path) -> None:
    folder, handle = locked_temp_folder()
    heir = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[handle])
    os.close(handle)
    remove_abandoned_folders()
    assert Path(folder).is_dir()
    heir.communicate(b"\n")
    remove_abandoned_folders()
    assert not Path(folder).exists()


def test_what_is_young_or_not_certainly_ours_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("tfcourse-other", "another-x"):
        (tmp_path / name).mkdir()
    (tmp_path / "another-x" / LOCK).touch()
    (tmp_path / "tfcourse-link").symlink_to(tmp_path / "another-x")
    (tmp_path / "tfcourse-file").touch()
    remove_abandoned_folders()
    assert len(list(tmp_path.iterdir())) == 4
    monkeypatch.setattr(temp_folders, "_YOUNG_SECONDS", 60.0)
    left = killed_run()
    remove_abandoned_folders()
    assert left.is_dir(), "it is young"
    monkeypatch.setattr(temp_folders, "_YOUNG_SECONDS", -1.0)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    remove_abandoned_folders()
    assert left.is_dir(), "it is another user's"


def test_what_students_are_forked_from_ends_with_its_worker_also_while_it_prepares_itself(tmp_path: Path) -> None:
    (tmp_path / "endless.py").write_text(
        f"import pathlib, time\npathlib.Path({str(tmp_path / 'begun')!r}).touch()\ntime.sleep(600)\n", encoding="utf-8"
    )
    code = (
        "import os, pathlib, time\nfrom autograder.engine.checker.zygote_client import ZygoteClient\n"
        "from autograder.engine.sandbox.settings import SandboxSettings\n"
        "settings = SandboxSettings(preload=('endless',), isolation='none')\n"
        f"zygote = ZygoteClient(settings, {{**os.environ, 'PYTHONPATH': {str(tmp_path)!r}}})\nzygote.start()\n"
        f"while not pathlib.Path({str(tmp_path / 'begun')!r}).exists(): time.sleep(0.01)\n"
        "os._exit(0)"
    )
    # It holds this pipe as long as it lives.
    subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=True
    )
