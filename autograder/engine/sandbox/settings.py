"""Define the sandbox settings that every process of the engine receives, and the levels of isolation.

Protects against:

- processes of one engine that disagree about limits or layers

Does not protect against:

- weak settings: the lecturer chooses limits and level; ``isolation.py`` compares the level with the active layers
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from autograder.engine.sandbox.lockdown import LAYERS, RESTRICTIONS, Limits

# Modules that students' notebooks import, and modules that slow down the first call of a check.
PRELOAD = ("torch", "torch.nn.functional", "torch.testing", "numpy", "numpy.testing", "matplotlib.pyplot")

LEVELS = ("sandbox", "restricted", "none")


@dataclass(frozen=True)
class SandboxSettings:
    """Settings of the sandbox in which student code runs."""

    # modules that the zygote imports before it forks. Modules that are not installed are skipped.
    preload: tuple[str, ...] = PRELOAD
    # the folder of the student build, first on the path; empty for none. It may also be a folder of such folders, of which
    # :meth:`~autograder.engine.checker.zygote_client.ZygoteClient.enter` chooses one.
    packages: str = ""
    hidden: tuple[str, ...] = ("tfcourse", "autograder")  # names of the grader's packages that students must not see
    # the lowest accepted level: ``"sandbox"`` (every layer), ``"restricted"`` (no namespaces) or ``"none"``
    isolation: str = "sandbox"
    limits: Limits = field(default_factory=Limits)  # resource limits of a sandboxed process tree
    # ``"cpu"``, ``"cuda"`` or another accelerator of PyTorch's; for CUDA the NVIDIA devices are passed in
    device: str = "cpu"
    seed: int = 0  # seeds random generators and string hashes of student code

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SandboxSettings:
        """Parse the data that :meth:`to_dict` returned; missing settings have their defaults.

        Raises:
            TypeError: if a name is not a setting.
        """
        plain = dict(data)
        limits = Limits(**plain.pop("limits", {}))
        for name in ("preload", "hidden"):
            if name in plain:
                plain[name] = tuple(plain[name])
        return cls(**plain, limits=limits)


def isolation_level(layers: tuple[str, ...]) -> str:
    """Return the level of isolation that a set of active layers provides."""
    if set(LAYERS) <= set(layers):
        return "sandbox"
    return "restricted" if set(RESTRICTIONS) <= set(layers) else "none"


def is_at_least(level: str, required: str) -> bool:
    """Return whether a level of isolation is at least the required one."""
    return LEVELS.index(level) <= LEVELS.index(required)
