"""Finished files are kept under what they were made from, and made again when any of it changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from autograder.course import artifact_cache
from autograder.course.artifact_cache import cached_artifact, code_hash


class Maker:
    """Counts how often something is made."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> bytes:
        """Make it."""
        self.calls += 1
        return b"made %d" % self.calls


def test_same_key_is_made_once(tmp_path: Path) -> None:
    make = Maker()
    contents = {cached_artifact(tmp_path, "wheel-ch03", ["code", "text"], make) for _ in range(3)}
    assert (contents, make.calls) == ({b"made 1"}, 1)
    for path in (tmp_path / ".cache" / "artifacts").iterdir():
        path.unlink()
    assert cached_artifact(tmp_path, "wheel-ch03", ["code", "text"], make) == b"made 2"


def test_other_key_or_name_is_made_anew(tmp_path: Path) -> None:
    make = Maker()
    for name, key in (("wheel-ch03", ["a"]), ("wheel-ch03", ["b"]), ("wheel-ch04", ["a"]), ("wheel-ch03", ["a"])):
        cached_artifact(tmp_path, name, key, make)
    assert make.calls == 3


def test_cache_that_cannot_be_written_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / ".cache").write_text("a file in the way")
    assert cached_artifact(tmp_path, "wheel-ch03", ["a"], Maker()) == b"made 1"


def test_oldest_versions_go_first(tmp_path: Path) -> None:
    folder = tmp_path / ".cache" / "artifacts"
    for number in range(6):
        cached_artifact(tmp_path, "wheel-ch03", [str(number)], Maker())
        for age, path in enumerate(sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)):
            os.utime(path, (1e9 - age, 1e9 - age))
    cached_artifact(tmp_path, "wheel-ch03", ["5"], newest := Maker())
    assert newest.calls == 0
    assert len(list(folder.iterdir())) == artifact_cache.KEPT


@pytest.mark.parametrize("name", ["tfcourse/a.py", "autograder/checks/b.toml", "pyproject.toml", "_config.yml"])
def test_code_hash_sees_each_input(tmp_path: Path, name: str) -> None:
    before = code_hash(tmp_path)
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x = 1")
    created = code_hash(tmp_path)
    path.write_text("x = 2")
    assert len({before, created, code_hash(tmp_path)}) == 3
