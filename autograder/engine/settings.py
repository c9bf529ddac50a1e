"""Define the grading settings, one object that is passed explicitly instead of environment variables."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Literal

import msgspec
from traitlets.config import Config

from autograder.errors import CourseError

Isolation = Literal["sandbox", "restricted", "none"]

# From the strongest to the weakest.
ISOLATION: tuple[Isolation, ...] = ("sandbox", "restricted", "none")

_OF_SUBMISSION = ("submission_seconds", "submission_cpu_seconds")
# The command line, the release and the system decide about these.
_NOT_CONFIGURED = frozenset({"device", "jobs", "package", "warm"})
Limit = Annotated[int, msgspec.Meta(ge=1)]
Count = Annotated[int, msgspec.Meta(ge=0)]


@dataclass(frozen=True)
class GradingSettings:
    """Settings of a grading run."""

    device: str = "cpu"  # the device for the checks' tensors, ``"cpu"`` or ``"cuda"``
    # seed of the hidden tests and of a submission's random numbers; ``autograde`` replaces None by the course's secret seed
    seed: int | None = 0
    jobs: int = 1  # number of submissions that run at once
    exercise_seconds: Limit = 60  # time limit per test cell, in seconds
    exercise_cpu_seconds: Limit = 60  # CPU time limit per test cell, in seconds
    cell_seconds: Limit = 60  # time limit for any other cell, in seconds
    submission_seconds: Limit = 900  # time limit for all cells of a submission, in seconds
    submission_cpu_seconds: Limit = 900  # CPU time limit for all cells of a submission, in seconds
    memory_mb: Limit = 4096  # memory limit of a submission, in MiB
    processes: Limit = 64  # maximum number of processes and threads of a submission
    scratch_mb: Limit = 256  # size limit of a submission's own folder, in MiB
    kept_output: Count = 200_000  # number of output characters per cell after which output is truncated
    flood_output: Limit = 50_000_000  # number of output characters after which a cell is stopped
    answers_mb: Limit = 256  # maximum total size of the answers to a cell's tests, in MiB
    restarts: Count = 3  # maximum number of kernel restarts for a submission that kills its kernel
    isolation: Isolation = "sandbox"  # required isolation level, ``"sandbox"``, ``"restricted"`` or ``"none"``
    allow_weaker: bool = False  # whether to continue if this machine offers less isolation than required
    # whether kernels are forked from a process with all imports done, instead of started from scratch
    warm: bool = True
    # the address of a Dask scheduler whose workers run the submissions; None runs them on this machine
    scheduler: str | None = None
    # the students' wheel of the chapter, or empty: their code imports it instead of the course's own package
    package: str = ""

    @property
    def student_seed(self) -> int:
        """The seed of the random generators in a student's process, from which the secret seed cannot be derived."""
        if not self.seed:
            return 0
        return int.from_bytes(hashlib.sha256(f"student {self.seed}".encode()).digest()[:6], "big")

    def split_among(self, notebooks: int) -> GradingSettings:
        """Return the settings for each of a student's notebooks, which share the time of one submission."""
        times = {name: max(1, getattr(self, name) // notebooks) for name in _OF_SUBMISSION}
        return replace(self, **times)

    def limits(self) -> dict[str, int | bool | str]:
        """Return the settings that may decide a grade, except seed and device."""
        others = ("device", "seed", "jobs", "allow_weaker", "scheduler", "package")
        return {name: value for name, value in asdict(self).items() if name not in others}


def read_limits(config: Config) -> GradingSettings:
    """Return the settings in ``c.GradingLimits`` of a configuration, such as ``c.GradingLimits.memory_mb = 2048``.

    The others have their defaults; without a seed, the course's secret one counts.

    Args:
        config: the configuration that ``nbgrader_config.py`` has built.

    Raises:
        CourseError: if it names a limit that does not exist, or a value that a limit cannot have.
    """
    chosen = dict(config.get("GradingLimits", {}))
    names = sorted({field.name for field in fields(GradingSettings)} - _NOT_CONFIGURED)
    problem = f"there is no limit {', '.join(unknown)}" if (unknown := sorted(chosen.keys() - set(names))) else ""
    try:
        settings = GradingSettings() if problem else msgspec.convert({"seed": None, **chosen}, GradingSettings)
    except msgspec.ValidationError as error:
        problem = f"a limit cannot have its value ({error})"
    if problem:
        do = f"c.GradingLimits has: {', '.join(names)}."
        raise CourseError(problem, where="nbgrader_config.py", do=do)
    return settings


def resolve_device(device: str) -> str:
    """Return the device type for a device name; ``"auto"`` is resolved to CUDA or CPU.

    Args:
        device: ``"cpu"``, ``"cuda"``, ``"auto"`` (CUDA if available, otherwise the CPU), or another accelerator that PyTorch finds.

    Returns:
        The device type, such as ``"cpu"`` or ``"cuda"``.

    Raises:
        CourseError: if the name is unknown, or CUDA is not available.
    """
    if device == "auto":
        return "cuda" if is_cuda_available() else "cpu"
    if is_device_available(device):
        return device
    if device != "cuda":
        raise CourseError(f"there is no device {device!r}", do="Use cpu, cuda or auto.")
    raise CourseError(
        "PyTorch finds no CUDA device here",
        do="Use --device cpu, or install a PyTorch with CUDA on a machine with an NVIDIA GPU (nvidia-smi shows it).",
    )


def is_device_available(device: str) -> bool:
    """Return whether this machine can run checks on a type of device."""
    if device == "cpu":
        return True
    return is_cuda_available() if device == "cuda" else _detect_accelerator() == device


@cache
def is_cuda_available() -> bool:
    """Return whether PyTorch finds a CUDA device.

    A subprocess checks, because CUDA would fail in forks of this process.
    """
    try:
        if version("torch").endswith("+cpu"):
            return False
    except PackageNotFoundError:
        return False
    question = "import sys, torch; sys.exit(0 if torch.cuda.is_available() else 1)"
    return subprocess.run([sys.executable, "-c", question], capture_output=True, check=False).returncode == 0


@cache
def _detect_accelerator() -> str:
    """Return the type of the accelerator that PyTorch finds in a subprocess; empty without one."""
    question = "import torch; print((torch.accelerator.current_accelerator(True) or torch.device('cpu')).type)"
    ran = subprocess.run([sys.executable, "-c", question], capture_output=True, text=True, check=False)
    return ran.stdout.strip()
