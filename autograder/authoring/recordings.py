"""Recorded question sheets, computed once: a class with thirty known mistakes takes a while to put to all of them."""

from __future__ import annotations

import hashlib
import platform
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

import torch

import autograder
import tfcourse
from autograder.authoring.files import write_files
from autograder.checking.exercise import Exercise
from autograder.checking.recorded import write_sheet
from autograder.errors import CourseError


def recording(exercise: Exercise, store: Path | None = None) -> bytes:
    """Return the question sheet of an exercise as a file's content.

    Args:
        exercise: the exercise.
        store: folder in which finished recordings are kept, under a name made of everything that decides them: the code of the
            package and of the checks, and the versions of the libraries. A folder that cannot be written is no obstacle.
    """
    if store is None or not _is_declared(exercise):
        return _record(exercise)
    path = store / f"{exercise.name}-{_fingerprint()}.safetensors"
    if path.is_file():
        return path.read_bytes()
    content = _record(exercise)
    for old in store.glob(f"{exercise.name}-*.safetensors"):
        with suppress(OSError):
            old.unlink()
    with suppress(CourseError):
        write_files({path: content})
    return content


def _is_declared(exercise: Exercise) -> bool:
    """Whether the course's own checks declare it: of any other, the code that decides it is not known."""
    from autograder.checks import exercises

    return exercises().get(exercise.name) is exercise


def _record(exercise: Exercise) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sheet.safetensors"
        write_sheet(exercise.sheet(), path)
        return path.read_bytes()


@cache
def _fingerprint() -> str:
    package, machinery = Path(str(tfcourse.__file__)).parent, Path(str(autograder.__file__)).parent
    digest = hashlib.sha256(f"{torch.__version__} {platform.machine()} {torch.get_num_threads()}".encode())
    for folder in (package, machinery / "checking", machinery / "checks"):
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:20]
