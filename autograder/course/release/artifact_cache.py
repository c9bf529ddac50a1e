"""Cache finished student wheels and notebooks under a hash of their inputs.

The cache is below the project's ``.cache`` and can be deleted at any time. Two commands may use it at once: a file appears whole or not
at all, and its name depends on its inputs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from autograder.atomic_files import write_atomically
from autograder.content_hash import environment_hash, hash_files, project_files

_FOLDER = Path(".cache", "artifacts")
# The number of versions of a file to keep: enough to switch between branches.
_KEPT = 3
_CODE = ("tfcourse", "autograder")
_SETTINGS = ("pyproject.toml", "_config.yml", "LICENSE", "LICENSE-CONTENT")


def code_hash(root: Path) -> str:
    """Hash the course's code, its settings and the environment, which decide every student wheel."""
    code = [path for path in project_files(root) if path.relative_to(root).parts[0] in _CODE]
    return f"{hash_files(root, [*code, *(root / name for name in _SETTINGS)])} {environment_hash()}"


def cached_artifact(root: Path, name: str, key: Iterable[str], make: Callable[[], bytes]) -> bytes:
    """Return a file's content from the cache, or make it.

    Args:
        name: the file's name, such as ``wheel-ch03``; a name has few versions.
        key: everything that decides the content.
        make: makes it.
    """
    digest = hashlib.sha256("\n".join(key).encode()).hexdigest()[:24]
    path = root / _FOLDER / f"{name}-{digest}"
    with suppress(OSError):
        content = path.read_bytes()
        path.touch()
        return content
    content = make()
    # A read-only cache is no error.
    with suppress(OSError):
        write_atomically(path, content, durable=False)
        _prune(path.parent, name)
    return content


def _prune(folder: Path, name: str) -> None:
    versions = [path for path in folder.glob(f"{name}-*") if path.name.rpartition("-")[0] == name]
    for old in sorted(versions, key=lambda path: path.stat().st_mtime, reverse=True)[_KEPT:]:
        old.unlink(missing_ok=True)
