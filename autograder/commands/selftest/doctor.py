"""Check this machine, and report problems and their remedies without changing anything."""

from __future__ import annotations

import importlib.util
import os
import platform
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Literal

from autograder.course.folder import CONFIG_NAME, Course
from autograder.course.known_errors import as_course_error
from autograder.course.paths import require_writable, shell_command
from autograder.errors import CourseError, list_first

State = Literal["ok", "note", "missing"]

_NEEDED = {
    "torch": "the reference and the checks",
    "numpy": "the reference and the checks",
    "safetensors": "recorded checks",
    "nbgrader": "assigning and grading",
    "ipykernel": "running notebooks",
    "nbclient": "running notebooks",
    "jupytext": "reading chapters",
    "jupyter-book": "the site",
    "sphinx-mathjax-offline": "formulas without a network",
}
_FOR_TESTS = {
    "pytest": "the tests",
    "hypothesis": "the tests",
    "transformers": "the oracles of the tests",
    "playwright": "the browser tests",
}
_INSTALL = "pip install -r requirements.lock"

# Free bytes for a course: a chapter of a large class, with graded notebooks, pages and results, takes a few hundred megabytes.
MUCH_SPACE = 1 << 30
# A release is a few megabytes, and each file is first written to a temporary one.
NO_SPACE = 32 << 20


@dataclass(frozen=True)
class Item:
    """The result of one examination."""

    name: str  # the checked item
    state: State  # ``"ok"``; ``"note"``: works with a limitation; ``"missing"``: some command cannot work without it
    detail: str  # the finding
    remedy: str = ""  # how to get a missing item


def examine(course_dir: Path | None = None) -> list[Item]:
    """Examine the machine and a course folder, and return the results in a fixed order.

    Args:
        course_dir: the course folder, or None. A missing course is not a fault of the machine.
    """
    return [
        _examine_python(),
        *_examine_packages(_NEEDED, "missing"),
        *_examine_packages(_FOR_TESTS, "note"),
        *_examine_kernel(),
        *_examine_devices(),
        _examine_browser(),
        *_examine_isolation(),
        *([] if course_dir is None else _examine_course(course_dir)),
    ]


def _examine_python() -> Item:
    description = f"{platform.python_version()} on {platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return Item("Python", "ok", description)


def _examine_packages(purposes: dict[str, str], state: State) -> Iterator[Item]:
    for name, purpose in purposes.items():
        try:
            installed = version(name)
        except PackageNotFoundError:
            yield Item(name, state, f"not installed; needed for {purpose}", _INSTALL)
            continue
        range_ = _required_ranges().get(name, "")
        if _is_in_range(installed, range_):
            yield Item(name, "ok", installed)
        else:
            yield Item(name, state, f"{installed}, and the course needs {range_} for {purpose}", _INSTALL)


@cache
def _required_ranges() -> dict[str, str]:
    """Return the version ranges that this project requires, by package."""
    try:
        from packaging.requirements import InvalidRequirement, Requirement

        parsed = [Requirement(line) for line in requires("tfcourse") or ()]
    except (ImportError, PackageNotFoundError, InvalidRequirement):
        return {}
    return {requirement.name: str(requirement.specifier) for requirement in parsed}


def _is_in_range(installed: str, range_: str) -> bool:
    if not range_:
        return True
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(range_).contains(installed, prereleases=True)


def _examine_kernel() -> Iterator[Item]:
    if importlib.util.find_spec("jupyter_client") is None:
        return
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    try:
        spec = KernelSpecManager().get_kernel_spec("python3")
    except NoSuchKernel:
        yield Item("kernel", "missing", "Jupyter finds no kernel python3", "python -m ipykernel install --sys-prefix")
        return
    yield Item("kernel", "ok", f"python3 in {spec.resource_dir}")


def _examine_devices() -> Iterator[Item]:
    if importlib.util.find_spec("torch") is None:
        return
    import torch

    yield Item("CPU threads", "ok", f"{torch.get_num_threads()} for torch")
    if torch.cuda.is_available():
        names = ", ".join(torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count()))
        yield Item("CUDA", "ok", names)
    else:
        why = "torch is built without CUDA" if torch.version.cuda is None else "no device found"
        yield Item("CUDA", "note", f"none ({why}); device mistakes are still found, on the meta device")


def _examine_browser() -> Item:
    path = shutil.which("chromium")
    if path:
        return Item("chromium", "ok", path)
    return Item("chromium", "note", "not found; only the browser tests need it", "apt-get install chromium")


def _examine_isolation() -> Iterator[Item]:
    from autograder.engine.sandbox.isolation import available_layers, missing_layers
    from autograder.engine.sandbox.settings import isolation_level

    layers, level = available_layers(), isolation_level(available_layers())
    if level == "sandbox":
        yield Item("isolation", "ok", f"sandbox ({len(layers)} layers: {', '.join(layers)})")
        return
    detail = f"{level}; missing: {', '.join(missing_layers())}"
    remedy = "Grade work you do not trust on a Linux machine, or in a container, that allows user namespaces: docs/threat-model.md"
    yield Item("isolation", "note", detail, remedy)


def _examine_course(course_dir: Path) -> Iterator[Item]:
    if (course_dir / CONFIG_NAME).is_file():
        yield _examine_folder(course_dir.resolve())
        if os.name == "posix" and course_dir.stat().st_mode & 0o007:
            detail = "others on this machine can read grades, names and the secret seed"
            yield Item("course privacy", "note", detail, shlex.join(["chmod", "700", str(course_dir.resolve())]))
        copies = [path.relative_to(course_dir).as_posix() for path in sorted(course_dir.rglob("*[cC]onflict*"))]
        if copies:
            remedy = "A synchronized folder has two versions of these files. Compare them, and keep one of each."
            yield Item("conflict copies", "note", list_first(copies), remedy)
        yield _examine_gradebook(course_dir)
    else:
        command = shell_command(Course(course_dir.resolve()), "assign", "CHAPTER")
        yield Item("course", "note", f"no course in {course_dir}", f"{command} makes one.")


def _examine_folder(root: Path) -> Item:
    """Examine whether a course folder is writable, and its free space."""
    name = "course folder"
    try:
        require_writable(root, "Check who may write there, or name another course folder with --course.")
    except CourseError as error:
        return Item(name, "missing", str(CourseError(error.what, where=error.where)), error.do)
    free = shutil.disk_usage(root).free
    size = f"{free / (1 << 30):.1f} GiB" if free >= MUCH_SPACE else f"{free >> 20} MiB"
    detail = f"{size} free ({root})"
    if free >= MUCH_SPACE:
        return Item(name, "ok", detail)
    remedy = "Free some space on that disk, or move the course folder to another."
    return Item(name, "note" if free >= NO_SPACE else "missing", detail, remedy)


def _examine_gradebook(course_dir: Path) -> Item:
    try:
        return Item("gradebook", "ok", _describe_gradebook(Course.open(course_dir)))
    except Exception as error:
        reported = as_course_error(error)
        if reported is None:
            raise
        return Item("gradebook", "missing", str(CourseError(reported.what, where=reported.where)), reported.do)


def _describe_gradebook(course: Course) -> str:
    from autograder.course.course_rules import drop_vivas
    from autograder.course.gradebook.reader import open_gradebook

    with open_gradebook(course) as gradebook:
        chapters = drop_vivas([assignment.name for assignment in gradebook.assignments])
        counts = f"{_count_text(len(chapters), 'chapter')}, {_count_text(len(gradebook.students), 'student')}"
    return f"{counts} ({course.root})"


def _count_text(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
