"""Recorded sheets are computed once, and again as soon as anything that decides them has changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from autograder.checking.recorded import read_sheet
from autograder.checks import exercise
from autograder.course.artifact_cache import FOLDER
from autograder.course.release import answer_keys as module
from autograder.course.release.answer_keys import record_answer_keys

CAUSAL = exercise("causal_mask")


def test_a_recording_is_kept_and_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = record_answer_keys([CAUSAL], tmp_path)
    (path,) = (tmp_path / FOLDER).iterdir()
    assert read_sheet(path).exercise == "causal_mask"
    monkeypatch.setattr(module, "_record_sheet", lambda exercise: pytest.fail("it was computed again"))
    assert record_answer_keys([CAUSAL], tmp_path) == first == {"causal_mask": path.read_bytes()}


def test_several_processes_record_what_one_does(tmp_path: Path) -> None:
    names = ("causal_mask", "padding_mask", "layer_norm")
    apart = record_answer_keys(map(exercise, names), tmp_path)
    assert list(apart) == list(names)
    assert apart == {name: record_answer_keys([exercise(name)])[name] for name in names}
    assert len(list((tmp_path / FOLDER).iterdir())) == len(names)


@pytest.mark.parametrize("decides", ["environment_hash", "hash_files"])
def test_other_code_or_libraries_make_another_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decides: str
) -> None:
    record_answer_keys([CAUSAL], tmp_path)
    monkeypatch.setattr(module, decides, lambda *_: "other")
    record_answer_keys([CAUSAL], tmp_path)
    assert len(list((tmp_path / FOLDER).iterdir())) == 2


def test_an_exercise_that_the_course_does_not_declare_is_never_kept(small: Any, tmp_path: Path) -> None:
    record_answer_keys([small.registry["causal_mask"]], tmp_path / "cached")
    assert not (tmp_path / "cached").exists()
