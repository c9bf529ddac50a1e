"""Read the grading settings of a course: limits, seed, and the student package."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from traitlets.config import Config

from autograder.checks_version import checks_hash
from autograder.course.folder import Course
from autograder.course.paths import shell_command
from autograder.engine.settings import GradingSettings, read_limits
from autograder.engine.workers.executor import WorkerPool
from autograder.errors import CourseError
from autograder.grading.record.provenance import Provenance, environment, package_hash
from autograder.intake.notebook.manifest import Manifest


def configured_settings(course: Course) -> GradingSettings:
    """Return the limits in the course's ``nbgrader_config.py``: ``c.GradingLimits``, or nbgrader's own settings."""
    return settings_from_config(course.config())


def settings_from_config(config: Config) -> GradingSettings:
    """Return the grading limits that an nbgrader configuration sets."""
    settings, named = read_limits(config), dict[str, Any]()
    for section, limits in (
        ("ExecutePreprocessor", ["cell_seconds"]),
        ("Execute", ["cell_seconds", "exercise_seconds"]),
    ):
        if "timeout" in config.get(section, {}):
            seconds = config[section].timeout
            # nbgrader has one limit for all cells, and None or -1 for none.
            named |= dict.fromkeys(limits, seconds if seconds and seconds > 0 else settings.submission_seconds)
    chosen = config.get("GradingLimits", {})
    return replace(settings, **{name: value for name, value in named.items() if name not in chosen})


def add_seed(course: Course, settings: GradingSettings) -> GradingSettings:
    """Return the settings with a seed: their own, or the course's secret one."""
    return settings if settings.seed is not None else replace(settings, seed=course.secret_seed())


def settings_for_release(course: Course, chapter: str, settings: GradingSettings) -> GradingSettings:
    """Return the settings with the course's seed and the student package of a released chapter."""
    return replace(add_seed(course, settings), package=student_package(course, chapter))


def student_package(course: Course, chapter: str) -> str:
    """Return the path of a released chapter's student wheel; empty without a wheel."""
    return next((str(path) for path in sorted(course.folder("student", chapter=chapter).glob("*.whl"))), "")


def require_student_package(course: Course, manifest: Manifest) -> None:
    """Refuse to grade a chapter that imports tfcourse without a student package: it would use the course's own."""
    cells = (cell.source for cell in manifest.cells if cell.locked and cell.cell_type == "code")
    if any(
        re.search(r"^\s*(?:from|import)\s+tfcourse\b", source, re.MULTILINE) for source in cells
    ) and not student_package(course, manifest.chapter):
        raise CourseError(
            f"the students' package of {manifest.chapter} is missing: their code would not find tfcourse",
            where=course.folder("student", chapter=manifest.chapter),
            do=f"Make it again: {shell_command(course, 'assign', manifest.chapter)}",
        )


def local_provenance(settings: GradingSettings, workers: WorkerPool | None = None) -> Provenance:
    """Return the provenance of grades made on this machine, without the isolation of the process.

    Args:
        settings: with the students' package.
        workers: workers that can be asked about PyTorch; without them a new process imports it.
    """
    machine = environment(workers.cpu_capability) if workers is not None else environment()
    return Provenance(checks_hash(), package_hash(settings.package), machine, settings.limits())
