"""Describe a grade's provenance (checks, environment, limits, isolation), to reproduce it and to detect changes."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any
from zipfile import ZipFile

from autograder.checks_version import PACKAGES

_DECIDES_NOTHING = ("autograder/checking/stamp.py", ".dist-info/RECORD")


@dataclass(frozen=True)
class Provenance:
    """The provenance of a grade, apart from the submission and the chapter."""

    checks: str = ""  # hash of the code that decides a grade: the checks, their engine and the reference
    package: str = ""  # hash of the chapter's student package; empty without a package
    environment: Mapping[str, str] = field(default_factory=dict)  # versions and machine, by name
    limits: Mapping[str, Any] = field(default_factory=dict)  # the limits, by name
    isolation: str = ""  # the level of isolation; empty if nothing ran
    layers: tuple[str, ...] = ()  # the layers of isolation that were active

    @property
    def environment_hash(self) -> str:
        """A hash of the environment."""
        return hashlib.sha256(json.dumps(dict(self.environment), sort_keys=True).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return the provenance as plain data, ready for JSON."""
        return {**asdict(self), "layers": list(self.layers), "environment_hash": self.environment_hash}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Provenance:
        """Parse the data that :meth:`to_dict` returned."""
        plain = {name: data[name] for name in ("checks", "environment", "limits", "isolation")}
        return cls(**plain, package=data.get("package", ""), layers=tuple(data["layers"]))

    def differences(self, other: Provenance) -> list[str]:
        """Return the differences from another provenance, as sentences."""
        changes = []
        if self.checks != other.checks:
            changes.append("The checks or the reference have changed.")
        if self.package != other.package:
            changes.append("The package that students have has changed.")
        changes += _describe_changes("environment", self.environment, other.environment)
        changes += _describe_changes("limit", self.limits, other.limits)
        if (self.isolation, self.layers) != (other.isolation, other.layers):
            changes.append(f"Isolation was {describe_isolation(self)}, it is {describe_isolation(other)}.")
        return changes


def _describe_changes(kind: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    names = sorted({*before, *after})
    return [
        f"The {kind} {name} was {before.get(name, 'absent')}, it is {after.get(name, 'absent')}."
        for name in names
        if before.get(name) != after.get(name)
    ]


def describe_isolation(provenance: Provenance) -> str:
    """Describe a submission's isolation in a phrase."""
    if not provenance.layers:
        return provenance.isolation or "unknown"
    if provenance.isolation == "sandbox":
        return f"sandbox ({len(provenance.layers)} layers)"
    return f"{provenance.isolation} ({', '.join(provenance.layers)})"


def isolation_line(provenances: Iterable[Provenance]) -> str:
    """Summarise the isolation of executed submissions in a line; empty if none was executed."""
    counts: dict[str, int] = {}
    for one in provenances:
        if one.isolation:
            phrase = describe_isolation(one)
            counts[phrase] = counts.get(phrase, 0) + 1
    if not counts:
        return ""
    if len(counts) == 1:
        return f"isolation: {next(iter(counts))}"
    return "isolation: " + ", ".join(f"{phrase} for {count}" for phrase, count in sorted(counts.items()))


def outdated_message(older: Sequence[Provenance], now: Provenance, again: str) -> str:
    """Return a message if older grades have other checks or another environment; otherwise empty.

    Args:
        older: the provenance of unchanged grades.
        now: the provenance of a new grade.
        again: the command that regrades.
    """
    decided = (now.checks, now.package)
    checks = sum((one.checks, one.package) != decided for one in older)
    others = sum((one.checks, one.package) == decided and one.environment != now.environment for one in older)
    messages = []
    if checks:
        messages.append(f"the checks have changed since {checks} of these were graded: {again}")
    if others:
        messages.append(f"the environment has changed since {others} of these were graded: {again}")
    return "; ".join(messages)


def package_hash(wheel: str) -> str:
    """Hash the files of a student wheel that may decide a grade; empty without a wheel.

    The release stamp, the address of the site, and the list of files with their hashes do not count.
    """
    if not wheel:
        return ""
    digest = hashlib.sha256()
    with ZipFile(wheel) as archive:
        for name in sorted(name for name in archive.namelist() if not name.endswith(_DECIDES_NOTHING)):
            data = archive.read(name)
            digest.update(len(name.encode()).to_bytes(8, "big") + name.encode())
            digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def environment(cpu_capability: Callable[[], str] = lambda: "") -> dict[str, str]:
    """Return the properties of this machine that may decide a grade: versions, platform, PyTorch's CPU capability.

    Args:
        cpu_capability: asks a process that has imported PyTorch; if it returns an empty string, a new process computes it.
    """
    versions = {"python": platform.python_version(), "platform": f"{platform.system()} {platform.machine()}"}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "absent"
    versions["cpu capability"] = cpu_capability() or _cpu_capability()
    return versions


@cache
def _cpu_capability() -> str:
    """Query PyTorch in a separate process: the process with the gradebook must not import it."""
    question = "import torch; print(torch.backends.cpu.get_cpu_capability())"
    process = subprocess.run([sys.executable, "-c", question], capture_output=True, text=True, check=False)
    return process.stdout.strip() or "unknown"
