"""A real worker with its zygote and sandbox: whatever a submission does and whoever is killed, the rest is graded, and nothing is left.

The notebooks have nothing of the course in them: plain functions and plain asserts.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from autograder.engine.sandbox.lockdown import LAYERS
from autograder.engine.settings import GradingSettings
from autograder.engine.workers.executor import KILLED, STOPPED, WorkerExecutor, WorkerPool, create_executor

from .workers import (
    BEFORE,
    Background,
    Cell,
    Graded,
    checkers,
    ended,
    family,
    grade,
    kill_checker,
    kill_group,
    kill_worker,
    kill_zygote,
    submission,
    until,
    zygote_below,
    zygote_of,
)

SEED = 918_273_645
SETTINGS = GradingSettings(
    seed=SEED,
    exercise_seconds=8,
    exercise_cpu_seconds=2,
    cell_seconds=4,
    memory_mb=400,
    scratch_mb=16,
    processes=16,
    flood_output=100_000,
)
TIGHT = GradingSettings(seed=SEED, exercise_seconds=3, submission_seconds=4, restarts=1)

AFTER: tuple[Cell, ...] = (("def last(x):\n    return good(x) + 1", None), ("assert last(1) == 3", "last"))
SUBMISSIONS: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("submissions.toml").read_text(encoding="utf-8")
)
SLOW: tuple[Cell, ...] = (*BEFORE, ("import time\ntime.sleep(1.5)", None), *AFTER)


def _living(settings: GradingSettings) -> Iterator[WorkerExecutor]:
    made = WorkerExecutor(settings)
    yield made
    made.close()


@pytest.fixture(scope="module")
def executor() -> Iterator[WorkerExecutor]:
    """An executor for submissions that stay within a second or so."""
    yield from _living(SETTINGS)


@pytest.fixture(scope="module")
def tight() -> Iterator[WorkerExecutor]:
    """An executor of a course that allows little time and one restart."""
    yield from _living(TIGHT)


def test_a_worker_brings_no_gradebook_along() -> None:
    wanted = (
        "import autograder.engine.checker.checker, autograder.engine.checker.answer_cache, autograder.engine.interface\n"
        "import autograder.engine.workers.worker"
    )
    found = "import sys; print([name for name in ('nbgrader', 'nbconvert', 'sqlalchemy') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", f"{wanted}\n{found}"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]", "every worker would take a second longer to begin"


@pytest.mark.parametrize("row", SUBMISSIONS.values(), ids=SUBMISSIONS)
def test_a_submission_gets_what_its_row_says(
    row: dict[str, Any], executor: WorkerExecutor, tight: WorkerExecutor
) -> None:
    if deed := row.get("deed"):
        row = {"points": {"good": 1, "f": 0, "last": 1}, **row}
        row["cells"] = ["before", [f"def f():\n    {deed}"], ["f()", "f"], "after"]
    parts: dict[Any, Sequence[Cell]] = {"before": BEFORE, "after": AFTER}
    cells = [cell for part in row["cells"] for cell in parts.get(str(part), [(*part, None)[:2]])]
    files = {name: text.encode() for name, text in row.get("files", {}).items()}
    graded = grade(tight if row.get("tight") else executor, *cells, **files)
    assert (graded.execution.isolation, graded.execution.layers) == ("sandbox", LAYERS)
    assert graded.points == row.get("points", {})
    where = [(problem.kind, problem.where) for problem in graded.problems]
    assert [
        (kind and found, place) for (found, place), (kind, _) in zip(where, row.get("problems", []), strict=True)
    ] == [tuple(problem) for problem in row.get("problems", [])]
    said = {name: text for name, text in graded.errors().items() if name in graded.points}
    assert said.keys() == row.get("errors", {}).keys()
    assert all(word in said[name] for name, word in row.get("errors", {}).items())
    assert all(graded.printed(int(index)) == text for index, text in row.get("printed", {}).items())
    assert all(len(str(cell.outputs)) < 2 * SETTINGS.flood_output for cell in graded.notebook.cells)


DRAW = (
    "import random, numpy, torch\n"
    "print(random.random(), numpy.random.rand(), torch.rand(1).item(), hash('a'), {'a', 'b', 'c', 'd'})"
)


def test_random_numbers_depend_neither_on_the_order_nor_on_the_worker(executor: WorkerExecutor) -> None:
    first = grade(executor, (DRAW, None)).printed(0)
    assert first.startswith("0.")
    grade(executor, *BEFORE, ("import random\nrandom.seed(1)", None), *AFTER)
    assert grade(executor, (DRAW, None)).printed(0) == first
    assert executor._process is not None
    kill_group(executor._process.pid)
    assert grade(executor, (DRAW, None)).printed(0) == first


def test_the_seed_of_the_hidden_questions_is_nowhere_in_a_students_process(executor: WorkerExecutor) -> None:
    look = (
        "import gc, os, random, numpy, torch\n"
        "print(dict(os.environ), open('/proc/self/cmdline').read())\n"
        "print(torch.initial_seed(), numpy.random.get_state()[1][0], random.getstate()[1][0])\n"
        "numbers = set()\n"
        "for thing in gc.get_objects():\n"
        "    if isinstance(thing, (dict, list, tuple, set)) or hasattr(type(thing), '__dataclass_fields__'):\n"
        "        inside = gc.get_referents(thing) + (list(vars(thing).values()) if hasattr(thing, '__dict__') else [])\n"
        "        numbers |= {item for item in inside if type(item) is int and item > 10**6}\n"
        "print(sorted(numbers))"
    )
    graded = grade(executor, (look, None))
    assert graded.errors() == {}
    # What is found there shows that it has been looked for well.
    assert str(SETTINGS.student_seed) in graded.printed(0)
    assert str(SEED) not in graded.printed(0)


def test_a_zygote_that_is_killed_between_two_submissions_is_started_again(executor: WorkerExecutor) -> None:
    before = grade(executor, *BEFORE, *AFTER)
    worker, zygote = executor._process, zygote_of(executor)
    kill_group(zygote)
    after = grade(executor, *BEFORE, *AFTER)
    assert (after.points, after.errors(), after.problems) == (before.points, {}, [])
    assert executor._process is worker
    assert zygote_of(executor) != zygote


def test_a_checker_decides_about_some_submissions_and_hands_on_to_the_next() -> None:
    with closing(WorkerExecutor(SETTINGS)) as executor:
        seen = [(grade(executor, ("1", None)), checkers(executor))[1] for _ in range(33)]
    assert len(seen[0]) == 1
    assert seen[1:31] == seen[:1] * 30
    assert seen[31] == [], "it has ended"
    assert len(seen[32]) == 1
    assert seen[32] != seen[0]


GOOD, LAST = ("assert good(2) == 4", "good"), ("assert last(1) == 3", "last")
DOUBLE, LATER = ("def good(x):\n    return 2 * x", None), ("def last(x):\n    return x + 2", None)
UNALIKE: tuple[Cell, ...] = (
    DOUBLE,
    ("def good(x):\n    raise SystemExit(3)", None),
    ("import os\ndef good(x):\n    os.kill(os.getpid(), 9)", None),
    ("def good(x):\n    while True:\n        print('y' * 1000)", None),
    ("def good(x):\n    return b'z' * 2**28", None),
    ("def good(x):\n    for _ in range(1000):\n        x = [x]\n    return x", None),
    ("def good(", None),
)


def test_what_a_submission_gets_does_not_depend_on_those_before_it_in_the_same_checker() -> None:
    def seen(graded: Graded) -> Any:
        return graded.points, graded.errors(), graded.problems, [graded.printed(index) for index in range(4)]

    with closing(WorkerExecutor(SETTINGS)) as one, closing(WorkerExecutor(SETTINGS)) as other:
        there = [seen(grade(one, cell, GOOD, LATER, LAST)) for cell in UNALIKE]
        back = [seen(grade(other, cell, GOOD, LATER, LAST)) for cell in reversed(UNALIKE)]
    assert there == back[::-1]
    assert [points["good"] for points, *_ in there] == [1, 0, 0, 0, 0, 0, 0]
    assert all(points["last"] == 1 for points, *_ in there)


@pytest.mark.parametrize("kill", [kill_zygote, kill_checker, kill_worker])
def test_a_process_that_is_killed_in_the_middle_changes_nothing(
    executor: WorkerExecutor, kill: Callable[[WorkerExecutor], None]
) -> None:
    undisturbed = grade(executor, *SLOW)
    running = Background(executor, submission(*SLOW))
    kill(executor)
    graded = Graded(running.result())
    assert (graded.points, graded.errors(), graded.problems) == (undisturbed.points, {}, [])


def test_a_submission_whose_checker_is_lost_twice_fails_and_is_named_in_what_counts_if_it_goes_on(
    executor: WorkerExecutor,
) -> None:
    grade(executor, *BEFORE)
    running = Background(executor, submission(*SLOW))
    known: set[int] = set()
    for _ in range(2):
        kill_checker(executor, known)
    done = running.result()
    assert done.failure == "grading it did not come to an end, twice (ClosedError)"
    graded = Graded(replace(done, failure=""))
    assert graded.points == {"good": 0, "last": 0}
    (problem,) = graded.problems
    assert (problem.kind, problem.fatal) == ("grading stopped", True)
    assert "ClosedError" in problem.what
    assert grade(executor, *BEFORE, *AFTER).points == {"good": 1, "last": 1}


def test_a_worker_that_dies_twice_of_a_submission_is_told_and_grades_the_next(executor: WorkerExecutor) -> None:
    running = Background(executor, submission(*SLOW, student="bo"))
    killed: set[int] = set()
    for _ in range(2):
        process = until(
            lambda: executor._process if executor._process and executor._process.pid not in killed else None
        )
        killed.add(process.pid)
        kill_group(process.pid)
    execution = running.result()
    assert (execution.student, execution.notebook, execution.failure) == ("bo", "", KILLED)
    assert grade(executor, *BEFORE, *AFTER).points == {"good": 1, "last": 1}


def test_closing_ends_a_submission_that_runs_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    executor = create_executor(GradingSettings(seed=SEED, cell_seconds=3600, submission_seconds=3600))
    assert isinstance(executor, WorkerExecutor)
    sleeps = "import ctypes, time\nctypes.CDLL(None).prctl(15, b'sleeper')\ntime.sleep(3000)"
    running = Background(executor, submission((sleeps, None)))
    worker = until(lambda: executor._process)
    until(lambda: _names(family(worker.pid)).count("sleeper") == 1)
    assert list(tmp_path.iterdir())
    handles = [os.pidfd_open(pid) for pid in (worker.pid, *family(worker.pid))]
    executor.close()
    execution = running.result()
    assert (execution.notebook, execution.failure != "") == ("", True)
    assert len(handles) >= 4
    for handle in handles:
        assert ended(handle)
    assert list(tmp_path.iterdir()) == []


def _names(pids: list[int]) -> list[str]:
    found = []
    for pid in pids:
        with suppress(OSError):
            found.append(Path(f"/proc/{pid}/comm").read_text().strip())
    return found


def wheel(folder: Path, chapter: str) -> str:
    """A students' package that says what chapter it is of, and nothing else."""
    path = folder / f"tfcourse-{chapter}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tfcourse/__init__.py", f"CHAPTER = {chapter!r}")
        archive.writestr(f"tfcourse/solutions_before_{chapter}.py", "")
    return str(path)


