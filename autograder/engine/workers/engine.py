"""Grade submissions in a worker: run them in forks of a zygote, and check them in forks of this process.

A checker grades up to 32 submissions, each in its own shell, if their graded cells only call checks. A checker per submission would need a
fork, an exit and all first-time costs of a process: half of the checker's CPU time. Three rules keep submissions independent:

- The points of a submission do not depend on earlier submissions; a test asserts this.
- Graded cells that do more than import, name values and call `check` could change global state, so a new checker starts after them. A new
  checker also starts when the old one has grown by 256 MiB.
- A checker that crashes or hangs costs no points: a new checker grades the submission again. If that checker crashes too, the grader has
  failed. Only a submission whose checkers crash again in the next run gets no points.

The fork was never a security boundary: a checker is not sandboxed, so code that took over a checker would not need a second submission.
"""

from __future__ import annotations

import base64
import contextlib
import gc
import hashlib
import json
import os
import shutil
import socket
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from functools import cache, partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from nbformat import NotebookNode, reader

from autograder.engine.checker.cell_results import limit_outputs, refuse_notebook
from autograder.engine.interface import Execution, Submission
from autograder.engine.sandbox import linux
from autograder.engine.sandbox.lockdown import limit_memory
from autograder.engine.settings import GradingSettings
from autograder.engine.transport.channel import Channel
from autograder.engine.workers.fork_servers import FOLDERS
from autograder.engine.workers.forked_process import ForkedProcess

if TYPE_CHECKING:
    from autograder.engine.checker.answer_cache import AnswerCache

# Seconds that a checker may need for its own work, beyond the limits of a submission.
_MARGIN_SECONDS = 120
# MiB that a checker may add to the memory that it shares with its worker; the growth in MiB after which a new checker replaces it; and
# the number of submissions after which a new one replaces it in any case.
_CHECKER_MB, _GROWN_MB = 4096, 256
_SUBMISSIONS = 32


@cache
def warm_up_worker() -> None:
    """Import the modules that checkers need, so that forked processes inherit them."""
    import torch

    from autograder.engine.checker import checker  # noqa: F401 - for those that are forked here
    from autograder.engine.checker.answer_cache import list_chapter_exercises

    torch.set_num_threads(1)
    gc.set_threshold(20_000)  # a checker ends soon
    list_chapter_exercises("")


@cache
def answer_cache(seed: int, device: str) -> AnswerCache:
    """Return this process's cache of test cases and answers for a seed and a device."""
    from autograder.engine.checker.answer_cache import AnswerCache

    return AnswerCache(seed, device)


class Standby(NamedTuple):
    """A zygote that a fork server forks for this worker in advance."""

    connection: socket.socket  # the connection to it
    environment: Mapping[str, str]  # its environment variables, without folders

    def take_matching(self, environment: Mapping[str, str]) -> socket.socket | None:
        """Return the zygote's connection if it has the given environment; otherwise close it."""
        if {name: value for name, value in environment.items() if name not in FOLDERS} == self.environment:
            return self.connection
        self.connection.close()
        return None


