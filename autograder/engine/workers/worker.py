"""A worker: a process that grades one submission after the other, and is started as a program.

It holds the reference and the checks, with the questions and the answers of all that has been asked before, and forks checkers, which do
the grading: none has to work out again what an earlier one has, and one that is lost takes nothing along. A checker grades some
submissions, one after the other; to fork and to warm up another one costs a tenth of a submission.

A checker grades up to 32 submissions, each in its own shell, if their graded cells only call checks. A checker for each submission would
cost a fork, an exit, and everything that a process does slowly the first time: half of the checker's processor time. Three rules keep
submissions independent. The points of a submission do not depend on those before it, which a test asserts. Graded cells that do more than
import, name values and call `check` could change something in their process, so a new checker follows them; a new one also follows a
checker that has grown by 256 MiB. A checker that crashes or hangs costs no points: a new one grades the submission again. If that one
crashes too, the grader has failed, and only a submission that loses its checkers again in the next run gets no points. The fork was never
a security boundary: a checker is not sandboxed, so code that took over a checker would not need a second submission.
"""

from __future__ import annotations

import base64
import contextlib
import gc
import hashlib
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import zipfile
from dataclasses import asdict, replace
from pathlib import Path
from time import monotonic
from typing import Any

from nbformat import NotebookNode, reader

from autograder.engine.interface import Execution, Executor, Submission
from autograder.engine.sandbox import linux
from autograder.engine.sandbox.lockdown import limit_memory, raise_file_limit
from autograder.engine.settings import GradingSettings
from autograder.engine.transport.channel import Channel, ClosedError
from autograder.engine.workers.forked_process import ForkedProcess
from autograder.engine.workers.temp_folders import LOCK

# What a checker may need beyond the time that a submission has, for its own work.
_MARGIN_SECONDS = 120
# Memory that a checker may add to what it shares with its worker; and with how much of it another one takes its place, after how many
# submissions in any case.
_CHECKER_MB, _GROWN_MB = 4096, 256
_SUBMISSIONS = 32


def main(descriptor: int) -> None:
    """Grade what comes over a connection, until it is closed."""
    channel = Channel(socket.socket(fileno=descriptor), 2**31)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the business of the process that a person has started
    raise_file_limit()
    engine: Executor | None = None
    try:
        while True:
            ((what, content),) = json.loads(channel.receive()).items()
            if what == "settings":
                # A new run. What this process has imported, and the questions that it has made, stay.
                settings = GradingSettings(**content)
                if not isinstance(engine, Engine) or not engine.change(settings):
                    if engine is not None:
                        engine.close()
                    engine = _made(settings)
                continue
            assert engine is not None, "settings come first"
            if what == "news":
                if isinstance(engine, Engine):
                    engine.hear(content)
                continue
            execution = asdict(engine.grade_one(Submission(**content)))
            news = engine.tell() if isinstance(engine, Engine) else ""
            channel.send(json.dumps({"execution": execution, "news": news}).encode())
            if isinstance(engine, FailedExecutor):
                return  # the next worker may be able
    except ClosedError:
        return
    finally:
        if engine is not None:
            engine.close()
        if ((mine := Path(tempfile.gettempdir())) / LOCK).is_file():
            # It was made for this process, and who has made it may have been killed.
            shutil.rmtree(mine, ignore_errors=True)


def _made(settings: GradingSettings) -> Executor:
    from autograder.engine.jupyter.kernel_executor import KernelExecutor

    try:
        return Engine(settings) if settings.warm else KernelExecutor(settings)
    except OSError as error:  # no room for temporary files, no process, no memory
        return FailedExecutor(f"a worker could not be made ready ({type(error).__name__}: {error})")


class FailedExecutor:
    """What answers in the place of an engine that this machine could not make.

    Args:
        reason: why.
    """

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def grade_one(self, submission: Submission) -> Execution:
        """Return the reason."""
        return Execution(submission.student, "", 0.0, self._reason)

    def close(self) -> None:
        """Hold nothing."""


