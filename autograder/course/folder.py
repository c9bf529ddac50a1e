"""Open and create the course folder, which is also a course for nbgrader and its formgrader."""

from __future__ import annotations

import json
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from traitlets.config import Config, PyFileConfigLoader

from autograder.atomic_files import staged_file
from autograder.errors import CourseError

CONFIG_NAME = "nbgrader_config.py"
SEED_NAME = "secret_seed"

_CONFIG = """\
# The configuration of this nbgrader course. Made once by `tfcourse`; it is yours to change.
from autograder.grading.plugin import configure

c = get_config()  # noqa: F821

# With this, nbgrader and its formgrader read, run and judge submissions as `tfcourse autograde` does.
configure(c)

c.CourseDirectory.course_id = "tfcourse"

# Seconds that one cell of a submission may run.
c.ExecutePreprocessor.timeout = 60
c.Execute.timeout = 60

# All limits, with their defaults: tfcourse's docs, and the class GradingSettings in autograder/engine/settings.py.
# c.GradingLimits.exercise_seconds = 60
# c.GradingLimits.submission_seconds = 900
# c.GradingLimits.memory_mb = 4096
# c.GradingLimits.processes = 64
# c.GradingLimits.scratch_mb = 256

# A cell keeps this much of what it prints.
c.LimitOutput.max_lines = 500
c.LimitOutput.max_traceback = 100
"""


@dataclass(frozen=True)
class Course:
    """A course folder."""

    root: Path  # the folder

    @classmethod
    def open(cls, root: Path, *, create: bool = False) -> Course:
        """Open the course in a folder, and optionally create it.

        Args:
            create: make the folder, which its owner alone may read, and its configuration if they are missing.

        Raises:
            CourseError: if there is no course there and none is to be made, or the folder cannot be written.
        """
        root = root.resolve()
        if not (root / CONFIG_NAME).is_file():
            if not create:
                raise CourseError(
                    "there is no course here (no nbgrader_config.py)",
                    where=root,
                    do="Release a chapter first: tfcourse assign CHAPTER. Or name the folder with --course.",
                )
            try:
                root.parent.mkdir(parents=True, exist_ok=True)
                root.mkdir(mode=0o700, exist_ok=True)
                _write_once(root / CONFIG_NAME, _CONFIG)
            except OSError as error:
                reason = error.strerror or str(error)
                raise CourseError(
                    f"the course folder cannot be written ({reason})", where=root, do="Choose another with --course."
                ) from error
        return cls(root)

    @property
    def gradebook_url(self) -> str:
        """The gradebook's database, as nbgrader's ``db_url``."""
        configured = self.config().CourseDirectory.get("db_url")
        return str(configured) if configured else f"sqlite:///{self.root / 'gradebook.db'}"

    def folder(self, step: str, student: str = ".", chapter: str = "") -> Path:
        """Return the folder of a step (``source``, ``release``, ``submitted``, ``autograded``, ``feedback``)."""
        # Links below the course are not followed: what a student has put there is looked at before it is opened.
        return self.root.resolve() / step / student / chapter

    def config(self) -> Config:
        """Load the course's nbgrader configuration, rooted at this folder."""
        config: Config = PyFileConfigLoader(CONFIG_NAME, path=str(self.root)).load_config()
        config.CourseDirectory.root = str(self.root)
        return config

    def secret_seed(self) -> int:
        """Return the seed of the hidden tests, which the first call draws.

        It is stored in ``COURSE/secret_seed``, which only the owner may read. No release, export or feedback contains it, because the
        hidden tests can be computed from it. If the file is lost, the seed is taken from a result that was graded with it, because another
        seed would give other tests.

        Raises:
            CourseError: if the file does not contain a number.
        """
        path = self.root / SEED_NAME
        if not path.exists():
            seed = self._recorded_seed() or secrets.randbits(_SEED_BITS) | _SMALLEST_SEED
            _write_once(path, f"{seed}\n", 0o600)
        text = path.read_text(encoding="ascii", errors="replace").strip()
        if not (text.isascii() and text.isdigit()):
            raise CourseError(
                "the file does not contain the course's secret seed, which is an integer",
                where=path,
                do="Put back a copy of it. Without one, move the file away: a new seed is drawn, and everything is graded again.",
            )
        return int(text)

    def _recorded_seed(self) -> int | None:
        """Return the secret seed recorded in a result, or None. Smaller, configured seeds are skipped."""
        for path in sorted(self.root.glob("results/*/*.json")):
            with suppress(OSError, ValueError, KeyError, TypeError):
                if (seed := int(json.loads(path.read_text(encoding="utf-8"))["seed"])) >= _SMALLEST_SEED:
                    return seed
        return None


# PyTorch takes 64 bits, with a sign.
_SEED_BITS = 62
_SMALLEST_SEED = 1 << (_SEED_BITS - 1)


def _write_once(path: Path, text: str, mode: int | None = None) -> None:
    """Write a file unless another process has created it first.

    Args:
        mode: its permissions; by default determined by the umask.
    """
    # Each process has a draft of its own.
    at = path.with_name(f"{path.name}.{os.getpid()}.part")
    with staged_file(path, text.encode(), at=at, mode=mode) as draft:
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        except OSError:  # a file system that has no links
            if not path.exists():
                draft.replace(path)
