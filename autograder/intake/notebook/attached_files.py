"""Collect a notebook's companion files: the assignment's, and others that the student handed in.

Protects against:

- links, devices, sockets and pipes: none is followed or opened;
- folders within folders and files without number: what is looked at is limited in depth and count, and takes time in proportion to it;
- names that are no UTF-8, which neither JSON nor a student's process takes: such a file is left out, and that is told.

Does not protect against:

- a file that is changed while it is read: then its hash is that of what was read.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePath

from autograder.intake.notebook.notebook_reader import open_regular
from autograder.intake.notebook.problem import Problem

MAX_BYTES = 64 * 1024 * 1024
# nbgrader's time to process a graded submission grows with the square of the number of files.
MAX_FILES = 200
# The most files and folders. With more, none counts, because their order depends on the disk.
MAX_SEEN = 10_000
MAX_DEPTH = 32
KIND = "file left out"
# Files that the notebook does not see.
_SKIPPED_SUFFIXES = frozenset({".ipynb"})
_SKIPPED_NAMES = frozenset({"timestamp.txt", ".ipynb_checkpoints", "__pycache__"})


@dataclass(frozen=True)
class CompanionFiles:
    """The files in a notebook's folder."""

    files: dict[str, str]  # the files as text (base64), by their path within the folder
    problems: tuple[Problem, ...] = ()  # what was left out, and why


def read_companion_files(folders: Sequence[Path]) -> CompanionFiles:
    """Read the files in some folders, and report files beyond the limits on size, number and depth.

    Args:
        folders: the folders. Of two files with the same name the later folder's counts, so the course's folder comes last.
    """
    files: dict[str, str] = {}
    why: list[str] = []
    remaining = MAX_BYTES
    for folder in folders:
        if folder.is_symlink() or folder.parent.is_symlink():
            continue
        names, reasons = list_companion_paths(folder)
        why += reasons
        for name in names:
            if len(files) == MAX_FILES:
                why.append(
                    f"More than {MAX_FILES} files lie beside the notebook; it found the first {MAX_FILES} of them."
                )
                break
            with suppress(OSError), open_regular(folder / name) as file:
                if os.fstat(file.fileno()).st_size > remaining:
                    most = f"{MAX_BYTES // 1024**2} MB"
                    why.append(f"The files beside the notebook have more than {most}; it did not find all of them.")
                    continue
                data = file.read(remaining)
                remaining -= len(data)
                files[name] = base64.b64encode(data).decode("ascii")
    return CompanionFiles(files, tuple(Problem(KIND, reason, do="Hand in less.") for reason in dict.fromkeys(why)))


def is_skipped(name: str) -> bool:
    """Return whether a file or folder of this name is not a companion of the notebook."""
    return name in _SKIPPED_NAMES or PurePath(name).suffix.lower() in _SKIPPED_SUFFIXES


def list_companion_paths(folder: Path, skipped: Callable[[str], bool] = is_skipped) -> tuple[list[str], list[str]]:
    """Return the paths of a folder's files, top-level files first, and sentences about files that were left out.

    Args:
        skipped: returns whether to skip a file or folder by its name; by default :func:`is_skipped`.
    """
    paths: list[str] = []
    why: list[str] = []
    count = 0
    waiting = [("", 1)]
    while waiting:
        prefix, depth = waiting.pop()
        files, folders = _list_folder(folder / prefix, MAX_SEEN - count)
        count += len(files) + len(folders)
        if count > MAX_SEEN:
            return [], [f"More than {MAX_SEEN} files and folders lie beside the notebook; it found none of them."]
        # Names that are no UTF-8 hold lone surrogates.
        plain = [name for name in (*files, *folders) if name.encode("utf-8", "ignore").decode() == name]
        if len(plain) < len(files) + len(folders):
            why.append("Files whose names are not UTF-8 lie beside the notebook; it did not find them.")
        admitted = frozenset(name for name in plain if not skipped(name))
        paths += [f"{prefix}{name}" for name in files if name in admitted]
        below = [(f"{prefix}{name}/", depth + 1) for name in reversed(folders) if name in admitted]
        if below and depth == MAX_DEPTH:
            why.append(f"Folders lie beside the notebook more than {MAX_DEPTH} deep; it did not find what is in them.")
        else:
            waiting += below
    return paths, why


def _list_folder(folder: Path, limit: int) -> tuple[list[str], list[str]]:
    """Return the sorted names of a folder's files and subfolders, at most one more than the limit."""
    try:
        with os.scandir(folder) as entries:
            some = list(islice(entries, limit + 1))
        folders = {entry.name for entry in some if entry.is_dir(follow_symlinks=False)}
    except OSError:
        return [], []
    return sorted({entry.name for entry in some} - folders), sorted(folders)
