"""Build the environment of a student's kernel from an allow-list, without the instructor's other variables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

# Variables that Python with PyTorch needs to start. The instructor's tokens, keys and paths are not among them.
_PASSED = frozenset(
    {
        "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "CURL_CA_BUNDLE", "HOME", "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "PATH",
        "PYTHONPATH", "PYTHONUTF8", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR", "TZ", "VIRTUAL_ENV", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR",
    }
)  # fmt: skip
# Student code must not find a GPU if grading runs on the CPU. Besides, PyTorch starts threads at a process's first gradient if it finds a
# GPU, and a fork has none of these threads: it could compute no gradients.
NO_ACCELERATORS = {"CUDA_VISIBLE_DEVICES": "", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
_PASSED_PREFIXES = ("CONDA_", "LC_", "NVIDIA_")


def kernel_environment(
    folder: Path, *, device: str, seed: int, inherited: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the environment variables of a student's kernel.

    Args:
        folder: the kernel's own folder. IPython's profile is there, so that none of the instructor's start-up files runs.
        device: where the checks put their tensors.
        seed: seeds the hashes of strings, and with them the order of sets.
        inherited: the environment to choose from; by default this process's.
    """
    source = os.environ if inherited is None else inherited
    passed = {name: value for name, value in source.items() if name in _PASSED or name.startswith(_PASSED_PREFIXES)}
    if device == "cpu":
        passed |= NO_ACCELERATORS
    return passed | {
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
        "HF_DATASETS_OFFLINE": "1",
        "KINETO_LOG_LEVEL": "99",
        "HF_HUB_OFFLINE": "1",
        "IPYTHONDIR": str(folder / ".ipython"),
        "MKL_NUM_THREADS": "1",
        # Figures appear in the notebook, as in Jupyter.
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "NBGRADER_EXECUTION": "autograde",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "PYTHONHASHSEED": str(seed % 2**32),
        "TFCOURSE_DEVICE": device,
        "TOKENIZERS_PARALLELISM": "false",
        # torch.compile would start a C++ compiler, which the sandbox refuses: let it return the function unchanged.
        "TORCHDYNAMO_DISABLE": "1",
        "TRANSFORMERS_OFFLINE": "1",
    }


def worker_environment(folder: str, device: str) -> dict[str, str]:
    """Return a worker's environment: this process's, with one thread, its own folder and only required accelerators."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    return {**os.environ, **threads, **(NO_ACCELERATORS if device == "cpu" else {}), "TMPDIR": folder}
