"""The device is what was asked for, or it is said that it is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.errors import CourseError
from autograder.grading import settings
from autograder.grading.environment import kernel_environment
from autograder.grading.settings import resolve_device


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