LOOK_AROUND: tuple[Cell, ...] = (
    (
        "import os, sys, tfcourse\n"
        "print(tfcourse.CHAPTER)\n"
        "print(*sorted(name for name in sys.modules if 'solutions' in name))\n"
        "shelf = os.path.dirname(os.path.dirname(os.path.dirname(tfcourse.__file__)))\n"
        "print(len(os.listdir(shelf)), *sorted(name for _, _, names in os.walk(shelf) for name in names if 'solutions' in name))",
        None,
    ),
)


def test_a_run_with_another_package_finds_the_worker_warm_and_nothing_of_the_package_before(tmp_path: Path) -> None:
    packages = {chapter: wheel(tmp_path, chapter) for chapter in ("03", "04")}
    with WorkerPool() as workers:
        seen = []
        for chapter in ("04", "03", "03", "04"):
            lent = workers.lease_executor(replace(SETTINGS, package=packages[chapter]))
            seen.append(Graded(lent.grade_one(submission(*LOOK_AROUND, *BEFORE))))
            lent.close()
            assert lent.grade_one(submission(*BEFORE)).failure == STOPPED, "it was given back"
        (worker,) = workers._idle
        assert workers._servers is not None
        kill_group(zygote_below(workers._servers._zygotes.pid))
        again = Graded(worker.grade_one(submission(*LOOK_AROUND)))
        assert zygote_of(worker), "the worker has started another one"
        worker.change_settings(SETTINGS)
        without = Graded(worker.grade_one(submission(*BEFORE)))
        worker.change_settings(replace(SETTINGS, package=packages["03"]))
        other = Graded(worker.grade_one(submission(*LOOK_AROUND, *BEFORE)))
        pid = worker._process.pid if worker._process else 0
        handle = os.pidfd_open(pid)
    assert ended(handle), "workers end with those who hold them"
    for graded, chapter in zip([*seen, again, other], ("04", "03", "03", "04", "04", "03"), strict=True):
        name = f"solutions_before_{chapter}"
        assert graded.printed(0).splitlines() == [chapter, f"tfcourse.{name}", f"1 {name}.py"]
    assert [graded.points for graded in seen] == [{"good": 1.0}] * 4
    assert without.points == other.points == {"good": 1.0}


