"""The environment of a student's kernel: what it needs, and nothing of what the instructor's shell happens to hold."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

# What a Python with PyTorch needs to start on somebody's machine. Tokens, keys and paths of the instructor are not among it.
_PASSED = frozenset(
    {
        "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "CURL_CA_BUNDLE", "HOME", "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "PATH",
        "PYTHONPATH", "PYTHONUTF8", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR", "TZ", "VIRTUAL_ENV", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR",
    }
)  # fmt: skip
# Code that asks whether there is a GPU must not find one where the grade is made without. And PyTorch starts threads at the first gradient
# of a process in which it finds one, without which a fork of that process can have no gradients.
NO_ACCELERATORS = {"CUDA_VISIBLE_DEVICES": "", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
_PASSED_PREFIXES = ("CONDA_", "LC_", "NVIDIA_")


def kernel_environment(
    folder: Path, *, device: str, seed: int, inherited: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the environment of a kernel.

    Args:
        folder: the kernel's own folder; IPython keeps its profile there, so that no start-up file of the instructor's is run.
        device: where the checks put their tensors.
        seed: seeds the hashes of strings, and with them the order of sets.
        inherited: what to choose from; by default this process's environment.
    """
    source = os.environ if inherited is None else inherited
    kept = {name: value for name, value in source.items() if name in _PASSED or name.startswith(_PASSED_PREFIXES)}
    if device == "cpu":
        kept |= NO_ACCELERATORS
    return kept | {
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
        "HF_DATASETS_OFFLINE": "1",
        "KINETO_LOG_LEVEL": "99",
        "HF_HUB_OFFLINE": "1",
        "IPYTHONDIR": str(folder / ".ipython"),
        "MKL_NUM_THREADS": "1",
        "MPLBACKEND": "Agg",
        "NBGRADER_EXECUTION": "autograde",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "PYTHONHASHSEED": str(seed % 2**32),
        "TFCOURSE_DEVICE": device,
        "TOKENIZERS_PARALLELISM": "false",
        # To compile takes a minute, and a compiler; what is looked at is the code as it was written.
        "TORCHDYNAMO_DISABLE": "1",
        "TRANSFORMERS_OFFLINE": "1",
    }
