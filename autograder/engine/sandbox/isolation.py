"""Determine the isolation that this machine offers, and refuse to grade with less than the settings require.

Protects against:

- grading without a sandbox by accident: each layer is tried on this machine before the first submission runs

Does not protect against:

- ``allow_weaker`` (``--allow-weaker-isolation``), with which the lecturer accepts less
- a layer that starts and does not hold, such as a hole in the kernel
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from functools import cache

from autograder.engine.sandbox.linux import is_supported_linux
from autograder.engine.sandbox.lockdown import LAYERS
from autograder.engine.sandbox.settings import is_at_least, isolation_level
from autograder.engine.settings import ISOLATION, GradingSettings
from autograder.errors import CourseError


@cache
def available_layers() -> tuple[str, ...]:
    """Try all isolation layers in a subprocess, and return the available ones."""
    if not is_supported_linux():
        return ()
    probe = subprocess.run(
        [sys.executable, "-P", "-m", "autograder.engine.sandbox.lockdown"], capture_output=True, text=True, check=False
    )
    try:
        return tuple(json.loads(probe.stdout))
    except ValueError:
        return ()


def missing_layers() -> tuple[str, ...]:
    """Return the isolation layers that this machine does not offer."""
    return tuple(layer for layer in LAYERS if layer not in available_layers())


def with_available_isolation(settings: GradingSettings) -> GradingSettings:
    """Return the settings with the isolation that this machine offers, if they allow a lower one.

    Raises:
        CourseError: if the machine offers less than the settings require, and they do not allow less.
    """
    if not is_supported_linux():
        settings = replace(settings, warm=False)
    available = isolation_level(available_layers())
    if settings.warm and is_at_least(available, settings.isolation):
        return settings
    if settings.isolation == "none" or settings.allow_weaker:
        level = available if settings.warm else "none"
        return replace(settings, isolation=next(item for item in ISOLATION if item == level))
    raise CourseError(
        f"isolation {settings.isolation!r} is required, but this machine does not offer {', '.join(missing_layers())}",
        do="Grade on a Linux machine that allows user namespaces (see docs/threat-model.md), or, for work that you trust, "
        "use --allow-weaker-isolation "
        "(c.GradingLimits.allow_weaker = True).",
    )
