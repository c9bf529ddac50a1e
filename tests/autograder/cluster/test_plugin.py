"""What a worker is given, and what becomes of it."""

from __future__ import annotations

import pickle
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.engine.interface import Execution, Submission
from autograder.engine.settings import GradingSettings
from autograder.grading.cluster import worker_plugin as plugins
from autograder.grading.cluster.worker_plugin import GradingPlugin, pack_submission, unpack_execution

MADE: list[Any] = []


class Recorded:
    """An executor that remembers what is done to it."""

    def __init__(self, settings: GradingSettings) -> None:
        self.settings = settings
        self.closed = False
        MADE.append(self)

    def grade_one(self, submission: Submission) -> Execution:
        return Execution(submission.student, submission.notebook, 1.0)

    def close(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def _nothing_made() -> None:
    MADE.clear()


@pytest.fixture
def worker(tmp_path: Path) -> Any:
    """As much of a Dask worker as the plugin looks at."""
    return SimpleNamespace(local_directory=str(tmp_path / "worker"))


def test_the_students_wheel_arrives_as_bytes_in_a_folder_of_the_worker(worker: Any, tmp_path: Path) -> None:
    wheel = tmp_path / "a.whl"
    wheel.write_bytes(b"students")
    plugin = GradingPlugin(GradingSettings(package=str(wheel)), Recorded)
    wheel.unlink()
    plugin.setup(worker)
    there = Path(MADE[0].settings.package)
    assert there.read_bytes() == b"students"
    assert there.is_relative_to(worker.local_directory)


def test_the_hash_of_a_run_follows_all_that_decides_and_nothing_else(tmp_path: Path) -> None:
    def digest(text: bytes = b"one", **settings: Any) -> str:
        wheel = tmp_path / f"{len(list(tmp_path.iterdir()))}.whl"
        wheel.write_bytes(text)
        return GradingPlugin(GradingSettings(**settings, package=str(wheel)), Recorded).digest

    plugin = GradingPlugin(GradingSettings(seed=3), Recorded)
    assert pickle.loads(pickle.dumps(plugin)).digest == plugin.digest, "it travels without what it has made"
    assert digest() == digest(jobs=7) == digest(scheduler="tcp://elsewhere:8786")
    assert len({digest(), digest(b"two"), digest(seed=1), digest(device="cuda"), digest(exercise_seconds=7)}) == 5


def test_an_executor_that_nobody_asks_gives_back_what_it_holds_and_is_made_again(
    worker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugins, "IDLE_SECONDS", 0.01)
    plugin = GradingPlugin(GradingSettings(), Recorded)
    plugin.setup(worker)
    plugin.grade(Submission("a", "03", ""))
    while not MADE[0].closed:
        time.sleep(0.01)
    monkeypatch.setattr(plugins, "IDLE_SECONDS", 600)
    assert plugin.grade(Submission("b", "03", "")).student == "b"
    assert [executor.closed for executor in MADE] == [True, False]
    plugin.teardown(worker)
    assert MADE[-1].closed


def test_what_a_student_writes_travels_as_plain_text() -> None:
    odd = Submission("Zoë \ud800", "03", "\x00\u2028 cos\nsystem\n(S'true'\ntR.")
    data = pack_submission(odd)
    assert data.isascii()
    assert b"\n" not in data


def test_what_is_no_execution_is_refused() -> None:
    assert unpack_execution(b'{"student": "a", "notebook": "", "seconds": 1, "layers": ["x"]}').layers == ("x",)
    for data in (b"[]", b"{}", b'{"layers": []}', b"{", b'{"layers": [], "evil": 1}'):
        with pytest.raises(ValueError, match=r"execution|Expecting"):
            unpack_execution(data)
