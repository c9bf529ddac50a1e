"""What this machine has, what it lacks, and how to get it."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from autograder.course import CONFIG_NAME, Course
from autograder.errors import CourseError

State = Literal["ok", "note", "missing"]

_NEEDED = {
    "torch": "the reference and the checks",
    "numpy": "the reference and the checks",
    "safetensors": "recorded checks",
    "nbgrader": "assigning and grading",
    "jupyter-book": "the site",
    "jupytext": "reading chapters",
    "nbclient": "running notebooks",
    "sphinx-mathjax-offline": "formulas without a network",
}
_FOR_TESTS = {
    "pytest": "the tests",
    "hypothesis": "the tests",
    "transformers": "the oracles of the tests",
    "playwright": "the browser tests",
}


@dataclass(frozen=True)
class Item:
    """One thing that was looked at.

    Attributes:
        name: what it is.
        state: ``"ok"``; ``"note"``: works, but read this; ``"missing"``: some command cannot work without it.
        detail: what was found.
        remedy: how to get it, where something is missing.
    """

    name: str
    state: State
    detail: str
    remedy: str = ""


def examine(course_dir: Path) -> list[Item]:
    """Look at the machine and at a course folder and return what was found, in a fixed order."""
    return [
        _python(),
        *_packages(_NEEDED, "missing"),
        *_packages(_FOR_TESTS, "note"),
        *_devices(),
        _browser(),
        *_isolation(),
        _course(course_dir),
    ]


def _python() -> Item:
    found = f"{platform.python_version()} on {platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return Item("Python", "ok", found)


def _packages(wanted: dict[str, str], state: State) -> Iterator[Item]:
    for name, purpose in wanted.items():
        try:
            yield Item(name, "ok", version(name))
        except PackageNotFoundError:
            yield Item(name, state, f"not installed; needed for {purpose}", "pip install -r requirements.lock")


def _devices() -> Iterator[Item]:
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


def _browser() -> Item:
    found = shutil.which("chromium")
    if found:
        return Item("chromium", "ok", found)
    return Item("chromium", "note", "not found; only the browser tests need it", "apt-get install chromium")


def _isolation() -> Iterator[Item]:
    yield Item(
        "isolation",
        "note",
        "none: submissions run as you, in ordinary kernels",
        "Grade work you do not trust in a container or virtual machine without a network.",
    )
    landlock = Path("/sys/kernel/security/lsm")
    if platform.system() == "Linux" and landlock.is_file():
        with_landlock = "landlock" in landlock.read_text(encoding="utf-8", errors="replace").split(",")
        yield Item("Landlock", "note", "available" if with_landlock else "not enabled in this kernel")


def _course(course_dir: Path) -> Item:
    if not (course_dir / CONFIG_NAME).is_file():
        return Item("course", "note", f"no course in {course_dir}", "tfcourse assign CHAPTER makes one.")
    try:
        course = Course.open(course_dir)
    except CourseError as error:
        return Item("course", "missing", str(error), error.do)
    return Item("gradebook", *_gradebook(course))


def _gradebook(course: Course) -> tuple[State, str, str]:
    from nbgrader.api import Gradebook

    try:
        with Gradebook(course.gradebook_url) as gradebook:
            found = (
                f"{len(gradebook.assignments)} assignments, {len(gradebook.students)} students ({course.gradebook_url})"
            )
    except Exception as error:
        # Whatever the database layer raises, the lecturer's question is the same: can it be opened?
        remedy = "Check db_url in nbgrader_config.py and the file's permissions."
        return "missing", f"{course.gradebook_url} cannot be opened: {error}", remedy
    return "ok", found, ""
