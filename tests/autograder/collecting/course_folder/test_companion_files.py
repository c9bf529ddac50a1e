"""The files beside a notebook come along from every kind of download, to their author alone, and leave with their notebook."""

from __future__ import annotations

import json
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

from autograder.collecting import collect as collecting
from autograder.collecting.collect import collect
from autograder.collecting.course_folder import companion_files as module
from autograder.course.folder import Course
from autograder.submission.manifest import Manifest

CHAPTER = "03_scaled_dot_product"
HELPERS = b"def lower(): ...\n"


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    root = tmp_path / "course"
    (root / "submitted").mkdir(parents=True)
    monkeypatch.setattr(collecting, "released_manifest", lambda course, chapter: Manifest(chapter, ()))
    return Course(root)


def notebook(text: str) -> bytes:
    cell = {"cell_type": "markdown", "id": "a", "metadata": {}, "source": text}
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]}).encode()


def packed(files: dict[str, bytes]) -> bytes:
    data = BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


def download(tmp_path: Path, files: dict[str, bytes], name: str = "download.zip") -> Path:
    path = tmp_path / name
    path.write_bytes(packed(files))
    return path


def submitted(course: Course) -> dict[str, bytes]:
    """Everything in ``submitted/``, by student and path beside the notebook."""
    root = course.root / "submitted"
    found = ((path.relative_to(root).parts, path.read_bytes()) for path in root.rglob("*") if path.is_file())
    return {"/".join((parts[0], *parts[2:])): data for parts, data in found}


ADA, BO = notebook("Ada"), notebook("Bo")
DOWNLOADS = {
    "Moodle, in folders": {
        f"Ada Berg_101_assignsubmission_file_/{CHAPTER}.ipynb": ADA,
        "Ada Berg_101_assignsubmission_file_/my_helpers.py": HELPERS,
        "Ada Berg_101_assignsubmission_file_/data/points.csv": b"1,2\n",
        f"Bo Lind_102_assignsubmission_file_/{CHAPTER}.ipynb": BO,
    },
    "Moodle, in one folder": {
        f"Ada Berg_101_assignsubmission_file_{CHAPTER}.ipynb": ADA,
        "Ada Berg_101_assignsubmission_file_my_helpers.py": HELPERS,
        f"Bo Lind_102_assignsubmission_file_{CHAPTER}.ipynb": BO,
    },
    "Canvas": {
        f"bergada_901_5001_{CHAPTER}.ipynb": ADA,
        "bergada_901_5002_my_helpers.py": b"old",
        "bergada_901_5003_my_helpers-1.py": HELPERS,
        f"lindbo_902_5004_{CHAPTER}.ipynb": BO,
    },
    "nbgrader": {
        f"ada/{CHAPTER}/{CHAPTER}.ipynb": ADA,
        f"ada/{CHAPTER}/my_helpers.py": HELPERS,
        f"ada/{CHAPTER}/timestamp.txt": b"2026-10-24 17:50:00 UTC",
        f"bo/{CHAPTER}/{CHAPTER}.ipynb": BO,
    },
    "folders": {f"ada/{CHAPTER}.ipynb": ADA, "ada/my_helpers.py": HELPERS, f"bo/{CHAPTER}.ipynb": BO},
    "an archive of the student's": {
        "Ada Berg_101_assignsubmission_file_/work.zip": packed(
            {f"work/{CHAPTER}.ipynb": ADA, "work/my_helpers.py": HELPERS, "elsewhere/other.py": b"1"}
        ),
        f"Bo Lind_102_assignsubmission_file_/{CHAPTER}.ipynb": BO,
    },
}


@pytest.mark.parametrize("files", DOWNLOADS.values(), ids=DOWNLOADS)
def test_files_come_along_to_their_author(course: Course, tmp_path: Path, files: dict[str, bytes]) -> None:
    found = collect(course, CHAPTER, download(tmp_path, files))
    everything = submitted(course)
    ada, bo = (next(name.split("/")[0] for name, data in everything.items() if data == one) for one in (ADA, BO))
    assert everything[f"{ada}/my_helpers.py"] == HELPERS
    assert [name for name in everything if name.startswith(f"{bo}/")] == [f"{bo}/{CHAPTER}.ipynb"]
    assert not any("other.py" in name for name in everything)
    assert ("data/points.csv" in str(everything)) == (f"{ada}/data/points.csv" in everything)
    assert sorted(found.new) == sorted([ada, bo])
    again = collect(course, CHAPTER, tmp_path / "download.zip")
    assert (sorted(again.unchanged), again.new, again.replaced) == (sorted([ada, bo]), [], [])
    assert submitted(course) == everything


def test_files_leave_with_their_notebook(course: Course, tmp_path: Path) -> None:
    first = {f"ada/{CHAPTER}.ipynb": ADA, "ada/my_helpers.py": HELPERS, f"bo/{CHAPTER}.ipynb": BO}
    collect(course, CHAPTER, download(tmp_path, first))
    second = {f"ada/{CHAPTER}.ipynb": notebook("Ada again"), "ada/lib/new.py": b"new", f"bo/{CHAPTER}.ipynb": BO}
    found = collect(course, CHAPTER, download(tmp_path, second, "second.zip"))
    assert found.replaced == ["ada"]
    assert sorted(name for name in submitted(course) if name.startswith("ada/")) == [
        f"ada/{CHAPTER}.ipynb",
        "ada/lib/new.py",
    ]
    (kept,) = (course.root / "replaced" / CHAPTER / "ada").iterdir()
    assert (kept / "my_helpers.py").read_bytes() == HELPERS
    assert (kept / f"{CHAPTER}.ipynb").read_bytes() == ADA


def test_a_file_that_changed_or_was_left_out_before_comes_later(course: Course, tmp_path: Path) -> None:
    alone = {f"ada/{CHAPTER}.ipynb": ADA, f"bo/{CHAPTER}.ipynb": BO}
    collect(course, CHAPTER, download(tmp_path, alone))
    collect(course, CHAPTER, download(tmp_path, {**alone, "ada/my_helpers.py": HELPERS}, "second.zip"))
    assert submitted(course)["ada/my_helpers.py"] == HELPERS


def test_what_goes_over_the_limits_is_named(course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_FILES", 2)
    monkeypatch.setattr(module, "MAX_BYTES", 10)
    files = {f"ada/{CHAPTER}.ipynb": ADA, f"bo/{CHAPTER}.ipynb": BO}
    files |= {"ada/a.py": b"1", "ada/b.py": b"2" * 20, "ada/c.py": b"3", "ada/d.py": b"4"}
    found = collect(course, CHAPTER, download(tmp_path, files))
    assert {name for name in submitted(course) if name.endswith(".py")} == {"ada/a.py", "ada/c.py"}
    said = [problem.what for problem in found.problems if problem.kind == "file left out"]
    assert len(said) == 2
    assert said[0].startswith("b.py is left out")
    assert said[1].startswith("More than 2 files")


def test_hidden_files_archives_and_other_notebooks_stay_behind(course: Course, tmp_path: Path) -> None:
    files = {f"ada/{CHAPTER}.ipynb": ADA, f"bo/{CHAPTER}.ipynb": BO, "ada/.secret": b"1", "ada/data.zip": b"PK"}
    files |= {"ada/__pycache__/x.pyc": b"1", "ada/.ipynb_checkpoints/x.py": b"1"}
    collect(course, CHAPTER, download(tmp_path, files))
    assert set(submitted(course)) == {f"ada/{CHAPTER}.ipynb", f"bo/{CHAPTER}.ipynb"}
