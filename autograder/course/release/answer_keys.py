"""Record question sheets with the answers of the reference and the known mistakes, and cache the recordings."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import autograder
from autograder.checking.exercise import Exercise
from autograder.checking.recorded import write_sheet
from autograder.checks import declaring_module
from autograder.content_hash import environment_hash, hash_files
from autograder.course.artifact_cache import read_artifact, write_artifact
from autograder.mistakes.mistake_file import MistakeFile
from autograder.parallel import parallel_map
from autograder.static_analysis.import_graph import source_files

_PROJECT = Path(str(autograder.__file__)).parents[1]


def record_answer_keys(exercises: Iterable[Exercise], root: Path | None = None) -> dict[str, bytes]:
    """Return the recorded question sheets of exercises as file contents, by name.

    Args:
        root: the project, whose cache is used; None for no cache.
    """
    requested = list(exercises)
    keys = {item.name: _cache_key(item) for item in requested if root is not None and _is_declared(item)}
    sheets: dict[str, bytes] = {}
    for name, key in keys.items():
        if root is not None and (content := read_artifact(root, f"recording-{name}", key)) is not None:
            sheets[name] = content
    missing = [item for item in requested if item.name not in sheets]
    for item, content in zip(missing, _record_all(missing), strict=True):
        sheets[item.name] = content
        if root is not None and item.name in keys:
            write_artifact(root, f"recording-{item.name}", keys[item.name], content)
    return {item.name: sheets[item.name] for item in requested}


def _record_all(exercises: Sequence[Exercise]) -> list[bytes]:
    """Record exercises, in parallel if other processes can look them up by name."""
    if all(map(_is_declared, exercises)):
        return parallel_map(_record_known, [exercise.name for exercise in exercises])
    return [_record_sheet(exercise) for exercise in exercises]


def _is_declared(exercise: Exercise) -> bool:
    """Return whether the course's checks declare an exercise; other exercises' source files are unknown."""
    from autograder.checks import exercises

    return exercises().get(exercise.name) is exercise


def _record_known(name: str) -> bytes:
    from autograder.checks import exercise

    return _record_sheet(exercise(name))


def _record_sheet(exercise: Exercise) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sheet.safetensors"
        write_sheet(exercise.sheet(), path)
        return path.read_bytes()


def _cache_key(exercise: Exercise) -> list[str]:
    """Return the inputs that determine a recording: environment, the exercise's source files, known mistakes."""
    modules = (exercise.reference.__module__, declaring_module(exercise), "autograder.checking.recorded")
    files = set().union(*map(source_files, modules))
    if isinstance(exercise.misconceptions, MistakeFile):
        files.add(exercise.misconceptions.path)
    return [environment_hash(), hash_files(_PROJECT, files)]
