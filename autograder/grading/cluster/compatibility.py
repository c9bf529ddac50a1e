"""Check that a worker has the same software as this machine, so that the recorded provenance of its grades is true."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from autograder.checks_version import PACKAGES, checks_hash
from autograder.engine.settings import GradingSettings, is_device_available
from autograder.errors import CourseError

# Names of what is described, beside the packages.
PYTHON, CHECKS, LAYERS, CUDA = "Python", "the code of checks and reference", "layers", "cuda"
_SHOWN = 5


async def describe_machine(device: str) -> dict[str, Any]:
    """Describe this machine's software, isolation layers and device. Parts take a second, so a thread does it.

    Args:
        device: where the checks put their tensors.
    """
    return await asyncio.to_thread(_describe, device)


def _describe(device: str) -> dict[str, Any]:
    # What a scheduler needs not: it runs nothing of a student's.
    from autograder.engine.sandbox.isolation import available_layers

    return {**software_versions(), LAYERS: list(available_layers()), CUDA: is_device_available(device)}


def software_versions() -> dict[str, str]:
    """Return the versions of Python and all packages that may decide a grade, and a hash of the checks."""
    return {
        PYTHON: platform.python_version(),
        **{name: _installed_version(name) for name in PACKAGES},
        CHECKS: checks_hash(),
    }


def _installed_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


def list_incompatibilities(settings: GradingSettings, described: object, threads: int = 1) -> list[str]:
    """Return the reasons why a worker must not grade, as phrases; empty if it may.

    Args:
        settings: the requested settings.
        described: what :func:`describe_machine` returned there, or the exception that it ended in.
        threads: how many submissions that worker would run at once.
    """
    if not isinstance(described, Mapping):
        return [f"it has no tfcourse, or another one ({type(described).__name__}: {described})"]
    reasons = list_software_differences(described)
    if threads != 1:
        reasons.append(f"it has {threads} threads where one is needed (start it with --nthreads 1)")
    if not described[CUDA]:
        reasons.append("it has no CUDA device")
    if (weak := _isolation_problem(settings, tuple(described[LAYERS]))) and not reasons:
        reasons.append(weak)
    return reasons


def list_software_differences(described: Mapping[str, Any]) -> list[str]:
    """Return the differences between a machine's software and this machine's, as phrases."""
    reasons = []
    for name, ours in software_versions().items():
        remote = described.get(name, "absent")
        if remote != ours:
            reasons.append(f"{name} differs" if name == CHECKS else f"{name} is {remote} there and {ours} here")
    return reasons


def _isolation_problem(settings: GradingSettings, layers: tuple[str, ...]) -> str:
    from autograder.engine.sandbox.lockdown import LAYERS as ALL
    from autograder.engine.sandbox.settings import is_at_least, isolation_level

    if settings.allow_weaker or is_at_least(isolation_level(layers), settings.isolation):
        return ""
    missing = ", ".join(layer for layer in ALL if layer not in layers)
    return f"isolation {settings.isolation!r} is required, but it does not offer {missing} (see docs/scale.md)"


def refuse_incompatible(reasons: Mapping[str, list[str]]) -> None:
    """Raise an error if any machine is incompatible, with each such machine and the reasons.

    Args:
        reasons: for each address, why it is incompatible; empty if it is compatible.

    Raises:
        CourseError: if any machine is incompatible.
    """
    named = [f"{address}: {'; '.join(why)}" for address, why in reasons.items() if why]
    if named:
        more = [f"and {len(named) - _SHOWN} more"] if len(named) > _SHOWN else []
        raise CourseError(
            "\n  ".join(
                ["not every machine is as this one is, so grades would not be the same", *named[:_SHOWN], *more]
            ),
            do="Give scheduler, workers and this machine one environment: the same image, or pip install from requirements.lock.",
        )
