"""Hash files and the environment, as keys of cached results."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import distributions
from pathlib import Path

# Folders of a project that nothing is built from: what is hidden, generated, or somebody's course.
_GENERATED = frozenset({"__pycache__", "_build", "build", "dist", "node_modules"})
_COURSE_MARK = "nbgrader_config.py"


def hash_files(root: Path, paths: Iterable[Path]) -> str:
    """Return a hash of the relative paths and contents of files.

    Args:
        root: paths count from here, so a project that is moved keeps its hash.
        paths: the files. One that is missing counts as missing.
    """
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(_prefix_length(path.relative_to(root).as_posix().encode()))
        digest.update(_prefix_length(path.read_bytes()) if path.is_file() else b"missing")
    return digest.hexdigest()


def hash_tree(folder: Path) -> str:
    """Return a hash of all files in a folder and its subfolders."""
    return hash_files(folder, (path for path in folder.rglob("*") if path.is_file()))


def project_files(root: Path) -> Iterator[Path]:
    """Yield the files of a project, except those in hidden, generated or course folders."""
    for folder, names, files in os.walk(root):
        if _COURSE_MARK in files:
            names.clear()
            continue
        names[:] = [
            name
            for name in names
            if name not in _GENERATED and not name.startswith(".") and not name.endswith(".egg-info")
        ]
        yield from (Path(folder) / name for name in files if not name.startswith("."))


@cache
def environment_hash() -> str:
    """Return a hash of Python's version, the platform and every installed package."""
    packages = sorted(f"{item.name}=={item.version}" for item in distributions())
    text = "\n".join([platform.python_version(), platform.platform(), *packages])
    return hashlib.sha256(text.encode()).hexdigest()


def _prefix_length(data: bytes) -> bytes:
    """Prefix the length, so that different lists of files have different hashes."""
    return len(data).to_bytes(8, "big") + data
