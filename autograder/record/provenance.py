"""What a grade was made with: checks, environment, limits and isolation, so that it can be repeated and a change be noticed."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any
from zipfile import ZipFile

from autograder.checks_version import PACKAGES

_DECIDES_NOTHING = ("autograder/checking/stamp.py", ".dist-info/RECORD")


@dataclass(frozen=True)
class Provenance:
    """What a grade was made with, beside the submission and the chapter.

    Attributes:
        checks: hash of the code that decides: the checks, their engine and the reference.
        package: hash of the package that students have of the chapter; empty if they have none.
        environment: versions and machine, by name.
        limits: the limits that held, by name.
        isolation: how well the submission was shut in; empty if nothing was run.
        layers: the layers of isolation that were active.
    """

    checks: str = ""
    package: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, Any] = field(default_factory=dict)
    isolation: str = ""
    layers: tuple[str, ...] = ()

    @property
    def environment_hash(self) -> str:
        """A hash of the environment."""
        return hashlib.sha256(json.dumps(dict(self.environment), sort_keys=True).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return this as plain data, ready for JSON."""
        return {**asdict(self), "layers": list(self.layers), "environment_hash": self.environment_hash}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Provenance:
        """Return what :meth:`to_dict` described."""
        plain = {name: data[name] for name in ("checks", "environment", "limits", "isolation")}
        return cls(**plain, package=data.get("package", ""), layers=tuple(data["layers"]))

    def differences(self, other: Provenance) -> list[str]:
        """Return what another provenance has differently, as sentences; nothing if it is the same."""
        changes = []
        if self.checks != other.checks:
            changes.append("The checks or the reference have changed.")
        if self.package != other.package:
            changes.append("The package that students have has changed.")
        changes += _changes("environment", self.environment, other.environment)
        changes += _changes("limit", self.limits, other.limits)
        if (self.isolation, self.layers) != (other.isolation, other.layers):
            changes.append(f"Isolation was {describe_isolation(self)}, it is {describe_isolation(other)}.")
        return changes


def _changes(kind: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    names = sorted({*before, *after})
    return [
        f"The {kind} {name} was {before.get(name, 'absent')}, it is {after.get(name, 'absent')}."
        for name in names
        if before.get(name) != after.get(name)
    ]


def describe_isolation(provenance: Provenance) -> str:
    """Return how well a submission was shut in, as a phrase."""
    if not provenance.layers:
        return provenance.isolation or "unknown"
    if provenance.isolation == "sandbox":
        return f"sandbox ({len(provenance.layers)} layers)"
    return f"{provenance.isolation} ({', '.join(provenance.layers)})"


def isolation_line(provenances: Iterable[Provenance]) -> str:
    """Return one line on the isolation of the submissions that were run, or nothing if none was."""
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


def changed_since(older: Sequence[Provenance], now: Provenance, again: str) -> str:
    """Return that kept grades were made by other checks or in another environment, as a sentence, or nothing.

    Args:
        older: what the grades were made with that are not made again.
        now: what a grade would be made with.
        again: the command that makes them again.
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
    """Return a hash of what a wheel installs that may decide a grade, which is the same whenever it was built; empty for no wheel.

    What the package was told about the release and the course's site decides none, nor does the list of its files with their hashes.
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


def environment() -> dict[str, str]:
    """Return what of this machine may decide a grade: versions, platform, and the processor as PyTorch uses it."""
    versions = {"python": platform.python_version(), "platform": f"{platform.system()} {platform.machine()}"}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "absent"
    versions["cpu capability"] = _cpu_capability()
    return versions


@cache
def _cpu_capability() -> str:
    """Ask PyTorch in a process of its own: the one that keeps the gradebook stays free of it."""
    question = "import torch; print(torch.backends.cpu.get_cpu_capability())"
    process = subprocess.run([sys.executable, "-c", question], capture_output=True, text=True, check=False)
    return process.stdout.strip() or "unknown"
