"""What a course sets is what its engine is, and nothing of its secrets goes where students' code can read it."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest

from autograder.engine.sandbox.settings import SandboxSettings
from autograder.engine.settings import GradingSettings
from autograder.engine.workers.sandbox_settings import engine_settings, student_environment

SETTINGS = GradingSettings(
    seed=987_654_321,
    memory_mb=700,
    submission_cpu_seconds=123,
    processes=9,
    scratch_mb=21,
    isolation="restricted",
    device="cpu",
)


def test_every_limit_of_a_course_reaches_the_sandbox() -> None:
    made = engine_settings(SETTINGS, "/wheel")
    limits = made.limits
    assert (limits.memory_mb, limits.cpu_seconds, limits.processes, limits.scratch_mb) == (700, 123, 9, 21)
    assert (made.packages, made.isolation, made.device) == ("/wheel", "restricted", "cpu")


@pytest.mark.parametrize("seed", [None, 0, 1, 987_654_321])
def test_what_seeds_students_is_decided_by_the_secret_and_is_not_it(seed: int | None) -> None:
    drawn = replace(SETTINGS, seed=seed).student_seed
    assert drawn == replace(SETTINGS, seed=seed).student_seed
    assert drawn != seed or not seed
    assert drawn != replace(SETTINGS, seed=2).student_seed


def test_settings_survive_the_way_to_another_process_as_plain_data() -> None:
    made = engine_settings(SETTINGS, "/wheel")
    assert SandboxSettings.from_dict(made.to_dict()) == made
    assert len(made.to_dict()) == len(fields(SandboxSettings))
    with pytest.raises(TypeError, match="isolaton"):
        SandboxSettings.from_dict({"isolaton": "none"})


def test_students_see_no_secret_of_the_shell_and_draw_into_the_notebook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COURSE_PASSWORD", "hunter2")
    environment = student_environment(SETTINGS, tmp_path)
    assert "hunter2" not in environment.values()
    assert environment["MPLBACKEND"] == "module://matplotlib_inline.backend_inline"
    assert environment["TFCOURSE_DEVICE"] == "cpu"
    assert environment["CUDA_VISIBLE_DEVICES"] == ""


def test_nothing_that_reaches_a_students_process_tells_the_seed_of_the_hidden_questions(tmp_path: Path) -> None:
    everything = f"{engine_settings(SETTINGS).to_dict()} {dict(student_environment(SETTINGS, tmp_path))}"
    assert str(SETTINGS.seed) not in everything
    assert str(SETTINGS.student_seed) in everything
