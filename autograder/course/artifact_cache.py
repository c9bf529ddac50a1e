"""Cache expensive files, such as student wheels, recordings and measurements, under a hash of their inputs.

The cache is below the project's ``.cache`` and can be deleted at any time. Two commands may use it at once: a file appears whole or not
at all, and its name depends on its inputs.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from autograder.atomic_files import staged_file
from autograder.content_hash import environment_hash, hash_files, project_files

FOLDER = Path(".cache", "artifacts")
# The number of versions of a file to keep: enough to switch between branches.
KEPT = 4
_CODE = ("tfcourse", "autograder")
_SETTINGS = ("pyproject.toml", "_config.yml", "LICENSE", "LICENSE-CONTENT")


def code_hash(root: Path) -> str:
    """Hash the course's code, its settings and the environment, which together determine every student wheel."""
    code = [path for path in project_files(root) if path.relative_to(root).parts[0] in _CODE]
    return f"{hash_files(root, [*code, *(root / name for name in _SETTINGS)])} {environment_hash()}"


def cached_artifact(root: Path, name: str, key: Sequence[str], make: Callable[[], bytes]) -> bytes:
    """Return a file's content from the cache, or make and cache it.

    Args:
        name: the file's name, such as ``wheel-ch03``; a name has few versions.
        key: everything that decides the content.
    """
    content = read_artifact(root, name, key)
    if content is None:
        content = make()
        write_artifact(root, name, key, content)
    return content


def read_artifact(root: Path, name: str, key: Sequence[str]) -> bytes | None:
    """Return a file's content from the cache; None if it is not cached."""
    path = _cache_path(root, name, key)
    with suppress(OSError):
        content = path.read_bytes()
        path.touch()
        return content
    return None


def write_artifact(root: Path, name: str, key: Sequence[str], content: bytes) -> None:
    """Write a file to the cache, and delete its oldest versions. A read-only cache is ignored."""
    path = _cache_path(root, name, key)
    # Each process has a draft of its own.
    draft = path.with_name(f"{path.name}.{os.getpid()}.part")
    with suppress(OSError):
        with staged_file(path, content, at=draft, durable=False):
            draft.replace(path)
        delete_oldest(path for path in path.parent.glob(f"{name}-*") if path.name.rpartition("-")[0] == name)


def delete_oldest(versions: Iterable[Path]) -> None:
    """Delete all but the most recently used of some files or folders."""
    for old in sorted(versions, key=lambda path: path.stat().st_mtime, reverse=True)[KEPT:]:
        shutil.rmtree(old) if old.is_dir() else old.unlink(missing_ok=True)


def key_digest(key: Sequence[str]) -> str:
    """Return a short hash of the inputs that determine a content."""
    return hashlib.sha256("\n".join(key).encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _cache_path(root: Path, name: str, key: Sequence[str]) -> Path:
    return root / FOLDER / f"{name}-{key_digest(key)}"
