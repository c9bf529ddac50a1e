"""Builds the pretend accelerator, once for each version of PyTorch and of its source, into a folder that Python can be pointed to."""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[1] / ".cache" / "pretend"
SOURCES = [HERE / name for name in ("accelerator.cpp", "tfcourse_pretend.py", "build.py")]
HOW_TO_INSTALL = "apt-get install g++"
# Optimising would take longer than the tests that it speeds up.
FLAGS = ("-std=c++20", "-O0", "-w", "-fPIC", "-shared")


def compiler() -> str | None:
    """Return the C++ compiler of this machine: the one that ``CXX`` names, or g++; None where there is none, or this is not Linux."""
    return shutil.which(os.environ.get("CXX") or "g++") if platform.system() == "Linux" else None


def built() -> Path:
    """Return a folder that makes PyTorch know the device ``pretend`` where it is on ``PYTHONPATH``; build it first if it is missing.

    Raises:
        RuntimeError: if there is no compiler, or it fails; the text is the compiler's.
    """
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in SOURCES)).hexdigest()[:12]
    folder = CACHE / f"torch-{version('torch')}-{platform.machine()}-{digest}"
    CACHE.mkdir(parents=True, exist_ok=True)
    # The workers of one run of tests build once.
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=CACHE) as temporary:
                made = Path(temporary) / "made"
                _build(made)
                made.rename(folder)
    return folder


def _build(folder: Path) -> None:
    import torch
    from torch.utils import cpp_extension

    program = compiler()
    if program is None:
        raise RuntimeError(f"no C++ compiler here: {HOW_TO_INSTALL}")
    folder.mkdir()
    (folder / "no_device_check.inc").write_text("".join(f'"{name}",\n' for name in operations_without_check()))
    includes = [word for path in (str(folder), *cpp_extension.include_paths()) for word in ("-isystem", path)]
    libraries = [*(f"-L{path}" for path in cpp_extension.library_paths()), "-ltorch", "-ltorch_cpu", "-lc10"]
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"
    command = [
        program,
        *FLAGS,
        abi,
        *includes,
        str(HERE / "accelerator.cpp"),
        "-o",
        str(folder / "accelerator.so"),
        *libraries,
    ]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise RuntimeError(f"the pretend accelerator could not be built:\n{ran.stderr}")
    shutil.copy(HERE / "tfcourse_pretend.py", folder)
    about = folder / "tfcourse_pretend-0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: tfcourse-pretend\nVersion: 0\n")
    (about / "entry_points.txt").write_text("[torch.backends]\npretend = tfcourse_pretend:load\n")


def operations_without_check() -> list[str]:
    """Return the operations for which PyTorch generates no check that all tensors are on one device; they look at devices themselves."""
    import torchgen

    table = Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml"
    entries = re.split(r"^- func: ", table.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return [entry[: entry.index("(")] for entry in entries if "device_check: NoCheck" in entry]


if __name__ == "__main__":
    print(built())
