"""The doctor tells what is there, what is missing and how to get it, and touches nothing."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import SimpleNamespace

import pytest

from autograder.commands.selftest import doctor
from autograder.commands.selftest.doctor import Item, examine
from autograder.course.folder import Course
from autograder.engine.sandbox import isolation
from autograder.engine.sandbox.lockdown import LAYERS
from autograder.grading.record.results import GradeResult, write_result


def found(name: str, items: list[Item]) -> Item:
    """Return the one item of a name."""
    (item,) = [item for item in items if item.name == name]
    return item


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return a function that says how many bytes are free on every disk."""

    def free(number: int) -> None:
        monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(total=1 << 40, used=0, free=number))

    return free


def test_the_order_is_fixed_and_every_lack_has_a_remedy() -> None:
    items = examine()
    assert [item.name for item in items] == [item.name for item in examine()]
    assert all(item.remedy for item in items if item.state == "missing")


def test_a_package_that_is_missing_says_what_for_and_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(doctor, "version", none)
    items = examine()
    assert found("nbgrader", items).state == "missing"
    assert "requirements.lock" in found("nbgrader", items).remedy
    # The tests are for those who change the course; everybody else can do without.
    assert found("hypothesis", items).state == "note"


def test_a_package_that_is_too_old_is_as_good_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "version", lambda name: "0.5" if name == "nbgrader" else version(name))
    item = found("nbgrader", examine())
    assert item.state == "missing"
    assert ">=0.9" in item.detail


def test_a_folder_without_a_course_is_a_note_and_its_disk_does_not_matter(
    tmp_path: Path, disk: Callable[[int], None]
) -> None:
    disk(0)
    item = found("course", examine(tmp_path))
    assert "course folder" not in [other.name for other in examine(tmp_path)]
    assert item.state == "note"
    assert "tfcourse assign" in item.remedy
    assert list(tmp_path.iterdir()) == []


def test_a_course_is_told_by_what_its_gradebook_holds(
    course_dir: Path, snapshot: Callable[[Path], dict[str, str]]
) -> None:
    before = snapshot(course_dir)
    item = found("gradebook", examine(course_dir))
    assert (item.state, item.detail) == ("ok", f"2 chapters, 0 students ({course_dir.resolve()})")
    assert snapshot(course_dir) == before


@pytest.mark.parametrize("content", [None, b"no database at all" * 100], ids=["missing", "damaged"])
def test_a_gradebook_that_cannot_be_read_is_told_with_a_remedy_and_not_made_anew(
    course_dir: Path, snapshot: Callable[[Path], dict[str, str]], content: bytes | None
) -> None:
    gradebook = course_dir / "gradebook.db"
    gradebook.unlink()
    if content is not None:
        gradebook.write_bytes(content)
    before = snapshot(course_dir)
    item = found("gradebook", examine(course_dir))
    assert item.state == "missing"
    assert str(gradebook) in item.detail
    assert item.remedy
    assert snapshot(course_dir) == before


def test_a_course_whose_configuration_cannot_be_read_is_told_with_the_line(course_dir: Path) -> None:
    (course_dir / "nbgrader_config.py").write_text("c = get_config()\nraise ValueError('five')\n", encoding="utf-8")
    item = found("gradebook", examine(course_dir))
    assert item.state == "missing"
    assert "line 2 raised ValueError: five" in item.detail


def test_a_course_folder_that_cannot_be_written_is_missing(
    course_dir: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Callable[[Path], dict[str, str]]
) -> None:
    before = snapshot(course_dir)
    monkeypatch.setattr(os, "access", lambda *arguments, **options: False)
    item = found("course folder", examine(course_dir))
    assert item.state == "missing"
    assert item.detail == f"{course_dir.resolve()}: the folder cannot be written"
    assert "--course" in item.remedy
    assert snapshot(course_dir) == before


@pytest.mark.parametrize(
    ("free", "state", "told"),
    [
        (5 << 30, "ok", "5.0 GiB free"),
        (doctor.MUCH_SPACE, "ok", "1.0 GiB free"),
        (doctor.MUCH_SPACE - 1, "note", "1023 MiB free"),
        (doctor.NO_SPACE, "note", "32 MiB free"),
        (doctor.NO_SPACE - 1, "missing", "31 MiB free"),
        (0, "missing", "0 MiB free"),
    ],
)
def test_little_space_is_a_note_and_as_good_as_none_is_missing(
    course_dir: Path, disk: Callable[[int], None], free: int, state: str, told: str
) -> None:
    disk(free)
    item = found("course folder", examine(course_dir))
    assert (item.state, item.detail) == (state, f"{told} ({course_dir.resolve()})")
    assert bool(item.remedy) is (state != "ok")


@pytest.mark.parametrize(
    ("layers", "state", "words"), [(LAYERS, "ok", ("sandbox", *LAYERS)), ((), "note", ("none", "private root"))]
)
def test_isolation_is_told_with_what_is_missing_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch, layers: tuple[str, ...], state: str, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr(isolation, "available_layers", lambda: layers)
    item = found("isolation", examine())
    assert (item.state, "container" in item.remedy) == (state, state != "ok")
    assert all(word in item.detail for word in words)


def test_a_course_that_others_can_read_is_noted_and_a_new_one_is_private(course_dir: Path, tmp_path: Path) -> None:
    (course_dir / "students (conflicted copy 2026-11-03).json").touch()
    assert "students (conflicted" in found("conflict copies", examine(course_dir)).detail
    course_dir.chmod(0o755)
    assert found("course privacy", examine(course_dir)).remedy == f"chmod 700 {course_dir}"
    course_dir.chmod(0o750)
    assert "course privacy" not in [item.name for item in examine(course_dir)]
    new = Course.open(tmp_path / "a" / "b", create=True)
    assert stat.S_IMODE(new.root.stat().st_mode) == 0o700
    result = write_result(new, GradeResult("ada", "03", "graded", ()))
    assert stat.S_IMODE(result.stat().st_mode) == 0o600
