"""Runs the tests marked ``cuda`` on the pretend accelerator where there is no CUDA, in a pytest of their own for each file.

PyTorch has to know an accelerator before the first gradient of a process, and a process that has used one cannot be forked any more;
other tests do both. To debug one of these tests, run pytest itself in that way:

    PYTHONPATH=$(python tests/pretend/build.py) TFCOURSE_TEST_ACCELERATOR=pretend pytest tests/pretend --pdb
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from .build import HOW_TO_INSTALL, built, compiler

# Set in such a process; and the file for its reports, if another pytest waits for them.
ACCELERATOR, REPORTS = "TFCOURSE_TEST_ACCELERATOR", "TFCOURSE_TEST_REPORTS"


@cache
def accelerator() -> str:
    """Return the device that the tests marked ``cuda`` run on."""
    import torch

    return "cuda" if torch.cuda.is_available() else "pretend"


def missing_compiler() -> None:
    """Skip the test where the device cannot be built; fail it in continuous integration."""
    why = f"needs a CUDA device, or a C++ compiler that builds a pretend one: {HOW_TO_INSTALL}"
    if os.environ.get("CI"):
        pytest.fail(why, pytrace=False)
    pytest.skip(why)


class Reporter:
    """Writes what came of each test to a file, in the process that runs them."""

    def __init__(self, config: pytest.Config, path: str) -> None:
        self._config, self._path = config, Path(path)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a report to the file."""
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(data) + "\n")


class Elsewhere:
    """Has the tests marked ``cuda`` run in another process, and tells what came of them."""

    def __init__(self) -> None:
        self._reports: dict[str, list[Any]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Tell what came of a test marked ``cuda``; the first of a file starts the process that runs them all."""
        if not item.get_closest_marker("cuda") or accelerator() == "cuda":
            return None
        if compiler() is None:
            return None  # it is skipped in its own process
        if item.nodeid not in self._reports:
            self._run([other for other in item.session.items if other.path == item.path])
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in self._reports.pop(item.nodeid):
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        # Nothing was set up here; what earlier tests have set up goes as if this one had run.
        item.session._setupstate.teardown_exact(nextitem)
        return True

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Skip what can run neither here nor elsewhere."""
        if item.get_closest_marker("cuda") and accelerator() != "cuda":
            missing_compiler()

    def _run(self, items: list[pytest.Item]) -> None:
        wanted = [item for item in items if item.get_closest_marker("cuda")]
        self._reports |= {item.nodeid: [] for item in wanted}
        config = wanted[0].config
        with tempfile.TemporaryDirectory(prefix="tfcourse-") as folder:
            names, reports = Path(folder, "names"), Path(folder, "reports")
            names.write_text("\n".join(item.nodeid for item in wanted), encoding="utf-8")
            reports.touch()
            path = os.pathsep.join(filter(None, [str(built()), os.environ.get("PYTHONPATH")]))
            ran = subprocess.run(
                [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"@{names}"],
                cwd=config.rootpath,
                env={**os.environ, "PYTHONPATH": path, ACCELERATOR: "pretend", REPORTS: str(reports)},
                capture_output=True,
                text=True,
                check=False,
            )
            lines = reports.read_text(encoding="utf-8").splitlines()
        for data in map(json.loads, lines):
            report = config.hook.pytest_report_from_serializable(config=config, data=data)
            self._reports[report.nodeid].append(report)
        for item in wanted:
            if not any(report.when == "teardown" for report in self._reports[item.nodeid]):
                self._reports[item.nodeid].append(_lost(item, ran))


def _lost(item: pytest.Item, ran: subprocess.CompletedProcess[str]) -> pytest.TestReport:
    why = f"the process on the pretend accelerator ended with {ran.returncode}:\n{(ran.stdout + ran.stderr)[-4000:]}"
    return pytest.TestReport(item.nodeid, item.location, {"cuda": 1}, "failed", why, "call")
