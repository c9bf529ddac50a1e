"""nbgrader's own tests, which its wheel brings along: what passes with nbgrader untouched passes with the engine switched on.

The switch is a configuration file and nothing else; not a line of nbgrader or of its tests is changed. What they give untouched is kept in
``own_tests.json`` for one version of nbgrader, so that only the run with the engine is in the suite. For another version both are run;
``python tests/nbgrader/test_own_tests.py`` writes the table anew.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

import pytest

TABLE = Path(__file__).with_name("own_tests.json")

# Those that grade, those that look at what was graded, and those of the preprocessors that stand beside ours in the chain.
MODULES = (
    "apps.test_nbgrader_autograde",
    "apps.test_nbgrader_generate_feedback",
    "apps.test_api",
    "preprocessors.test_saveautogrades",
    "preprocessors.test_overwritecells",
)

UNTOUCHED = "c = get_config()\n"
SWITCHED_ON = f"from autograder.grading.plugin import configure\n\n{UNTOUCHED}configure(c)\n"

_AUTOGRADE = "apps.test_nbgrader_autograde.TestNbGraderAutograde"

# What we do otherwise, on purpose.
EXCEPTIONS = {
    f"{_AUTOGRADE}.test_side_effects": "A submission runs in a folder of its own that is thrown away; what it writes does not come to lie "
    "beside its autograded notebook.",
    f"{_AUTOGRADE}.test_missing_source_kernelspec": "For a notebook without a cell no kernel is started; that it does not exist is "
    "no error.",
    f"{_AUTOGRADE}.test_incorrect_source_kernelspec": "The same, where it is the course's kernel that does not exist.",
    f"{_AUTOGRADE}.test_no_execute": "A submission that is not run would be given all points, for outputs that anybody can have "
    "written: --no-execute is ignored, and a message says so.",
}


def outcomes(configuration: str) -> dict[str, str]:
    """Run nbgrader's own tests under a configuration and return what became of each."""
    # A short path: kernels talk over sockets in it, and a socket's path may have a hundred characters.
    with TemporaryDirectory(prefix="own-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        done = subprocess.run(
            _arguments(folder),
            cwd=folder,
            env=_surroundings(folder, configuration),
            capture_output=True,
            text=True,
            check=False,
        )
        # 1: some of them failed. Anything else is no result.
        assert done.returncode in (0, 1), (
            f"nbgrader's tests ended with {done.returncode}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
        )
        cases = ElementTree.parse(folder / "report.xml").getroot().iter("testcase")
        return {_name(case): _outcome(case) for case in cases}


def _arguments(folder: Path) -> list[str]:
    spec = find_spec("nbgrader")
    assert spec is not None
    assert spec.origin is not None
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    # They wait for kernels most of the time. Nothing is written beside the installed package: no cache, and no bytecode (below).
    options = ["-q", "-n", "2", "-p", "no:cacheprovider", "-c", "pytest.ini", "--junit-xml=report.xml"]
    root = f"--rootdir={Path(spec.origin).parent}"
    return [sys.executable, "-m", "pytest", *options, root, "--pyargs", *(f"nbgrader.tests.{name}" for name in MODULES)]


def _surroundings(folder: Path, configuration: str) -> dict[str, str]:
    own = {
        "HOME": folder / "home",
        "IPYTHONDIR": folder / "ipython",
        "JUPYTER_CONFIG_DIR": folder / "config",
        "JUPYTER_DATA_DIR": folder / "data",
        "JUPYTER_RUNTIME_DIR": folder / "runtime",
        "TMPDIR": folder / "t",
    }
    for place in own.values():
        place.mkdir(mode=0o700)
    (folder / "config" / "nbgrader_config.py").write_text(configuration, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "NBGRADER", "PYTEST"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return kept | {name: str(place) for name, place in own.items()} | {"PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def _name(case: ElementTree.Element) -> str:
    return f"{case.get('classname')}.{case.get('name')}".removeprefix("tests.")


def _outcome(case: ElementTree.Element) -> str:
    return next((child.tag for child in case if child.tag in ("failure", "error", "skipped")), "passed")


def untouched() -> dict[str, str]:
    """Return what nbgrader's tests give without the engine: from the table, or by a run if nbgrader is another one."""
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    if table["nbgrader"] == version("nbgrader"):
        return dict(table["outcomes"])
    return outcomes(UNTOUCHED)


@pytest.fixture(scope="module")
def differing() -> Mapping[str, str]:
    """Every test that passes without the engine and does not with it, or the other way round; and how it ends with it."""
    without, switched_on = untouched(), outcomes(SWITCHED_ON)
    assert len(switched_on) >= len(without) > 100
    return {name: switched_on.get(name, "is gone") for name in without if switched_on.get(name) != without[name]}


@pytest.mark.nbgrader
def test_with_the_engine_nbgraders_tests_pass_as_they_do_without_it(differing: Mapping[str, str]) -> None:
    unexplained = {name: outcome for name, outcome in differing.items() if name not in EXCEPTIONS}
    assert not unexplained


@pytest.mark.nbgrader
@pytest.mark.parametrize("name", EXCEPTIONS)
def test_an_exception_is_still_one(differing: Mapping[str, str], name: str) -> None:
    assert differing.get(name) == "failure", f"it passes with the engine: take it out of the table ({EXCEPTIONS[name]})"


def test_the_exceptions_are_tests_that_pass_without_the_engine() -> None:
    outcomes_without = json.loads(TABLE.read_text(encoding="utf-8"))["outcomes"]
    assert {name: outcomes_without.get(name) for name in EXCEPTIONS} == dict.fromkeys(EXCEPTIONS, "passed")


def main() -> None:
    """Write the table of what nbgrader's tests give untouched."""
    found = {"nbgrader": version("nbgrader"), "outcomes": dict(sorted(outcomes(UNTOUCHED).items()))}
    TABLE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
