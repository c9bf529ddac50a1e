"""Locate the cache of executed lessons under a hash of all inputs that may change their outputs.

jupyter-cache keys an executed notebook by its kernel and its code cells, and ignores the package that the cells import: a corrected
``tfcourse`` would still show its old figures. Each state of the package therefore gets its own cache.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from autograder.content_hash import environment_hash, hash_files
from autograder.course.artifact_cache import delete_oldest, key_digest
from autograder.course.lock import lock_folder

SOURCES = ("tfcourse",)
"""Folders whose Python files a lesson runs. A lesson that shows verdicts needs ``autograder/checking`` and ``autograder/checks`` too."""

EXECUTIONS = Path(".cache", "site", "execution")
"""Where the outputs of lessons are kept, below the course's root: what one command has executed another need not."""


def execution_cache_path(root: Path, base: Path, sources: Iterable[str] = SOURCES) -> Path:
    """Return the cache folder for the current state of the course's package and environment.

    Args:
        sources: folders below ``root`` whose ``*.py`` files count; one that does not exist counts as empty.
    """
    modules = [path for source in sources for path in (root / source).rglob("*.py")]
    return base / key_digest([hash_files(root, modules), environment_hash()])


def open_execution_cache(path: Path) -> Any:
    """Open a cache of executed notebooks, under a lock because jupyter-cache creates its tables unsafely.

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
    """Wait until no other process writes to a cache below ``base``, which includes the slides' cache."""
    base.mkdir(parents=True, exist_ok=True)
    handle = lock_folder(base, wait=True)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def prune_execution_caches(current: Path) -> None:
    """Delete all but the most recently used caches next to the current one, which is marked as used."""
    if current.is_dir():
        current.touch()
        delete_oldest(path for path in current.parent.iterdir() if path.is_dir())
