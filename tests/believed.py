"""Believe what a test run has shown before, until something changes that it depends on.

The tests of an exercise's check and of a lesson take minutes, and say the same as long as nothing that they read has changed.
``tests/believed.json`` has a key for each exercise and each lesson whose tests have all passed. ``make test`` runs those whose key is no
longer current, and writes the new key when they pass. With ``TFCOURSE_MEASURE_ALL=1``, as in continuous integration, everything runs, and
a key that is not current is a failure: so neither an outdated key nor one that was written by hand gets through.

A key has parts, so that it can say what has changed. None depends on paths, dates, or private names.
"""

from __future__ import annotations

import ast
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
KEYS = Path(__file__).with_suffix(".json")
EVERYTHING = "TFCOURSE_MEASURE_ALL"
_CHECKS = ROOT / "tests" / "autograder" / "checks"
_LESSONS = ROOT / "tests" / "chapters"
_RECORDS = (ROOT / "tfcourse" / "recorded", ROOT / "experiments" / "results")
# What the tests of checks import beside a declaration.
_MEASURING = ("autograder.checks", "autograder.course.release.answer_keys", "tools.quality.__main__")

Parts = dict[str, str]


def current_keys() -> dict[str, Parts]:
    """Return the key of everything that can be believed, by the name of its unit."""
    from autograder.checks import exercises

    keys = {f"exercise {name}": _parts_of_exercise(name) for name in exercises()}
    return keys | {
        f"lesson {path.parent.name[:2]}": _parts_of_lesson(path)
        for path in sorted((ROOT / "chapters").glob("*/lesson.md"))
    }


def changes(key: Parts, committed: Parts | None) -> str:
    """Return the parts of a key that differ from the committed one."""
    if committed is None:
        return "new"
    return ", ".join(part for part in {**key, **committed} if key.get(part) != committed.get(part))


def _parts_of_exercise(name: str) -> Parts:
    from autograder.checks import declaring_module, exercise
    from autograder.static_analysis.import_graph import source_files
    from tools.quality.keys import files_digest, reference_digest

    declared = ROOT / f"{declaring_module(exercise(name)).replace('.', '/')}.py"
    files = source_files(declaring_module(exercise(name)))
    questions = [file for file in files if file.is_relative_to(ROOT / "autograder" / "checks")]
    return {
        "reference": reference_digest(exercise(name)),
        "questions": files_digest(questions),
        "known mistakes": _digest(declared.with_suffix(".toml")),
        "right solutions": files_digest(_right_solutions().get(name, ())),
        "grader": _of_grader(),
        "tests": files_digest([_CHECKS / "test_quality.py"]),
    }


@cache
def _of_grader() -> str:
    """Return the digest of the modules that turn questions and answers into verdicts and recordings."""
    from autograder.static_analysis.import_graph import source_files
    from tools.quality.keys import files_digest

    files = frozenset().union(*map(source_files, _MEASURING))
    package, checks = ROOT / "autograder", ROOT / "autograder" / "checks"
    return files_digest(
        file
        for file in files
        if file.parent.parent != checks and any(map(file.is_relative_to, (package, ROOT / "tools")))
    )


