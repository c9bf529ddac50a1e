"""System calls, where they do something that can be seen without a sandbox."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import mmap, re
from autograder.engine.sandbox import linux

memory = mmap.mmap(-1, 32 * 2**20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory[:] = bytes(range(256)) * (len(memory) // 256)
linux.use_large_pages()
assert memory[:] == bytes(range(256)) * (len(memory) // 256)
with open("/proc/self/smaps_rollup", encoding="ascii") as file:
    print(re.search(r"AnonHugePages: *([0-9]+)", file.read())[1])
"""


def _has_large_pages() -> bool:
    major, minor = (int(part) for part in platform.release().split(".")[:2])
    return (major, minor) >= (6, 1) and Path("/sys/kernel/mm/transparent_hugepage").is_dir()


@pytest.mark.skipif(sys.platform != "linux", reason="asks for Linux's own files")
def test_memory_is_put_into_large_pages_and_keeps_what_it_holds() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    if _has_large_pages():
        assert int(done.stdout) >= 16 * 1024, "kilobytes in large pages"
