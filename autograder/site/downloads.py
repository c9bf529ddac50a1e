"""Publish students' files on the site, under ``_downloads/<chapter>/``."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

FOLDER = "_downloads"
_SOLUTION_MARKERS = ("BEGIN SOLUTION", "BEGIN HIDDEN TESTS")


def check_downloads(downloads: Mapping[str, Sequence[Path]], chapters: Sequence[str]) -> list[str]:
    """Return the faults of files to publish, as sentences; empty if they are fit to publish.

    A notebook that still carries nbgrader's solution or hidden-test markers is the instructor's, not the students': publishing it by a
    slip of the path would give the chapter away.
    """
    faults = []
    for chapter, files in downloads.items():
        if chapter not in chapters:
            faults.append(f"there is no chapter {chapter!r} in this course; it has {', '.join(chapters) or 'none'}")
        for file in files:
            if not file.is_file():
                faults.append(f"{file} (offered with {chapter}) does not exist")
            elif file.suffix == ".ipynb":
                faults.extend(_notebook_faults(file))
    return faults


def download_links(downloads: Mapping[str, Sequence[str]], chapter: str) -> list[tuple[str, str]]:
    """Return a chapter's downloads as (file name, site address) pairs: pages, then notebooks, then other files."""
    names = [Path(file).name for file in downloads.get(chapter, ())]
    return [
        (name, f"{FOLDER}/{chapter}/{quote(name)}")
        for name in sorted(names, key=lambda name: (not name.endswith(".html"), not name.endswith(".ipynb"), name))
    ]


def copy_downloads(downloads: Mapping[str, Sequence[Path]], site: Path) -> list[Path]:
    """Copy the files into a built site and return the copies' paths."""
    copied = []
    for chapter, files in downloads.items():
        folder = site / FOLDER / chapter
        folder.mkdir(parents=True, exist_ok=True)
        copied += [Path(shutil.copyfile(file, folder / file.name)) for file in files]
    return copied


def _notebook_faults(file: Path) -> list[str]:
    try:
        notebook: Any = json.loads(file.read_text(encoding="utf-8"))
        sources = ["".join(cell["source"]) for cell in notebook["cells"]]
    except (ValueError, KeyError, TypeError) as error:
        return [f"{file} is not a notebook: {error}"]
    markers = [marker for marker in _SOLUTION_MARKERS if any(marker in source for source in sources)]
    return [f"{file} carries {marker!r}: it is an instructor's notebook, release it first" for marker in markers]
