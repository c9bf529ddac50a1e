"""Real zygotes and their children, in the sandbox, from the first import to the end."""

from __future__ import annotations

import ast
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from autograder.checking.draw import Case
from autograder.engine.checker.remote_subject import RemoteSubject
from autograder.engine.checker.rpc_client import CellLimits, LimitError
from autograder.engine.checker.student_process import StudentProcess
from autograder.engine.checker.zygote_client import ZygoteClient
from autograder.engine.settings import GradingSettings
from autograder.engine.workers.sandbox_settings import engine_settings, student_environment

from .student import AMPLE, conversation_with

SETTINGS = GradingSettings(memory_mb=1024, scratch_mb=16, seed=5)


class Room:
    """A child of a real zygote, with a conversation."""

    def __init__(self, zygote: ZygoteClient, forbidden: Sequence[str] = ()) -> None:
        self.child: StudentProcess = zygote.fork_child(2**26, forbidden=forbidden)
        self.conversation = conversation_with(self.child, forbidden)
        self.conversation._how_it_ended = zygote.wait_for_exit
        self.outputs: list[Any] = []
        self.conversation.begin(AMPLE, self.outputs.append)

    def run(self, source: str) -> Any:
        """Run a cell."""
        return self.conversation.ask({"do": "run", "source": source})["value"]


@pytest.fixture
def room(zygote: ZygoteClient) -> Iterator[Room]:
    """A new sandboxed child."""
    made = Room(zygote)
    yield made
    made.child.close()


ELSEWHERE = """
import threading, torch
def f(x):
    found = []
    thread = threading.Thread(target=lambda: found.append(torch.relu(x)))
    thread.start()
    thread.join()
    return found[0]
"""


@pytest.mark.parametrize("earlier", ["", "threading.Thread(target=print).start()"], ids=["alone", "a thread"])
def test_a_thread_is_refused_what_is_forbidden(zygote: ZygoteClient, earlier: str) -> None:
    room = Room(zygote, forbidden=["relu"])
    room.run(ELSEWHERE + earlier)
    assert room.conversation.ask({"do": "look", "cell": 0, "name": "f"}) == {"value": True}
    request = Case({"x": torch.ones(3)}).request("functions")
    ((seen,),) = RemoteSubject(room.conversation, 0, "f").observe_groups([[request]], forbidden=["relu"])
    room.child.close()
    assert "relu" in seen.functions
    assert seen.error is not None


def test_who_has_had_no_company_is_known_for_certain(room: Room) -> None:
    ask = "import sys\nprint(sys.modules['autograder.engine.student.thread_check'].is_single_threaded())\n"
    room.run("import torch\nx = torch.ones(3, requires_grad=True)\n(x @ x).backward()\n%matplotlib inline\n" + ask)
    room.run("import threading\nthreading.Thread(target=int).start()\n" + ask)
    assert [output.get("text") for output in room.outputs] == ["True\n", "False\n"], room.outputs


def test_a_stopped_process_stands_still_and_goes_on(room: Room) -> None:
    room.run("import threading\ndef spin():\n    while True: pass\nthreading.Thread(target=spin, daemon=True).start()")
    for stopped in (True, False):
        (room.child.suspend if stopped else room.child.resume)()
        time.sleep(0.1)  # each thread stops when the kernel gets to it
        before = room.child.own_cpu_seconds()
        time.sleep(0.3)
        assert (room.child.own_cpu_seconds() > before) is not stopped
    assert room.run("1 + 1") is True


def test_figures_work_nothing_of_the_grader_can_be_imported_and_no_file_is_open(room: Room) -> None:
    room.run("import os\nopened = {}\nfor n in os.listdir('/proc/self/fd'):\n    try: opened[n] = os.readlink(f'/proc/self/fd/{n}')\n"
             "    except OSError: pass\nprint(opened)")  # fmt: skip
    opened = ast.literal_eval(room.outputs.pop()["text"])
    assert {opened.pop(number) for number in "012"} == {"/dev/null"}
    assert all(target.startswith(("socket:", "/proc", "anon_inode:", "pipe:")) for target in opened.values()), opened
    assert sum(target.startswith("socket:") for target in opened.values()) == 3, opened
    room.run("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nprint('drawn')\n!id -un")
    shown = [output["data"] for output in room.outputs if output["output_type"] == "display_data"]
    assert [data["image/png"][:5] for data in shown] == ["iVBOR"]
    printed = "".join(output["text"] for output in room.outputs if output["output_type"] == "stream")
    assert printed.startswith("drawn\nPrograms cannot be started")
    room.run("import importlib")
    for module in ("tfcourse", "autograder.checks", "autograder.grading.autograde", "autograder.engine.workers.worker"):
        assert not room.run(f"importlib.import_module({module!r})")
        assert room.outputs[-1]["ename"] == "ModuleNotFoundError"


def test_memory_that_all_processes_together_fill_is_a_broken_limit(room: Room) -> None:
    room.conversation.begin(CellLimits(60, 60, 300, 10**6, 256), room.outputs.append)
    with pytest.raises(LimitError, match="300 MiB") as caught:
        room.run("import time\nkept = bytearray(b'x') * (400 * 2**20)\ntime.sleep(30)")
    assert caught.value.kind == "memory"


def test_a_folder_on_pythons_path_that_is_not_shown_need_not_be_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tfcourse").mkdir()
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    made = ZygoteClient(engine_settings(SETTINGS), student_environment(SETTINGS, tmp_path / "home"))
    try:
        made.make_ready()
        child = made.fork_child(2**20)
        assert child.isolation == "sandbox"
        child.close()
    finally:
        made.close()


def test_each_zygote_has_its_own_user(zygote: ZygoteClient, tmp_path: Path) -> None:
    """The host counts processes and the buffers of pipes by user."""
    other = ZygoteClient(engine_settings(SETTINGS), student_environment(SETTINGS, tmp_path))
    other.make_ready()
    rooms = Room(zygote), Room(zygote), Room(other)
    users = [Path(f"/proc/{room.child._pid}").stat().st_uid for room in rooms]
    for room in rooms:
        room.child.close()
    other.close()
    assert users[0] == users[1]
    # Without the right to map further ids, students' processes run as the user who grades.
    assert (users[0] != users[2]) if os.getuid() == 0 else users == [os.getuid()] * 3