@cache
def _right_solutions() -> dict[str, list[Path]]:
    """Return the files that have right solutions of an exercise: those whose code names it as a text."""
    found: dict[str, list[Path]] = {}
    for path in sorted(_CHECKS.glob("alternatives_*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and path not in found.get(node.value, ()):
                found.setdefault(node.value, []).append(path)
    return found


def _parts_of_lesson(path: Path) -> Parts:
    from autograder.static_analysis.definitions import ModuleSource
    from autograder.static_analysis.import_graph import imported_modules, source_files

    cells = re.findall(r"^```\{code-cell\}[^\n]*\n(.*?)^```", path.read_text("utf-8"), re.M | re.S)
    code = re.sub(r"^:[\w-]+:.*$|^[%!].*$", "", "\n".join(cells), flags=re.M)
    modules: set[Path] = set()
    for name in imported_modules(ModuleSource(path, code)):
        modules |= source_files(name)
    number = path.parent.name[:2]
    tests = [_LESSONS / f"{name}.py" for name in ("conftest", "form", "lesson", f"test_lesson_{number}")]
    return {
        "text": _digest(path),
        "modules": _digest(*sorted(modules)),
        "records": _digest(*sorted(file for folder in _RECORDS for file in folder.iterdir() if file.is_file())),
        "tests": _digest(*tests),
    }


def _digest(*paths: Path) -> str:
    from autograder.content_hash import hash_files

    return hash_files(ROOT, paths)[:16]


class Believer:
    """The part of a test run that leaves believed tests out, and notes which units have passed.

    The process that starts the run decides what is believed; the processes of pytest-xdist get it from there.
    """

    def __init__(
        self, config: pytest.Config, keys: Callable[[], dict[str, Parts]] = current_keys, file: Path = KEYS
    ) -> None:
        """Compare the keys.

        Args:
            config: the test run.
            keys: returns the keys of all units as they are now.
            file: the committed keys.
        """
        self.file = file
        self.everything = bool(os.environ.get(EVERYTHING))
        self.outcomes: dict[str, Counter[str]] = {}
        worker: dict[str, Any] | None = getattr(config, "workerinput", None)
        self.is_worker = worker is not None
        if worker is not None:
            self.believed = set(worker["believed"])
            return
        self.keys = keys()
        self.committed: dict[str, Parts] = json.loads(file.read_text("utf-8")) if file.exists() else {}
        self.stale = {unit: changes(key, self.committed.get(unit)) for unit, key in self.keys.items()}
        self.stale = {unit: change for unit, change in self.stale.items() if change}
        self.believed = set() if self.everything else self.keys.keys() - self.stale.keys()

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["believed"] = sorted(self.believed)

    def pytest_report_header(self) -> list[str]:
        if self.is_worker:
            return []
        if self.everything:
            return ["Everything runs: nothing is believed because it has passed before."]
        kinds = Counter(unit.partition(" ")[0] for unit in self.believed)
        believed = ", ".join(f"{number} {kind}s" for kind, number in sorted(kinds.items())) or "nothing"
        lines = [f"Believed, for nothing they depend on has changed since their tests passed: {believed}."]
        lines += [f"Run, for it has changed: {unit} ({change})." for unit, change in _first(self.stale)]
        return [*lines, f"To run everything: {EVERYTHING}=1 make test"]

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        left_out = []
        for item in items:
            if unit := unit_of(item):
                item.user_properties.append(("unit", unit))
                if unit in self.believed:
                    left_out.append(item)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]
        config.hook.pytest_deselected(items=left_out)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, unit in report.user_properties:
            if name == "unit":
                self.outcomes.setdefault(str(unit), Counter())[report.outcome] += 1

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self.is_worker or exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            return
        if self.everything and self.stale:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            return
        passed = {unit for unit, outcomes in self.outcomes.items() if set(outcomes) == {"passed"}}
        self.renewed = sorted(passed & self.stale.keys())
        if self.renewed:
            kept = {unit: self.committed[unit] for unit in self.keys if unit in self.committed}
            _write(self.file, {**kept, **{unit: self.keys[unit] for unit in self.renewed}})

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        name = self.file.name
        if self.everything and self.stale:
            terminalreporter.write_line(f"{name} is not current; run `make test` without {EVERYTHING} and commit it:")
            for unit, change in _first(self.stale):
                terminalreporter.write_line(f"  {unit}: changed since its key was written: {change}")
        elif getattr(self, "renewed", None):
            terminalreporter.write_line(f"{name}: {len(self.renewed)} keys renewed; commit the file.")


def unit_of(item: pytest.Item) -> str | None:
    """Return the name of the unit that a test belongs to, if it may be believed.

    Tests marked ``believed`` belong to the exercise that they have as their parameter ``name``; all tests of a lesson's file belong to
    the lesson.
    """
    if item.path.parent == _LESSONS and (number := re.fullmatch(r"test_lesson_(\d\d)", item.path.stem)):
        return f"lesson {number[1]}"
    if item.get_closest_marker("believed"):
        return f"exercise {item.callspec.params['name']}"  # type: ignore[attr-defined]
    return None


def _first(stale: dict[str, str], most: int = 12) -> Iterator[tuple[str, str]]:
    yield from list(stale.items())[:most]
    if len(stale) > most:
        yield f"and {len(stale) - most} more", "…"


def _write(file: Path, keys: dict[str, Parts]) -> None:
    """Write one unit per line, so that changes of two units merge."""
    lines = (f"{json.dumps(unit)}: {json.dumps(keys[unit])}" for unit in sorted(keys))
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
