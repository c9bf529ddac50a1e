"""Grades a course again and again in processes that end suddenly. Run by test_journal.py; everything slow to import is imported once.

Reads one JSON object a line from standard input (``words`` for the command line, ``crash``: a named point), and answers
each with the exit code of that process, negative for a signal.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import nbformat
from nbgrader.converters import GenerateFeedback
from nbgrader.converters.base import BaseConverter
from sqlalchemy import event
from sqlalchemy.orm import Session

import autograder.commands.autograde as autograde_command
from autograder.commands.main import main
from autograder.engine.interface import Execution, Submission
from autograder.engine.settings import GradingSettings
from autograder.engine.workers.pool import run_concurrently
from autograder.grading import autograde, recorder
from autograder.record import provenance
from autograder.record.journal import Journal


@dataclass(frozen=True)
class Drawn:
    """An executor that runs nothing: points are drawn from the seed, the student and the exercise."""

    seed: int

    def grade_one(self, submission: Submission) -> Execution:
        """Give every test cell some of its points."""
        notebook = nbformat.reads(submission.notebook, as_version=4)
        for cell in notebook.cells:
            mark = cell.metadata.get("nbgrader", {})
            if mark.get("grade_id", "").startswith("test_"):
                drawn = hashlib.sha256(f"{self.seed} {submission.student} {mark['grade_id']}".encode()).digest()[0]
                text = str(drawn % (int(mark["points"]) + 1))
                cell.outputs = [nbformat.v4.new_output("execute_result", {"text/plain": text}, execution_count=1)]
        return Execution(submission.student, nbformat.writes(notebook), 0.1)

    def close(self) -> None:
        """Nothing is open."""


def drawn(settings: GradingSettings) -> Drawn:
    """Return the executor."""
    assert settings.seed is not None
    return Drawn(settings.seed)


def executions(
    make: object, settings: GradingSettings, submissions: Iterable[Submission], workers: object
) -> Iterator[Execution]:
    """Run submissions, whatever a run asks for, with that executor."""
    return run_concurrently(partial(drawn, settings), submissions, jobs=settings.jobs)


def end(number: int = signal.SIGKILL) -> None:
    """End this process as suddenly as it can be."""
    os.kill(os.getpid(), number)
    time.sleep(0.1)


def around(owner: Any, name: str, *, nth: int = 2, before: bool = False, number: int = signal.SIGKILL) -> None:
    """Let the process end at the nth call of a function: before its work, or after it."""
    work: Callable[..., Any] = getattr(owner, name)
    calls = 0

    def ending(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if before and calls == nth:
            end(number)
        done = work(*arguments, **options)
        if not before and calls == nth:
            end(number)
        return done

    setattr(owner, name, ending)


def half_on_the_disk(session: Session) -> None:
    """End this process when SQLite has begun to write into the file what it can take back."""
    connection = session.connection()
    connection.exec_driver_sql("PRAGMA cache_size = 1")
    for number in range(200):
        connection.exec_driver_sql("INSERT INTO student (id, first_name) VALUES (?, ?)", (f"half {number}", "x" * 500))
    end()


def at_commit(moment: str, nth: int, how: Callable[[Session], None] = lambda session: end()) -> None:
    """Let the process end at the nth commit to the gradebook after the second submission was begun."""
    begun, commits = 0, 0
    tell = Journal.begun

    def counting(*arguments: Any, **options: Any) -> None:
        nonlocal begun
        tell(*arguments, **options)
        begun += 1

    def committing(session: Session) -> None:
        nonlocal commits
        commits += begun >= 2
        if commits == nth:
            how(session)

    Journal.begun = counting  # type: ignore[method-assign]
    event.listen(Session, moment, committing)


def half_a_notebook() -> None:
    """Let the process end while nbgrader writes the second graded notebook."""
    write = BaseConverter.write_single_notebook
    calls = 0

    def half(self: Any, output: str, resources: Any) -> None:
        nonlocal calls
        calls += 1
        write(self, output[: len(output) // 2] if calls == 4 else output, resources)
        if calls == 4:
            end()

    BaseConverter.write_single_notebook = half


POINTS: dict[str, Callable[[], None]] = {
    "marked stale": lambda: around(Journal, "stale", nth=1),
    "before begun": lambda: around(Journal, "begun", before=True),
    "begun": lambda: around(Journal, "begun"),
    "before the first commit": lambda: at_commit("before_commit", 1),
    "half of the first commit": lambda: at_commit("before_commit", 1, half_on_the_disk),
    "after the first commit": lambda: at_commit("after_commit", 1),
    "after the second commit": lambda: at_commit("after_commit", 2),
    "half a graded notebook": half_a_notebook,
    "recorded by nbgrader": lambda: around(autograde.GradebookWriter, "record"),
    "before the result": lambda: around(recorder, "write_result", before=True),
    "after the result": lambda: around(recorder, "write_result"),
    "recorded": lambda: around(Journal, "recorded"),
    "names of students": lambda: around(autograde.GradebookWriter, "name_students", nth=1, before=True),
    "before a feedback page": lambda: around(GenerateFeedback, "start", before=True),
    "after a feedback page": lambda: around(GenerateFeedback, "start"),
    "Ctrl-C when begun": lambda: around(Journal, "begun", number=signal.SIGINT),
    "Ctrl-C after the result": lambda: around(recorder, "write_result", number=signal.SIGINT),
}


def grade(words: list[str], crash: str, said: str) -> None:
    """Be the process that ends."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    if crash:
        POINTS[crash]()
    code = 0
    try:
        main(words)
    except SystemExit as ended:
        code = int(ended.code or 0)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def serve() -> None:
    """Answer until there are no more questions."""
    autograde.executions = executions
    known = provenance.Provenance("checks", environment=provenance.environment())
    autograde.provenance = lambda settings, workers: known  # asked once, and not by every process
    autograde_command.start_workers = lambda *arguments: None  # nothing would be forked from them
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if child == 0:
            grade(asked["words"], asked.get("crash", ""), asked["said"])
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    serve()