class Engine:
    """Runs submissions in forked, sandboxed processes and lets a checker decide.

    Args:
        settings: limits, device, seed and the students' package.
    """

    def __init__(self, settings: GradingSettings) -> None:
        from autograder.engine.checker.zygote_client import ZygoteClient
        from autograder.engine.workers.sandbox_settings import engine_settings, student_environment

        self._settings = settings
        self._folder = Path(tempfile.mkdtemp(prefix="tfcourse-"))
        self._packages = self._folder / "packages"
        packages = str(self._packages) if settings.package else ""
        self._nursery = ZygoteClient(engine_settings(settings, packages), student_environment(settings, self._folder))
        if settings.package:
            self._folder.chmod(0o755)
            self._packages.mkdir(mode=0o755)
            self._nursery.enter(_unpacked(settings.package, self._packages))
        self._nursery.start()
        self._checker: ForkedProcess | None = None
        # What known mistakes have answered, as the stock tells it, in base64: for the next checker, for the one there is, for others.
        self._for_stock: list[str] = []
        self._for_checker: list[str] = []
        self._for_others = ""
        # While the zygote prepares itself.
        os.environ["TFCOURSE_SEED"], os.environ["TFCOURSE_DEVICE"] = str(settings.seed or 0), settings.device
        self._prepare()

    def _prepare(self) -> None:
        import torch

        import tfcourse
        from autograder.engine.checker import answer_cache, checker  # noqa: F401 - the checker for those that are forked here
        from autograder.engine.checker.remote_objects import RemoteNamespace
        from autograder.engine.student import warm_up

        torch.set_num_threads(1)
        warm_up.reduce_garbage_collection()
        tfcourse._installed_check()  # what has been found here, checkers need not look for
        self._stock = answer_cache.AnswerCache(self._settings)
        warm_up.shell(RemoteNamespace()).forget()

    def change(self, settings: GradingSettings) -> bool:
        """Take settings with another package for students, and return whether that was all that they differ in.

        Of the packages before nothing is left: that of a later chapter has the solutions of this one.
        """
        from autograder.engine.checker.zygote_client import ZygoteError

        both = settings.package and self._settings.package
        if not both or settings != replace(self._settings, package=settings.package):
            return False
        if settings.package != self._settings.package:
            self._settings = settings
            for path in self._packages.iterdir():
                shutil.rmtree(path)
            self._dismiss()
            with contextlib.suppress(ZygoteError):  # the next submission finds it out, and starts another one
                self._nursery.enter(_unpacked(settings.package, self._packages))
        return True

    def grade_one(self, submission: Submission) -> Execution:
        """Run a submission. Never raises for what the submission does."""
        begin, self._for_others = monotonic(), ""
        result = self._attempt(submission)
        if "again" in result or "lost" in result:
            # The zygote or the checker was gone. That may be nobody's fault, so it gets another chance, and only one.
            result = self._attempt(submission)
        seconds = monotonic() - begin
        if "lost" in result:
            # The machine may be short of memory. Who makes grading impossible must not keep an earlier grade by it, though: so with this
            # comes what is recorded if it happens again in another run.
            failure = f"grading it did not come to an end, twice ({result['lost']})"
            return Execution(submission.student, as_ungradable(submission.notebook, result["lost"]), seconds, failure)
        if "notebook" not in result:
            # The grader's own fault, or the machine's. If it is the same in the next run, though, no earlier grade may outlive it.
            notebook = as_ungradable(submission.notebook, result["failure"]) if result.get("by_submission") else ""
            return Execution(submission.student, notebook, seconds, result.get("again") or result["failure"])
        if result["news"]:
            self._for_others = result["news"]
            self._for_stock.append(result["news"])
        return Execution(
            submission.student, result["notebook"], seconds, "", result["isolation"], tuple(result["layers"])
        )

    def tell(self) -> str:
        """Return what known mistakes have answered during the last submission."""
        return self._for_others

    def hear(self, news: str) -> None:
        """Take note of what another worker tells."""
        self._for_stock.append(news)
        self._for_checker.append(news)

    def _learn(self, news: list[str]) -> None:
        for told in news:
            self._stock.learn(base64.b64decode(told))
        news.clear()

    def _attempt(self, submission: Submission) -> dict[str, Any]:
        from autograder.engine.checker.zygote_client import ZygoteError

        try:
            if self._nursery.make_ready():
                self._dismiss()  # what it knows is the zygote before
        except ZygoteError as error:
            self._nursery.close()
            return {"again": str(error)}
        if self._settings.device != "cpu":  # a CUDA context does not survive a fork
            notebook = reader.reads(submission.notebook)
            self._stock.lay_in(self._stock.lacks(notebook))
            self._learn(self._for_stock)
            return self._check(submission, notebook)
        result = self._checked(submission)
        if "lacks" in result:
            # Whatever a checker works out goes with it. So the worker does that, and forks another one.
            self._dismiss()
            self._stock.lay_in(result["lacks"])
            linux.use_large_pages()
            result = self._checked(submission)
        if "notebook" not in result:
            # A checker that was lost in mid-sentence leaves the zygote waiting for the end of it, and a student's process behind.
            self._dismiss()
            self._nursery.close()
        return result

    def _checked(self, submission: Submission) -> dict[str, Any]:
        """Let a checker grade a submission, and return what it says."""
        if self._checker is None:
            self._learn(self._for_stock)
            self._for_checker.clear()
            gc.freeze()  # what is there now is shared with the checker, as long as nobody touches it
            self._checker = ForkedProcess(self._serve)
        question = {"submission": asdict(submission), "news": self._for_checker}
        result = self._checker.ask(question, self._settings.submission_seconds + _MARGIN_SECONDS)
        self._for_checker.clear()
        if result.pop("leaves", True):
            self._dismiss()
        return result

    def _dismiss(self) -> None:
        if self._checker is not None:
            self._checker.close()
            self._checker = None

    def _serve(self, channel: Channel) -> None:
        """Grade what comes over a connection: in a checker, until it is closed or another checker had better go on.

        Graded cells that do more than to ask may change what a process has but once (a default of PyTorch's, an attribute of a module), and
        not come to change it back: then the next submission gets another checker.
        """
        # An answer that makes too much of itself fails here, and does not take the machine's memory.
        limit_memory(_CHECKER_MB)
        held = linux.own_memory()
        for left in reversed(range(_SUBMISSIONS)):
            question = json.loads(channel.receive())
            submission = Submission(**question["submission"])
            self._learn(question["news"])
            notebook = reader.reads(submission.notebook)
            lacks = self._stock.lacks(notebook)
            result = {"lacks": lacks} if lacks else self._check(submission, notebook)
            leaves = not left or not _only_asks(notebook)
            del notebook
            gc.collect()
            gc.freeze()  # what has stayed will stay, and need not be looked through every time
            leaves = leaves or linux.own_memory() - held > _GROWN_MB * 2**20
            channel.send(json.dumps({**result, "leaves": leaves}).encode())

    def _check(self, submission: Submission, notebook: NotebookNode) -> dict[str, Any]:
        """Grade a submission in this process."""
        from autograder.engine import seeding
        from autograder.engine.checker.checker import Checker
        from autograder.engine.checker.remote_objects import RemoteNamespace
        from autograder.engine.checker.zygote_client import ZygoteError
        from autograder.engine.student.shell import make_shell

        limit = self._settings.answers_mb * 2**20
        seeding.seed_all(self._settings.student_seed)
        shell = make_shell(RemoteNamespace())
        checker = Checker(self._settings, lambda: self._nursery.child(limit), self._nursery.how_it_ended, shell)
        try:
            checker.run(notebook, {name: base64.b64decode(data) for name, data in submission.files.items()})
            # Not as a file has it: what nbformat does for the eyes of people takes ten times as long.
            executed = json.dumps(notebook, ensure_ascii=False)
        except ZygoteError as error:
            return {"again": str(error)}
        except Exception as error:  # ours, whatever it is: the student must not lose by it
            by_machine = isinstance(error, (OSError, MemoryError))
            return {"failure": f"{type(error).__name__}: {error}", "by_submission": not by_machine}
        finally:
            shell.forget()  # nothing of it may stay for the next submission
        return {
            "notebook": executed,
            "news": base64.b64encode(self._stock.news()).decode(),
            "isolation": checker.isolation,
            "layers": checker.layers,
        }

    def close(self) -> None:
        """End the checker and the zygote, and take away what was unpacked."""
        self._dismiss()
        self._nursery.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _only_asks(notebook: NotebookNode) -> bool:
    """Whether the cells of a notebook that run in a checker do nothing there but ask."""
    from autograder.static_analysis.cell_names import only_calls_check
    from autograder.submission.test_cells import is_locked, is_test

    return all(
        only_calls_check(cell.source)
        for cell in notebook.cells
        if cell.cell_type == "code" and (is_test(cell) or is_locked(cell))
    )


def as_ungradable(notebook: str, reason: str) -> str:
    """Return a notebook that was not run to its end, with that as the error of its test cells."""
    from autograder.submission.problem import Problem, add_problems
    from autograder.submission.test_cells import error_output, is_test

    what = f"Grading it did not come to an end, again and again ({reason}); it was given no points."
    content = reader.reads(notebook)
    for cell in content.cells:
        if is_test(cell):
            cell.outputs = [error_output("not gradable", what)]
    add_problems(content, [Problem("grading stopped", what, do="Look at its code, or replay it.", fatal=True)])
    return json.dumps(content, ensure_ascii=False)


def _unpacked(wheel: str, shelf: Path) -> str:
    """Unpack a package where students' processes, which run as somebody else, can read it, and return its folder's name."""
    name = hashlib.sha256(Path(wheel).read_bytes()).hexdigest()[:16]
    folder = shelf / name
    folder.mkdir(mode=0o755)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return name


if __name__ == "__main__":
    main(int(sys.argv[1]))
