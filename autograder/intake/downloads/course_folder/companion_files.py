"""Choose the files of a download that lie beside a student's notebook and come along with it: modules, data, pictures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from autograder.intake.downloads.archive import RefusedError
from autograder.intake.downloads.uploads import Upload
from autograder.intake.notebook.attached_files import KIND, MAX_BYTES, MAX_DEPTH, MAX_FILES, is_skipped
from autograder.intake.notebook.problem import Problem

# Canvas counts a file that was handed in again: helpers-1.py.
_AGAIN = re.compile(r"-(\d{1,3})(?=\.[^.]+$)")


def files_beside(notebook: Upload, files: Sequence[Upload]) -> dict[str, Upload]:
    """Return the files that come along with a notebook, by the paths that they get beside it.

    Args:
        notebook: the notebook that counts.
        files: the other files of the same student.
    """
    companions: dict[str, Upload] = {}
    for file in sorted(files, key=lambda upload: upload.order):
        name = _name(notebook, file)
        if name and not any(_is_left_behind(part) for part in PurePosixPath(name).parts):
            companions[name] = file
    return companions


def read_files(companions: Mapping[str, Upload], where: str) -> tuple[dict[str, bytes], list[Problem]]:
    """Read files within the limits on their number, depth and size; return their contents, and what was left out.

    Args:
        companions: the files, by their paths beside the notebook.
        where: the notebook's place in the download.
    """
    contents: dict[str, bytes] = {}
    why: list[str] = []
    remaining = MAX_BYTES
    for name, file in companions.items():
        if len(contents) == MAX_FILES:
            why.append(f"More than {MAX_FILES} files lie beside the notebook; the first {MAX_FILES} came along.")
            break
        if len(PurePosixPath(name).parts) > MAX_DEPTH:
            why.append(f"{name} lies in more than {MAX_DEPTH} folders within each other.")
            continue
        try:
            data = file.entry.open()
        except RefusedError as error:
            why.append(f"{name}: {error}")
            continue
        if len(data) > remaining:
            why.append(f"{name} is left out: the files beside the notebook have more than {MAX_BYTES // 1024**2} MB.")
            continue
        remaining -= len(data)
        contents[name] = data
    return contents, [Problem(KIND, reason, where, "Ask for it, and put it beside the notebook.") for reason in why]


def _name(notebook: Upload, file: Upload) -> str:
    """Return a file's path beside a notebook; empty if it lies elsewhere."""
    folder, path = notebook.entry.path.parent, file.entry.path
    level, called = file.named or (-1, "")
    if level == len(path.parts) - 1:
        # All files of a class lie in one folder, under names that the platform has made.
        return _AGAIN.sub("", called) if path.parent == folder else ""
    if not path.is_relative_to(folder) or (notebook.named and notebook.named[0] == len(notebook.entry.path.parts) - 1):
        return ""
    return path.relative_to(folder).as_posix()


def _is_left_behind(part: str) -> bool:
    return is_skipped(part) or part.startswith(".") or part.lower().endswith((".zip", ".ipynb.json", ".ipynb.txt"))
