"""Cache measures on this machine by a key of their inputs, in a folder that may be deleted at any time.

Two commands may write at once: a file is written under a temporary name and renamed, and both write the same.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from autograder.atomic_files import staged_file
from tools.quality.measure import Measures, Survivor

FOLDER = Path(".cache", "mutants")
_KEPT_DAYS = 30


def read(name: str, key: str) -> Measures | None:
    """Return the cached measures of an exercise under a key, or None."""
    path = _path(name, key)
    try:
        measures = from_dict(json.loads(path.read_text(encoding="utf-8")))
        os.utime(path)  # recently used files stay
    except (OSError, ValueError, KeyError, TypeError):  # just deleted, or from another version
        return None
    return measures


def write(name: str, key: str, measures: Measures) -> None:
    """Write the measures of an exercise to the cache."""
    path = _path(name, key)
    data = json.dumps(to_dict(measures)).encode()
    with staged_file(path, data, at=path.with_name(f"{path.name}.{os.getpid()}.part"), durable=False) as draft:
        draft.replace(path)


def prune() -> None:
    """Delete measures that were not used for a month."""
    oldest = time.time() - _KEPT_DAYS * 86_400
    for path in FOLDER.glob("*.json*"):
        try:
            if path.stat().st_mtime < oldest:
                path.unlink()
        except FileNotFoundError:
            continue


def to_dict(measures: Measures) -> dict[str, Any]:
    """Return measures as plain data."""
    return asdict(measures)


def from_dict(data: dict[str, Any]) -> Measures:
    """Return measures from plain data.

    Raises:
        KeyError, TypeError: if it is something else.
    """
    survivors = tuple(Survivor(**item) for item in data["survivors"])
    return Measures(int(data["mutants"]), survivors, int(data["branches"]), tuple(data["missed"]))


def _path(name: str, key: str) -> Path:
    return FOLDER / f"{name}-{key}.json"
