"""The program as a shell starts it: signals, what it prints, what it imports. Each test starts a process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

ENTRY_POINT = Path(sys.executable).parent / "tfcourse"
Run = Callable[..., Result]


def test_the_entry_point_prints_pure_json_whatever_a_notebook_and_its_children_print(tmp_path: Path) -> None:
    source = "import os\nprint('noise')\nos.system('echo noise')\nfrom tfcourse import check"
    stub = "def causal_mask(T, device=None):\n    raise NotImplementedError"
    cells = [{"cell_type": "code", "source": text, "metadata": {}} for text in (source, stub, "check(causal_mask)")]
    path = tmp_path / "noisy.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}))
    done = subprocess.run([ENTRY_POINT, "validate", path, "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["score"] == 0
    assert "noise" not in done.stdout


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=lambda value: str(value),
)
def test_the_entry_point_is_stopped_by_ctrl_c_and_its_like_without_a_traceback(
    project: Path, number: signal.Signals, code: int
) -> None:
    program = (
        "import signal, sys, time\nimport autograder.course.authoring.sync as library\nfrom autograder.commands.main import main\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may have it ignored\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
        "def wait(*a, **k):\n    print('ready', file=sys.stderr, flush=True)\n    time.sleep(60)\n"
        "library.sync = wait\nmain(['sync'])"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True, cwd=project)
    assert process.stderr is not None
    assert process.stderr.readline() == "ready\n"
    time.sleep(0.1)
    process.send_signal(number)
    said = process.stderr.read()
    assert process.wait(30) == code
    assert said.startswith("tfcourse: stopped.")
    assert "Traceback" not in said


@pytest.mark.parametrize(("number", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_while_an_object_is_freed_stops_a_command(project: Path, number: str, code: int) -> None:
    program = (
        "import signal, time\nimport autograder.course.authoring.sync as library\nfrom autograder.commands.main import main\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"class Object:\n    def __del__(self):\n        signal.raise_signal(signal.{number})\n        time.sleep(0)\n"
        "def work(*a, **k):\n    Object()\n    time.sleep(60)\nlibrary.sync = work\nmain(['sync'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=project, check=False)
    assert done.returncode == code
    assert done.stderr.startswith("tfcourse: stopped.")
    assert "Traceback" not in done.stderr


def test_a_signal_that_is_to_be_ignored_stays_so(project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(
        "autograder.course.authoring.sync.sync", lambda *a, **k: seen.append(signal.getsignal(signal.SIGHUP)) or []
    )
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert run("sync").exit_code == 0
    finally:
        signal.signal(signal.SIGHUP, before)
    assert seen == [signal.SIG_IGN], "nohup is obeyed"


def test_without_the_packages_of_the_commands_the_entry_point_says_what_to_install() -> None:
    code = "import sys\nsys.modules['click'] = None\nimport autograder.commands.main"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("tfcourse: ")
    assert "tfcourse[grading,book]" in done.stderr
    assert "Traceback" not in done.stderr


STAGES = {
    # Help waits for none of them.
    "help": (
        "from autograder.commands.main import main\ntry:\n    main(['assign', '--help'])\nexcept SystemExit:\n    pass",
        {"torch", "nbgrader", "sphinx"},
    ),
    # PyTorch costs a second and a half of every command; workers have it, in processes of their own.
    "gradebook": (
        "import importlib, pkgutil, autograder\n"
        "for room in ('intake', 'grading', 'course.gradebook'):\n"
        "    room = importlib.import_module(f'autograder.{room}')\n"
        "    for module in pkgutil.walk_packages(room.__path__, f'{room.__name__}.'):\n"
        "        importlib.import_module(module.name)\n"
        "import nbgrader",
        {"torch"},
    ),
    # What nbformat imports would make grammars, for addresses that no notebook has.
    "notebooks": ("import autograder.course.gradebook.reader, nbformat, jsonschema", {"lark"}),
}


@pytest.mark.parametrize("stage", STAGES)
def test_what_takes_seconds_is_not_imported_before_it_is_needed(stage: str) -> None:
    code, slow = STAGES[stage]
    code = f"{code}\nimport sys\nprint(sorted({slow} & set(sys.modules)), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
