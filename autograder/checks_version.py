"""Determine the version of everything that decides a grade: the checks, their engine and the reference."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tfcourse import __version__

# Whose versions may decide a grade: what runs the student's code, what judges it, and what writes the grade down.
PACKAGES = (
    *("tfcourse", "torch", "numpy", "safetensors", "matplotlib"),
    *("ipython", "ipykernel", "nbclient", "nbformat", "nbconvert", "nbgrader"),
)

_CHECKS = ("autograder.checking", "autograder.checks", "autograder.mistakes", "tfcourse")
# Drawings and figures to play with decide no grade: with them in the hash, a line moved in a drawing would make every stored grade count
# as made by other checks.
_NO_CHECKS = "tfcourse/lessons/"


def checks_hash() -> str:
    """Return the hash of the code that decides a grade: the checks, their engine and the reference."""
    digest = hashlib.sha256()
    for package in _CHECKS:
        root = _package_folder(package)
        for path in sorted(path for path in root.rglob("*") if path.suffix in (".py", ".toml")):
            file, data = f"{package}/{path.relative_to(root).as_posix()}", path.read_bytes()
            if not file.startswith(_NO_CHECKS):
                name = file.encode()
                digest.update(len(name).to_bytes(8, "big") + name + len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


@cache
def checks_stamp() -> str:
    """Return the version of the checks for people: the release and the first digits of the hash."""
    return f"{__version__}+{checks_hash()[:8]}"


def _package_folder(package: str) -> Path:
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent
