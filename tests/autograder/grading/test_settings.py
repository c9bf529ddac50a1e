"""Limits are those of the configuration; the device is what was asked for, or it is said that it is not there."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from traitlets import TraitError
from traitlets.config import Config

from autograder.engine import settings
from autograder.engine.environment import kernel_environment
from autograder.engine.settings import GradingLimits, GradingSettings, limits_of, resolve_device
from autograder.errors import CourseError
from autograder.grading.course_settings import settings_of


@pytest.mark.parametrize(
    ("asked", "there", "given"),
    [
        ("cpu", True, "cpu"),
        ("cpu", False, "cpu"),
        ("auto", True, "cuda"),
        ("auto", False, "cpu"),
        ("cuda", True, "cuda"),
    ],
)
def test_a_device_is_found(monkeypatch: pytest.MonkeyPatch, asked: str, there: bool, given: str) -> None:
    monkeypatch.setattr(settings, "cuda_is_there", lambda: there)
    assert resolve_device(asked) == given


def test_cuda_that_is_not_there_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "cuda_is_there", lambda: False)
    with pytest.raises(CourseError, match="no CUDA device") as caught:
        resolve_device("cuda")
    assert "--device cpu" in caught.value.do


def test_a_device_that_nobody_knows_is_refused() -> None:
    with pytest.raises(CourseError, match="no device 'tpu'"):
        resolve_device("tpu")


def test_a_kernel_gets_what_it_needs_and_none_of_the_instructors_secrets() -> None:
    mine = {
        "PATH": "/bin",
        "AWS_SECRET_ACCESS_KEY": "x",
        "CANVAS_TOKEN": "x",
        "LC_ALL": "C",
        "CUDA_VISIBLE_DEVICES": "1",
        "DISPLAY": ":0",
    }
    made = kernel_environment(Path("/tmp/k"), device="cuda", seed=2**32 + 5, inherited=mine)
    assert {"AWS_SECRET_ACCESS_KEY", "CANVAS_TOKEN", "DISPLAY"}.isdisjoint(made)
    assert (made["PATH"], made["LC_ALL"], made["CUDA_VISIBLE_DEVICES"]) == ("/bin", "C", "1")
    assert (made["PYTHONHASHSEED"], made["TFCOURSE_DEVICE"], made["OMP_NUM_THREADS"]) == ("5", "cuda", "1")
    assert made["IPYTHONDIR"] == "/tmp/k/.ipython"


def test_code_that_looks_for_a_gpu_finds_none_where_grading_is_on_the_cpu() -> None:
    made = kernel_environment(Path("/tmp/k"), device="cpu", seed=0, inherited={"CUDA_VISIBLE_DEVICES": "0"})
    assert made["CUDA_VISIBLE_DEVICES"] == ""


def config(**limits: object) -> Config:
    return Config({"GradingLimits": limits})


def test_what_the_configuration_does_not_name_has_its_default_and_the_seed_is_the_courses() -> None:
    assert limits_of(Config()) == GradingSettings(seed=None)
    assert limits_of(config(memory_mb=512, isolation="restricted", seed=3)) == GradingSettings(
        memory_mb=512, isolation="restricted", seed=3
    )


def test_every_setting_can_be_configured_but_those_of_the_command_line_and_the_release() -> None:
    names = {field.name for field in fields(GradingSettings)} - {"device", "jobs", "package"}
    assert set(GradingLimits.class_trait_names(config=True)) == names
    assert all(trait.help for trait in GradingLimits.class_traits(config=True).values())


def test_a_limit_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(CourseError, match="no limit memory") as caught:
        limits_of(config(memory=512))
    assert "memory_mb" in caught.value.do


@pytest.mark.parametrize("wrong", [{"memory_mb": 0}, {"memory_mb": "much"}, {"isolation": "some"}, {"restarts": -1}])
def test_a_value_that_a_limit_cannot_have_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(TraitError):
        limits_of(config(**wrong))


def test_what_seeds_a_students_process_follows_from_the_seed_and_does_not_tell_it() -> None:
    seeds = [2**61 + number for number in range(100)]
    drawn = [GradingSettings(seed=seed).student_seed for seed in seeds]
    assert drawn == [GradingSettings(seed=seed).student_seed for seed in seeds]
    assert len(set(drawn)) == len(seeds)
    assert len({seed - one for seed, one in zip(seeds, drawn, strict=True)}) == len(seeds)
    assert GradingSettings(seed=None).student_seed == GradingSettings().student_seed == 0


@pytest.mark.parametrize("section", ["Execute", "KernelExecute"])
@pytest.mark.parametrize(("timeout", "seconds"), [(7, 7), (None, 900), (-1, 900)])
def test_the_timeout_of_nbgraders_configuration_is_that_of_every_cell(
    section: str, timeout: int | None, seconds: int
) -> None:
    made = settings_of(Config({section: {"timeout": timeout}}))
    assert (made.cell_seconds, made.exercise_seconds, made.submission_seconds) == (seconds, seconds, 900)
    kept = settings_of(Config({section: {"timeout": timeout}, "GradingLimits": {"exercise_seconds": 20}}))
    assert (kept.cell_seconds, kept.exercise_seconds) == (seconds, 20)
