"""Derive the sandbox settings from the grading settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from autograder.engine.environment import kernel_environment
from autograder.engine.sandbox.lockdown import Limits
from autograder.engine.sandbox.settings import SandboxSettings
from autograder.engine.settings import GradingSettings


def engine_settings(settings: GradingSettings, packages: str = "") -> SandboxSettings:
    """Return the sandbox settings for grading settings.

    Args:
        settings: the course's limits, device and seed.
        packages: the folder of the student builds.
    """
    limits = Limits(
        memory_mb=settings.memory_mb,
        cpu_seconds=settings.submission_cpu_seconds,
        processes=settings.processes,
        scratch_mb=settings.scratch_mb,
    )
    return SandboxSettings(
        packages=packages,
        isolation=settings.isolation,
        limits=limits,
        device=settings.device,
        seed=settings.student_seed,
    )


def student_environment(settings: GradingSettings, folder: Path) -> Mapping[str, str]:
    """Return the environment variables of a student's process; ``folder`` is the zygote's own folder."""
    return kernel_environment(folder, device=settings.device, seed=settings.student_seed)