def test_a_worker_that_is_given_back_while_it_works_is_ended(tmp_path: Path) -> None:
    with WorkerPool() as workers, ThreadPoolExecutor(1) as threads:
        lent = workers.lease_executor(SETTINGS)
        running = threads.submit(lent.grade_one, submission(*SLOW))
        until(lambda: lent._busy)  # type: ignore[attr-defined]
        lent.close()
        lent.close()
        assert running.result().failure
        assert not workers._idle


def test_a_run_gets_workers_that_are_free_and_new_ones_beside() -> None:
    with WorkerPool() as workers:
        first, second = workers.lease_executor(SETTINGS), workers.lease_executor(SETTINGS)
        assert Graded(first.grade_one(submission(*BEFORE))).points == {"good": 1.0}
        first.close()
        second.close()
        assert len(workers._idle) == 2
        third = workers.lease_executor(SETTINGS)
        assert len(workers._idle) == 1
        third.close()


def test_signatures_of_wrong_answers_come_with_the_execution(executor: WorkerExecutor) -> None:
    lookup = "import torch\ndef soft_lookup(query, keys, values):\n    return values.sum(0)"
    cells: tuple[Cell, ...] = (
        (lookup, None),
        ("from tfcourse import check\ncheck(soft_lookup, hidden=True)", "test_soft_lookup"),
    )
    execution = executor.grade_one(submission(*cells))
    assert list(execution.signatures) == ["soft_lookup"]
    assert execution.signatures["soft_lookup"]["values"]
    assert executor.grade_one(submission(*BEFORE)).signatures == {}
