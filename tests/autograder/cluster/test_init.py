"""Dask is needed only by those who grade on a cluster."""

from __future__ import annotations

import subprocess
import sys

WITHOUT_DASK = """
import sys

class NoDask:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("dask", "distributed"):
            raise ModuleNotFoundError(f"No module named '{name}'")

sys.meta_path.insert(0, NoDask())
import autograder.grading.autograde
from autograder.grading.cluster import executions_on_cluster
from autograder.errors import CourseError
from autograder.engine.settings import GradingSettings
try:
    executions_on_cluster(GradingSettings(scheduler="local"), [])
except CourseError as error:
    print(error)
"""


def test_without_dask_a_cluster_is_refused_with_what_to_install() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_DASK], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("grading with --scheduler needs Dask, and there is no module named")
    assert "tfcourse[grading,scale]" in done.stdout
