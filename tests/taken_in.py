"""Take in a notebook that a test has in memory."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from autograder.intake.notebook.intake import Intake, load_submission
from autograder.intake.notebook.manifest import Manifest


def taken_in(data: bytes, manifest: Manifest) -> Intake:
    """Return what becomes of a submitted file with these contents."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "student", manifest.chapter, f"{manifest.chapter}.ipynb")
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
        return load_submission(path, manifest)
