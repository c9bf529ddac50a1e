"""Define the sandbox settings: one object that every process of the engine receives, and the levels of isolation.

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

# What students' notebooks import, and what makes the first call of a check slow.
PRELOAD = ("torch", "torch.nn.functional", "torch.testing", "numpy", "numpy.testing", "matplotlib.pyplot")

LEVELS = ("sandbox", "restricted", "none")


@dataclass(frozen=True)
class SandboxSettings:
    """How student code is run.

    Attributes:
        preload: modules that the zygote imports before it forks. One that is not installed is left out.
        packages: a folder of packages that students have, put first on the path: the student build. Empty for none. It may also be a folder
            of such folders, of which children have the one that :meth:`~autograder.engine.checker.zygote_client.ZygoteClient.enter` names.
        hidden: names of packages that the grader has and students have not.
        isolation: the least that is accepted: ``"sandbox"`` (every layer), ``"restricted"`` (no namespaces) or ``"none"``.
        limits: what a sandboxed process tree may use.
        device: ``"cpu"``, ``"cuda"`` or another accelerator of PyTorch's; for CUDA the NVIDIA devices are passed in.
        seed: seeds random generators and string hashes of student code.
    """

    preload: tuple[str, ...] = PRELOAD
    packages: str = ""
    hidden: tuple[str, ...] = ("tfcourse", "autograder")
    isolation: str = "sandbox"
    limits: Limits = field(default_factory=Limits)
    device: str = "cpu"
    seed: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SandboxSettings:
        """Return the settings that :meth:`to_dict` described; what is missing has its default.

        Raises:
            TypeError: if there is a name that is no setting.
        """
        plain = dict(data)
        limits = Limits(**plain.pop("limits", {}))
        for name in ("preload", "hidden"):
            if name in plain:
                plain[name] = tuple(plain[name])
        return cls(**plain, limits=limits)


def level_of(layers: tuple[str, ...]) -> str:
    """Return the level that a set of active layers amounts to."""
    if set(LAYERS) <= set(layers):
        return "sandbox"
    return "restricted" if set(RESTRICTIONS) <= set(layers) else "none"


def suffices(level: str, wanted: str) -> bool:
    """Return whether a level is at least the one that is wanted."""
    return LEVELS.index(level) <= LEVELS.index(wanted)
