"""Recorded sheets are computed once, and again as soon as anything that decides them has changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from autograder.authoring import recordings
from autograder.authoring.recordings import recording
from autograder.checking.recorded import read_sheet
from autograder.checks import exercise

CAUSAL = exercise("causal_mask")


def test_a_recording_is_kept_and_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = recording(CAUSAL, tmp_path / "store")
    (path,) = (tmp_path / "store").iterdir()
    assert read_sheet(path).exercise == "causal_mask"
    monkeypatch.setattr(recordings, "_record", lambda exercise: pytest.fail("it was computed again"))
    assert recording(CAUSAL, tmp_path / "store") == first == path.read_bytes()


def test_other_code_or_libraries_make_another_recording_and_the_old_one_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording(CAUSAL, tmp_path)
    monkeypatch.setattr(recordings, "_fingerprint", lambda: "0" * 20)
    recording(CAUSAL, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [f"causal_mask-{'0' * 20}.safetensors"]


def test_an_exercise_that_the_course_does_not_declare_is_never_kept(small: Any, tmp_path: Path) -> None:
    recording(small.registry["causal_mask"], tmp_path / "store")
    assert not (tmp_path / "store").exists()


def test_a_folder_that_cannot_be_written_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file in the way")
    assert recording(CAUSAL, tmp_path / "store") == recording(CAUSAL)
