"""How submissions are run: one object, handed on, in place of environment variables that act from afar."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from autograder.errors import CourseError


@dataclass(frozen=True)
class GradingSettings:
    """How submissions are run.

    Attributes:
        device: where the checks put their tensors, ``"cpu"`` or ``"cuda"``.
        seed: seeds every kernel's random generators and its string hashes.
        jobs: how many submissions run at once.
        cell_seconds: how long one cell may run.
        submission_seconds: how long all cells of a submission together may run.
        kept_output: how many characters a cell may print before the rest is left out.
        flood_output: how many characters a cell may print before it is stopped.
        restarts: how often a submission that brings its kernel down gets another one.
    """

    device: str = "cpu"
    seed: int = 0
    jobs: int = 1
    cell_seconds: int = 60
    submission_seconds: int = 900
    kept_output: int = 200_000
    flood_output: int = 50_000_000
    restarts: int = 3


def resolve_device(device: str) -> str:
    """Return the device that is meant.

    Args:
        device: ``"cpu"``, ``"cuda"``, or ``"auto"``: CUDA where there is one, else the CPU.

    Returns:
        ``"cpu"`` or ``"cuda"``.

    Raises:
        CourseError: if the name is unknown, or CUDA is asked for where there is none.
    """
    if device not in ("cpu", "cuda", "auto"):
        raise CourseError(f"there is no device {device!r}", do="Use cpu, cuda or auto.")
    if device == "cpu":
        return "cpu"
    if cuda_is_there():
        return "cuda"
    if device == "auto":
        return "cpu"
    raise CourseError(
        "CUDA was asked for, but PyTorch finds no CUDA device here",
        do="Use --device cpu, or install a PyTorch with CUDA on a machine with an NVIDIA GPU (nvidia-smi shows it).",
    )


@cache
def cuda_is_there() -> bool:
    """Return whether PyTorch finds a CUDA device. Asked in a process of its own: this one may fork later, after which CUDA would fail."""
    try:
        if version("torch").endswith("+cpu"):
            return False
    except PackageNotFoundError:
        return False
    question = "import sys, torch; sys.exit(0 if torch.cuda.is_available() else 1)"
    return subprocess.run([sys.executable, "-c", question], capture_output=True, check=False).returncode == 0
