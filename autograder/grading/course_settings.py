"""Read how a course wants its submissions to be run: settings, seed, and the student's package."""

from __future__ import annotations

import re
from dataclasses import replace

from traitlets.config import Config

from autograder.checks_version import checks_hash
from autograder.course.folder import Course
from autograder.course.paths import shell_command
from autograder.engine.interface import Execution
from autograder.engine.jupyter.kernel_execute import KernelExecute
from autograder.engine.settings import GradingSettings, limits_of
from autograder.errors import CourseError
from autograder.record.provenance import Provenance, environment, package_hash
from autograder.submission.manifest import Manifest


def configured_settings(course: Course) -> GradingSettings:
    """Return the limits that the course's ``nbgrader_config.py`` sets, by ``c.GradingLimits`` or by nbgrader's own names for them."""
    return settings_of(course.config())


def settings_of(config: Config) -> GradingSettings:
    """Return the limits that an nbgrader configuration sets."""
    settings = limits_of(config)
    kernel = KernelExecute(config=config)
    named_by_nbgrader = {
        "cell_seconds": kernel.timeout,
        "submission_seconds": kernel.submission_timeout,
        "kept_output": kernel.kept_output,
        "flood_output": kernel.flood_output,
        "restarts": kernel.restarts,
    }
    if "seed" in config.get("KernelExecute", {}):
        named_by_nbgrader["seed"] = kernel.seed
    if any("timeout" in config.get(section, {}) for section in ("Execute", "KernelExecute")):
        # To nbgrader a test cell is a cell like any other; no limit for one leaves that for all of them.
        seconds = kernel.timeout if kernel.timeout and kernel.timeout > 0 else kernel.submission_timeout
        named_by_nbgrader |= {"cell_seconds": seconds, "exercise_seconds": seconds}
    chosen = config.get("GradingLimits", {})
    return replace(settings, **{name: value for name, value in named_by_nbgrader.items() if name not in chosen})


def with_seed(course: Course, settings: GradingSettings) -> GradingSettings:
    """Return settings that name a seed: where they do not, the course's secret one."""
    return settings if settings.seed is not None else replace(settings, seed=course.secret_seed())


def as_released(course: Course, chapter: str, settings: GradingSettings) -> GradingSettings:
    """Return settings with what a course and its release of a chapter bring: the seed, and the package that students have."""
    return replace(with_seed(course, settings), package=student_package(course, chapter))


def student_package(course: Course, chapter: str) -> str:
    """Return the wheel that the students of a released chapter have, or an empty text where they have none."""
    return next((str(path) for path in sorted(course.folder("student", chapter=chapter).glob("*.whl"))), "")


def require_student_package(course: Course, manifest: Manifest) -> None:
    """Refuse to grade what can find no package: the course's own is not for students' code."""
    cells = (cell.source for cell in manifest.cells if cell.locked and cell.cell_type == "code")
    if any(
        re.search(r"^\s*(?:from|import)\s+tfcourse\b", source, re.MULTILINE) for source in cells
    ) and not student_package(course, manifest.chapter):
        raise CourseError(
            f"the students' package of {manifest.chapter} is missing: their code would not find tfcourse",
            where=course.folder("student", chapter=manifest.chapter),
            do=f"Make it again: {shell_command(course, 'assign', manifest.chapter)}",
        )


def provenance(settings: GradingSettings) -> Provenance:
    """Return what a grade is made with on this machine, but for the isolation of the process that runs it."""
    return Provenance(checks_hash(), package_hash(settings.package), environment(), settings.limits())


def made_by(base: Provenance, execution: Execution, *, ran: bool) -> Provenance:
    """Return what a grade was made with; where nothing could be run, nothing had to be shut in."""
    return replace(base, isolation=execution.isolation, layers=execution.layers) if ran else base
