"""nbgrader as its users have it: started by its own commands, switched by nothing but configuration, away from anybody's own settings."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which Jupyter and nbgrader find no settings but those that come with their packages, and those of a test."""
    root = tmp_path_factory.mktemp("jupyter")
    own = {
        "JUPYTER_CONFIG_DIR": root / "config",
        "JUPYTER_DATA_DIR": root / "data",
        "JUPYTER_RUNTIME_DIR": root / "runtime",
        "IPYTHONDIR": root / "ipython",
    }
    for folder in own.values():
        folder.mkdir(mode=0o700)
    # Without this nbgrader looks for a folder that a whole machine shares.
    (root / "config" / "nbgrader_config.py").write_text(
        f"c = get_config()\nc.Exchange.root = {str(root / 'exchange')!r}\n", encoding="utf-8"
    )
    (root / "exchange").mkdir(mode=0o777)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "NBGRADER"))}
    # Its own commands call each other by name; they lie beside this Python.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return kept | {name: str(folder) for name, folder in own.items()} | {"PATH": path}


@pytest.fixture(scope="session")
def command(surroundings: dict[str, str]) -> Callable[..., str]:
    """Return a function that runs a command of this environment in a folder and returns what it printed; it must end as expected."""

    def run(folder: Path, name: str, *arguments: str, ends: Sequence[int] = (0,)) -> str:
        tool = str(Path(sys.executable).parent / name)
        done = subprocess.run(
            [tool, *arguments], cwd=folder, env=surroundings, capture_output=True, text=True, timeout=600, check=False
        )
        assert done.returncode in ends, (
            f"{name} {' '.join(arguments)} ended with {done.returncode}:\n{done.stderr[-4000:]}"
        )
        return done.stdout

    return run
