"""What a dry run has executed, kept for the run that is to follow it, so that nothing is executed twice.

It is kept in the user's cache and not in the course: a dry run writes nothing there, and works where nothing may be written.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from autograder.atomic_files import write_atomically
from autograder.course.folder import Course
from autograder.engine.interface import Execution, Submission
from autograder.engine.settings import GradingSettings
from autograder.record.provenance import Provenance

Run = Callable[[Iterable[Submission]], Iterator[Execution]]


@dataclass(frozen=True)
class DryRunCache:
    """The executions of a dry run of one chapter.

    Attributes:
        folder: where they are kept.
        writes: whether this is the dry run, which keeps them, or the run after it, which finds them.
    """

    folder: Path
    writes: bool

    def executions(
        self, submissions: Iterable[Submission], settings: GradingSettings, current: Callable[[], Provenance], run: Run
    ) -> Iterator[Execution]:
        """Run submissions, and keep what comes of them; or run those of which nothing is kept.

        Args:
            submissions: what to run.
            settings: how.
            current: returns with what grades are made now; another answer means that nothing that is kept counts.
            run: runs submissions.
        """
        keys: dict[str, str] = {}
        stored: list[Execution] = []

        def remaining() -> Iterator[Submission]:
            for submission in submissions:
                keys[submission.student] = key = _key(submission, settings, current())
                execution_before = None if self.writes else self._read(key, submission.student)
                if execution_before is None:
                    yield submission
                else:
                    stored.append(execution_before)

        if self.writes:
            self.clear()
        for execution in run(remaining()):
            yield from _taken(stored)
            if self.writes and not execution.failure:
                self._write(keys[execution.student], execution)
            yield execution
        yield from _taken(stored)

    def clear(self) -> None:
        """Forget what is kept."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _read(self, key: str, student: str) -> Execution | None:
        try:
            data = json.loads((self.folder / key).read_text(encoding="utf-8"))
            execution = Execution(**{**data, "layers": tuple(data["layers"])})
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return execution if execution.student == student else None

    def _write(self, key: str, execution: Execution) -> None:
        with suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            data = json.dumps(asdict(execution)).encode("utf-8", "backslashreplace")
            write_atomically(self.folder / key, data, durable=False)


def dry_run_cache(course: Course, chapter: str, *, writes: bool) -> DryRunCache:
    """Return where the executions of a chapter of a course are kept between two commands."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return DryRunCache(cache / "tfcourse" / "tried" / _hash(str(course.root))[:16] / chapter, writes)


def _key(submission: Submission, settings: GradingSettings, current: Provenance) -> str:
    """Return a hash of everything that decides what comes of running a submission."""
    # How many run at once decides nothing; the package is known by what it holds.
    how = asdict(replace(settings, jobs=1, package=""))
    return _hash(json.dumps([asdict(submission), how, current.to_dict()], sort_keys=True, default=str))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def _taken(executions: list[Execution]) -> Iterator[Execution]:
    while executions:
        yield executions.pop(0)
