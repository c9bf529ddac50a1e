"""Locate the cache of executed lessons under a hash of everything that could change their outputs.

jupyter-cache keys an executed notebook by its kernel and its code cells, and ignores the package that the cells import: a corrected
``tfcourse`` would still show its old figures. Each state of the package therefore gets its own cache.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from autograder.content_hash import hash_files

SOURCES = ("tfcourse",)
"""Folders whose Python files a lesson runs. A lesson that shows verdicts needs ``autograder/checking`` and ``autograder/checks`` too."""

EXECUTIONS = Path(".cache", "site", "execution")
"""Where the outputs of lessons are kept, below the course's root: what one command has executed another need not."""

VERSIONS = ("torch", "numpy", "matplotlib", "ipykernel", "nbclient")
"""Packages whose version may change what a cell prints or draws."""

KEPT = 4
"""How many states of the package keep their outputs: enough to switch between branches without running the lessons again."""


def source_fingerprint(root: Path, sources: Iterable[str] = SOURCES, versions: Iterable[str] = VERSIONS) -> str:
    """Return 16 hexadecimal digits that change when a lesson's outputs might.

    Args:
        root: the course's root folder.
        sources: folders below ``root`` whose ``*.py`` files count; one that does not exist counts as empty.
        versions: packages whose installed version counts, beside Python's own.

    Returns:
        The digest. It depends on relative paths and contents, not on the location of ``root`` nor on times.
    """
    modules = [path for source in sources for path in (root / source).rglob("*.py")]
    packages = [f"{name}=={_installed(name)}" for name in sorted(versions)]
    state = "\n".join([hash_files(root, modules), platform.python_version(), *packages])
    return hashlib.sha256(state.encode()).hexdigest()[:16]


def execution_cache_path(root: Path, base: Path, sources: Iterable[str] = SOURCES) -> Path:
    """Return the cache folder for the present state of the course's package."""
    return base / source_fingerprint(root, sources)


def open_execution_cache(path: Path) -> Any:
    """Open a cache of executed notebooks; a new one is complete before another process sees it.

    jupyter-cache creates its database on first use. Two processes that do so at once fail with "table already exists".

    Args:
        path: the cache's folder, as ``execution_cache_path`` returns it.
    """
    from jupyter_cache import get_cache  # late: it brings SQLAlchemy, and an unchanged site needs neither

    with lock_execution_caches(path.parent):
        cache = get_cache(str(path))
        _ = cache.db  # creates the tables
    return cache


@contextmanager
def lock_execution_caches(base: Path) -> Iterator[None]:
    """Wait until no other process writes into a cache below ``base``."""
    try:
        import fcntl
    except ImportError:  # Windows has no such locks
        yield
        return
    base.mkdir(parents=True, exist_ok=True)
    with (base.parent / "lessons.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def prune_execution_caches(base: Path, current: Path, keep: int = KEPT) -> list[Path]:
    """Delete all but the most recently used caches below ``base``; ``current`` stays in any case.

    Args:
        base: the folder of the caches, with a sub-folder per fingerprint.
        current: the cache in use; it is marked as used now.
        keep: how many caches stay, ``current`` among them.

    Returns:
        The folders that were deleted.
    """
    if not base.is_dir():
        return []
    if current.is_dir():
        current.touch()
    others = sorted(
        (path for path in base.iterdir() if path.is_dir() and path != current), key=lambda p: p.stat().st_mtime
    )
    surplus = others[: max(0, len(others) - (keep - 1))]
    for path in surplus:
        shutil.rmtree(path, ignore_errors=True)
    return surplus


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"
