"""Define the grading settings: one object that is passed explicitly, instead of environment variables."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

from traitlets import Bool, Enum, Integer, Unicode
from traitlets.config import Config, Configurable

from autograder.errors import CourseError

Isolation = Literal["sandbox", "restricted", "none"]

# From the strongest to the weakest.
ISOLATION: tuple[Isolation, ...] = ("sandbox", "restricted", "none")

_OF_SUBMISSION = ("submission_seconds", "submission_cpu_seconds")


@dataclass(frozen=True)
class GradingSettings:
    """Settings of a grading run."""

    device: str = "cpu"  # the device for the checks' tensors, ``"cpu"`` or ``"cuda"``
    # seed of the hidden tests and of a submission's random numbers; ``autograde`` replaces None by the course's secret seed
    seed: int | None = 0
    jobs: int = 1  # number of submissions that run at once
    exercise_seconds: int = 60  # time limit per test cell, in seconds
    exercise_cpu_seconds: int = 60  # CPU time limit per test cell, in seconds
    cell_seconds: int = 60  # time limit for any other cell, in seconds
    submission_seconds: int = 900  # time limit for all cells of a submission, in seconds
    submission_cpu_seconds: int = 900  # CPU time limit for all cells of a submission, in seconds
    memory_mb: int = 4096  # memory limit of a submission, in MiB
    processes: int = 64  # maximum number of processes and threads of a submission
    scratch_mb: int = 256  # size limit of a submission's own folder, in MiB
    kept_output: int = 200_000  # number of output characters per cell after which output is truncated
    flood_output: int = 50_000_000  # number of output characters after which a cell is stopped
    answers_mb: int = 256  # maximum total size of the answers to a cell's tests, in MiB
    restarts: int = 3  # maximum number of kernel restarts for a submission that kills its kernel
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
        """Seed of the random generators in a student's process, which can read it: it does not reveal the secret seed."""
        if not self.seed:
            return 0
        return int.from_bytes(hashlib.sha256(f"student {self.seed}".encode()).digest()[:6], "big")

    def shared_by(self, notebooks: int) -> GradingSettings:
        """Return the settings for each of several notebooks of one student, which share the time of one submission."""
        times = {name: max(1, getattr(self, name) // notebooks) for name in _OF_SUBMISSION}
        return replace(self, **times)

    def limits(self) -> dict[str, int | bool | str]:
        """Return the settings that may decide a grade, besides submission, checks, seed and device."""
        others = ("device", "seed", "jobs", "allow_weaker", "scheduler", "package")
        return {name: value for name, value in asdict(self).items() if name not in others}


_DEFAULTS = GradingSettings()


class GradingLimits(Configurable):  # type: ignore[misc]
    """Settings for a course's ``nbgrader_config.py``: ``c.GradingLimits.memory_mb = 2048``."""

    seed = Integer(
        None, allow_none=True, help="Names the hidden questions' seed; by default the course's secret one."
    ).tag(config=True)
    exercise_seconds = Integer(_DEFAULTS.exercise_seconds, min=1, help="Seconds that one test cell may run.").tag(
        config=True
    )
    exercise_cpu_seconds = Integer(
        _DEFAULTS.exercise_cpu_seconds, min=1, help="Seconds of processor time that one test cell may take."
    ).tag(config=True)
    cell_seconds = Integer(_DEFAULTS.cell_seconds, min=1, help="Seconds that one other cell may run.").tag(config=True)
    submission_seconds = Integer(
        _DEFAULTS.submission_seconds, min=1, help="Seconds that all cells of a submission together may run."
    ).tag(config=True)
    submission_cpu_seconds = Integer(
        _DEFAULTS.submission_cpu_seconds, min=1, help="Seconds of processor time that a submission may take."
    ).tag(config=True)
    memory_mb = Integer(_DEFAULTS.memory_mb, min=1, help="MiB of memory that a submission may have.").tag(config=True)
    processes = Integer(
        _DEFAULTS.processes, min=1, help="Processes and threads that a submission may have at once."
    ).tag(config=True)
    scratch_mb = Integer(_DEFAULTS.scratch_mb, min=1, help="MiB that a submission may write to its own folder.").tag(
        config=True
    )
    kept_output = Integer(_DEFAULTS.kept_output, min=0, help="Characters of output that a cell keeps.").tag(config=True)
    flood_output = Integer(_DEFAULTS.flood_output, min=1, help="Characters of output at which a cell is stopped.").tag(
        config=True
    )
    answers_mb = Integer(
        _DEFAULTS.answers_mb, min=1, help="MiB that the answers to the questions of a cell may have together."
    ).tag(config=True)
    restarts = Integer(
        _DEFAULTS.restarts, min=0, help="Kernels that a submission may bring down before it is given up."
    ).tag(config=True)
    isolation = Enum(ISOLATION, _DEFAULTS.isolation, help="How well a submission must be shut in.").tag(config=True)
    allow_weaker = Bool(_DEFAULTS.allow_weaker, help="Whether to go on where this machine offers less isolation.").tag(
        config=True
    )
    warm = Bool(_DEFAULTS.warm, help="Whether kernels are forked from a process that has everything imported.").tag(
        config=True
    )
    scheduler = Unicode(
        None, allow_none=True, help="The address of a Dask scheduler whose workers run submissions."
    ).tag(config=True)


def limits_of(config: Config) -> GradingSettings:
    """Return the settings from ``c.GradingLimits`` of a configuration; the others have their defaults.

    Args:
        config: the configuration that ``nbgrader_config.py`` has built.

    Raises:
        CourseError: if it names a limit that does not exist.
        TraitError: if a limit cannot have a value.
    """
    names = sorted(field.name for field in fields(GradingSettings) if field.name in GradingLimits.class_trait_names())
    if unknown := sorted(set(config.get("GradingLimits", {})) - set(names)):
        raise CourseError(
            f"there is no limit {', '.join(unknown)}",
            where="nbgrader_config.py",
            do=f"c.GradingLimits has: {', '.join(names)}.",
        )
    chosen = GradingLimits(config=config)
    return GradingSettings(**{name: getattr(chosen, name) for name in names})


def resolve_device(device: str) -> str:
    """Return the device type for a device name.

    Args:
        device: ``"cpu"``, ``"cuda"``, ``"auto"`` (CUDA if available, otherwise the CPU), or another accelerator that PyTorch finds.

    Returns:
        The device type, such as ``"cpu"`` or ``"cuda"``.

    Raises:
        CourseError: if the name is unknown, or CUDA is not available.
    """
    if device == "auto":
        return "cuda" if cuda_is_there() else "cpu"
    if device_is_there(device):
        return device
    if device != "cuda":
        raise CourseError(f"there is no device {device!r}", do="Use cpu, cuda or auto.")
    raise CourseError(
        "PyTorch finds no CUDA device here",
        do="Use --device cpu, or install a PyTorch with CUDA on a machine with an NVIDIA GPU (nvidia-smi shows it).",
    )


def device_is_there(device: str) -> bool:
    """Return whether this machine can run checks on a type of device."""
    if device == "cpu":
        return True
    return cuda_is_there() if device == "cuda" else _accelerator() == device


@cache
def cuda_is_there() -> bool:
    """Return whether PyTorch finds a CUDA device. A separate process looks, because CUDA would fail in later forks of this one."""
    try:
        if version("torch").endswith("+cpu"):
            return False
    except PackageNotFoundError:
        return False
    question = "import sys, torch; sys.exit(0 if torch.cuda.is_available() else 1)"
    return subprocess.run([sys.executable, "-c", question], capture_output=True, check=False).returncode == 0


@cache
def _accelerator() -> str:
    """Return the type of the accelerator that PyTorch finds here, or an empty string; a separate process looks, as above."""
    question = "import torch; print((torch.accelerator.current_accelerator(True) or torch.device('cpu')).type)"
    ran = subprocess.run([sys.executable, "-c", question], capture_output=True, text=True, check=False)
    return ran.stdout.strip()
