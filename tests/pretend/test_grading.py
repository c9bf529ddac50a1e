"""Grading with a device: the student's process and the checker each have it, and tensors cross between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import nbformat
import pytest
import torch

from autograder.checking.verdict import VERDICT_MIME, Verdict
from autograder.checks import exercise
from autograder.engine.sandbox.lockdown import LAYERS
from autograder.engine.settings import GradingSettings, is_device_available, resolve_device
from autograder.engine.transport import msgpack_scan, serialization
from autograder.engine.workers.executor import WorkerExecutor
from autograder.errors import CourseError
from tests.autograder.engine.workers import Graded, submission

pytestmark = pytest.mark.cuda

NAME = "scaled_dot_product_attention"
SOLUTION = f"""
import torch
devices = None
def {NAME}(q, k, v, mask=None):
    if devices and q.device.type not in devices:
        raise AssertionError(q.device.type)
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is None:
        return scores.softmax(-1) @ v
    weights = scores.masked_fill(~mask, float("-inf")).softmax(-1)
    return weights.masked_fill(~mask.any(-1, keepdim=True), 0.0) @ v
"""
CHECKED = (f"from tfcourse import check\ncheck({NAME}, hidden=True)", NAME)


@pytest.fixture(scope="module")
def executor(accelerator: str) -> Iterator[WorkerExecutor]:
    made = WorkerExecutor(GradingSettings(seed=5, device=accelerator))
    yield made
    made.close()


def graded(executor: WorkerExecutor, solution: str) -> Graded:
    asked = submission((solution, None), CHECKED)
    notebook = nbformat.reads(asked.notebook, as_version=4)
    notebook.cells[1].metadata.nbgrader.points = exercise(NAME).points
    return Graded(executor.grade_one(replace(asked, notebook=nbformat.writes(notebook))))


def verdict(result: Graded) -> Verdict:
    """What the check has said."""
    (made,) = (output.data[VERDICT_MIME] for output in result.notebook.cells[1].outputs if "data" in output)
    return Verdict.from_dict(made)


def only_on(*devices: str) -> str:
    """Return the solution, with an error on any other device."""
    return SOLUTION.replace("devices = None", f"devices = {devices}")


def test_a_submission_is_graded_on_the_device_in_the_sandbox(executor: WorkerExecutor, accelerator: str) -> None:
    # Only the check of devices itself uses another one.
    result = graded(executor, only_on(accelerator, "meta"))
    assert result.execution.layers == LAYERS
    assert verdict(result).score == exercise(NAME).points, str(verdict(result))
    assert f"AssertionError: {accelerator}" in str(verdict(graded(executor, only_on("cpu", "meta"))))


def test_a_mask_that_a_student_brings_to_the_cpu_loses_points(executor: WorkerExecutor) -> None:
    result = graded(executor, SOLUTION.replace("masked_fill(~mask, float", "masked_fill(~mask.cpu(), float"))
    assert "same device" in str(verdict(result))
    assert verdict(result).score < 0.75 * exercise(NAME).points, "what has a mask is lost"


def test_gradients_and_diagnoses_on_the_cpu_are_right_where_there_is_an_accelerator() -> None:
    on_cpu = WorkerExecutor(GradingSettings(seed=5, device="cpu"))
    right, wrong = (
        graded(on_cpu, source) for source in (only_on("cpu", "meta"), SOLUTION.replace(" / q.shape[-1] ** 0.5", ""))
    )
    on_cpu.close()
    assert verdict(right).score == exercise(NAME).points, str(verdict(right))
    assert any(finding.diagnosis for finding in verdict(wrong).findings), str(verdict(wrong))


def test_a_device_that_pytorch_finds_can_be_asked_for(accelerator: str) -> None:
    assert resolve_device(accelerator) == accelerator
    assert is_device_available(accelerator)
    with pytest.raises(CourseError, match="no device 'tpu'"):
        resolve_device("tpu")


@pytest.mark.parametrize("shape", [(), (2, 3), (0, 4)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.bool], ids=str)
def test_tensors_come_back_on_their_device(
    shape: tuple[int, ...], dtype: torch.dtype, accelerator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tensors = [torch.ones(shape, dtype=dtype, device=device) for device in (accelerator, "cpu")]
    monkeypatch.setenv("TFCOURSE_DEVICE", accelerator)
    message = serialization.pack([*tensors, torch.device(accelerator)])
    *back, device = serialization.unpack(message)
    assert [tensor.device.type for tensor in back] == [accelerator, "cpu"]
    assert device == torch.device(accelerator)
    assert all(torch.equal(one, other) for one, other in zip(tensors, back, strict=True))
    # Whoever grades on the CPU has nothing put on a device by a message.
    monkeypatch.setenv("TFCOURSE_DEVICE", "cpu")
    with pytest.raises(msgpack_scan.ProtocolError, match="device"):
        serialization.unpack(message)