class Engine:
    """Runs submissions in sandboxed processes and grades them in a checker.

    Args:
        settings: limits, device, seed and the students' package.
        standby: a zygote that may be there already.
    """

    def __init__(self, settings: GradingSettings, standby: Standby | None = None) -> None:
        from autograder.engine.checker.zygote_client import ZygoteClient
        from autograder.engine.workers.sandbox_settings import engine_settings, student_environment

        self._settings = settings
        self._folder = Path(tempfile.mkdtemp(prefix="tfcourse-"))
        self._packages = self._folder / "packages"
        packages = str(self._packages) if settings.package else ""
        environment = student_environment(settings, self._folder)
        connection = standby.take_matching(environment) if standby is not None else None
        self._zygote = ZygoteClient(engine_settings(settings, packages), environment, standby=connection)
        if settings.package:
            self._folder.chmod(0o755)
            self._packages.mkdir(mode=0o755)
            self._zygote.enter_folder(_unpack_wheel(settings.package, self._packages))
        self._zygote.start()
        self._checker: ForkedProcess | None = None
        # Known mistakes' answers that the checker has added, in base64. The cache gets them before the next checker is forked.
        self._new_answers: list[str] = []
        self._preparation = 0.0  # seconds of the last submission that do not count as its own
        # In parallel to the zygote's preparation.
        warm_up_worker()
        os.environ["TFCOURSE_DEVICE"] = settings.device
        self._answer_cache = answer_cache(settings.seed or 0, settings.device)

    def change_settings(self, settings: GradingSettings) -> bool:
        """Switch to settings with another student package; return whether they differ in nothing else.

        The earlier packages are removed: the package of a later chapter contains this chapter's solutions.
        """
        from autograder.engine.checker.zygote_client import ZygoteError

        both = settings.package and self._settings.package
        if not both or settings != replace(self._settings, package=settings.package):
            return False
        if settings.package != self._settings.package:
            self._settings = settings
            for path in self._packages.iterdir():
                shutil.rmtree(path)
            self._end_checker()
            with contextlib.suppress(ZygoteError):  # the next submission notices and starts a new one
                self._zygote.enter_folder(_unpack_wheel(settings.package, self._packages))
        return True

    def grade_one(self, submission: Submission) -> Execution:
        """Run a submission. Submission code never makes it raise."""
        begin, self._preparation = monotonic(), 0.0
        result = self._attempt_submission(submission)
        if "again" in result or "lost" in result:
            # The zygote or the checker has died, perhaps not because of the submission: try once more.
            result = self._attempt_submission(submission)
        seconds = monotonic() - begin - self._preparation
        if "lost" in result:
            # The machine may be short of memory. But a submission that makes grading impossible must not keep an earlier grade: send
            # the result to record if this happens again in another run.
            failure = f"grading it did not come to an end, twice ({result['lost']})"
            return Execution(submission.student, mark_ungradable(submission.notebook, result["lost"]), seconds, failure)
        if "notebook" not in result:
            # A failure of the grader or the machine. If it happens again in the next run, no earlier grade may survive.
            notebook = mark_ungradable(submission.notebook, result["failure"]) if result.get("by_submission") else ""
            return Execution(submission.student, notebook, seconds, result.get("again") or result["failure"])
        if result["answers"]:
            self._new_answers.append(result["answers"])
        return Execution(
            submission.student,
            result["notebook"],
            seconds,
            isolation=result["isolation"],
            layers=tuple(result["layers"]),
            signatures=result["signatures"],
        )

    def _merge_answers(self) -> None:
        for answers in self._new_answers:
            self._answer_cache.merge(base64.b64decode(answers))
        self._new_answers.clear()

    def _attempt_submission(self, submission: Submission) -> dict[str, Any]:
        from autograder.engine.checker.zygote_client import ZygoteError

        try:
            with self._exclude_preparation():
                if self._zygote.make_ready():
                    self._end_checker()  # the checker is connected to the previous zygote
        except ZygoteError as error:
            self._zygote.close()
            return {"again": str(error)}
        if self._settings.device != "cpu":  # a CUDA context does not survive a fork
            notebook = reader.reads(submission.notebook)
            with self._exclude_preparation():
                self._answer_cache.fill(self._answer_cache.missing_exercises(notebook))
                self._merge_answers()
            return self._check_submission(submission, notebook)
        result = self._ask_checker(submission)
        if "lacks" in result:
            # A checker's new questions end with it. So the worker loads them and forks a new checker.
            self._end_checker()
            with self._exclude_preparation():
                self._answer_cache.fill(result["lacks"])
                linux.use_large_pages()
            result = self._ask_checker(submission)
        if "notebook" not in result:
            # A checker that died within a message leaves the zygote waiting for the rest, and a student's process running.
            self._end_checker()
            self._zygote.close()
        return result

    @contextlib.contextmanager
    def _exclude_preparation(self) -> Iterator[None]:
        """Exclude shared preparation from the time of the first submission."""
        begin = monotonic()
        try:
            yield
        finally:
            self._preparation += monotonic() - begin

    def _ask_checker(self, submission: Submission) -> dict[str, Any]:
        """Grade a submission in a checker, and return its answer."""
        from autograder.engine.checker.answer_cache import list_forbidden_functions

        if self._checker is None:
            self._merge_answers()
            gc.freeze()  # the checker shares present memory until either process writes to it
            self._checker = ForkedProcess(self._run_checker)
        # A submission has its time for all cells, for the process of each set of forbidden functions, and for hidden questions.
        phases = 2 + len(list_forbidden_functions(submission.chapter))
        seconds = self._settings.submission_seconds * phases + _MARGIN_SECONDS
        result = self._checker.ask(asdict(submission), seconds)
        if result.pop("leaves", True):
            self._end_checker()
        return result

    def _end_checker(self) -> None:
        if self._checker is not None:
            self._checker.close()
            self._checker = None

    def _run_checker(self, channel: Channel) -> None:
        """Grade submissions from a connection until it closes or a new checker should take over."""
        # A huge answer fails in this process, and does not use up the machine's memory.
        limit_memory(_CHECKER_MB)
        held = linux.own_memory()
        for remaining in reversed(range(_SUBMISSIONS)):
            submission = Submission(**json.loads(channel.receive()))
            notebook = reader.reads(submission.notebook)
            lacks = self._answer_cache.missing_exercises(notebook)
            result = {"lacks": lacks} if lacks else self._check_submission(submission, notebook)
            del notebook
            gc.collect()
            gc.freeze()  # surviving objects will survive; the collector need not scan them again
            leaves = not remaining or linux.own_memory() - held > _GROWN_MB * 2**20
            channel.send(json.dumps({**result, "leaves": leaves}).encode())

    def _check_submission(self, submission: Submission, notebook: NotebookNode) -> dict[str, Any]:
        """Grade a submission in this process."""
        from autograder.engine import seeding
        from autograder.engine.checker.checker import Checker
        from autograder.engine.checker.zygote_client import ZygoteError

        limit = self._settings.answers_mb * 2**20
        seeding.seed_all(self._settings.student_seed)
        new_child = partial(self._zygote.fork_child, limit)
        checker = Checker(self._settings, lambda names: new_child(forbidden=names), self._zygote.wait_for_exit)
        try:
            checker.run(notebook, {name: base64.b64decode(data) for name, data in submission.files.items()})
            limit_outputs(notebook)
            # Plain JSON: nbformat's formatting for readers takes ten times as long.
            executed = json.dumps(notebook, ensure_ascii=False)
        except ZygoteError as error:
            return {"again": str(error)}
        except Exception as error:  # any exception here is the grader's fault and must not cost the student points
            by_machine = isinstance(error, (OSError, MemoryError))
            return {"failure": f"{type(error).__name__}: {error}", "by_submission": not by_machine}
        return {
            "notebook": executed,
            "answers": base64.b64encode(self._answer_cache.new_answers()).decode(),
            "isolation": checker.isolation,
            "layers": checker.layers,
            "signatures": checker.signatures,
        }

    def close(self) -> None:
        """End the checker and the zygote, and remove unpacked packages."""
        self._end_checker()
        self._zygote.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def mark_ungradable(notebook: str, reason: str) -> str:
    """Return a notebook whose test cells have the error that grading did not finish."""
    from autograder.intake.notebook.problem import Problem, add_problems

    message = f"Grading it did not come to an end, again and again ({reason}); it was given no points."
    content = reader.reads(notebook)
    refuse_notebook(content, message)
    add_problems(content, [Problem("grading stopped", message, do="Look at its code, or replay it.", fatal=True)])
    return json.dumps(content, ensure_ascii=False)


def _unpack_wheel(wheel: str, shelf: Path) -> str:
    """Unpack a wheel into a folder that students' processes can read, and return the folder's name."""
    name = hashlib.sha256(Path(wheel).read_bytes()).hexdigest()[:16]
    folder = shelf / name
    folder.mkdir(mode=0o755)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return name
