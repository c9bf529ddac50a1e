"""A notebook is graded cell by cell: students' cells there, verdicts here, and each cell is told what came of it."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from nbgrader.utils import determine_grade

from autograder.engine.checker import checker as module
from autograder.engine.checker.checker import Checker
from autograder.engine.checker.zygote_client import ZygoteError
from autograder.engine.settings import GradingSettings
from autograder.intake.notebook.problem import Problem, add_problems, read_problems

from .student import Student, Unwatched

SETTINGS = GradingSettings(restarts=1)
NOTEBOOKS: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("notebooks.toml").read_text(encoding="utf-8")
)
DEADLY = "import os\nos._exit(0)"


class Room(Unwatched):
    """A student's process as a zygote would give it."""

    layers = ("resource limits",)
    isolation = "none"

    def __init__(
        self, cpu_seconds: float, forbidden: Sequence[str] = (), log: list[tuple[str, ...]] | None = None
    ) -> None:
        self._log = [] if log is None else log
        self._student = Student(forbidden=forbidden)
        self.forbidden = tuple(forbidden)
        self._cpu_seconds = cpu_seconds
        self.channel = self._student.process.channel
        self.mailbox = self._student.process.mailbox
        self.interrupt = self._student.process.interrupt
        self.kill = self._student.process.kill
        self.closed = False

    def wait_for(self) -> int:
        """Return how it has ended."""
        return self._student.process.wait()

    def cpu_seconds(self) -> float:
        """Return as much CPU time as the test says."""
        return self._cpu_seconds

    def suspend(self) -> None:
        """Note that it is stopped."""
        self._log.append(("stop", *self.forbidden))

    def resume(self) -> None:
        """Note that it goes on."""
        self._log.append(("resume", *self.forbidden))

    def close(self) -> None:
        """End it."""
        self._log.append(("close", *self.forbidden))
        self.closed = True
        self._student.close()


class Bench:
    """Grades notebooks, and remembers the processes that were had for them."""

    def __init__(self) -> None:
        self.rooms: list[Room] = []
        self.log: list[tuple[str, ...]] = []  # what happens to processes, with the functions that each forbids
        self.cpu_seconds = 0.0

    def new_child(self, forbidden: Sequence[str] = ()) -> Room:
        """Make a process."""
        self.rooms.append(Room(self.cpu_seconds, forbidden, self.log))
        return self.rooms[-1]

    def checker(self, settings: GradingSettings = SETTINGS) -> Checker:
        """Make a checker."""
        new_child: Any = self.new_child
        how_it_ended: Any = Room.wait_for
        return Checker(settings, new_child, how_it_ended)

    def run(self, *cells: Any, settings: GradingSettings = SETTINGS, files: dict[str, bytes] | None = None) -> Any:
        """Grade cells and return the notebook."""
        made = new_notebook(cells=[student(cell) if isinstance(cell, str) else cell for cell in cells])
        self.checker(settings).run(made, files)
        assert all(room.closed for room in self.rooms)
        return made


@pytest.fixture
def bench() -> Bench:
    """What notebooks are graded with."""
    return Bench()


def student(source: str) -> Any:
    return new_code_cell(source)


def marked(source: str, name: str, **flags: Any) -> Any:
    plain = {"grade": False, "locked": True, "solution": False, "grade_id": name, "schema_version": 3}
    return new_code_cell(source, metadata={"nbgrader": plain | flags})


def graded(source: str, name: str = "test") -> Any:
    return marked(source, name, grade=True, points=1.0)


def course(source: str) -> Any:
    return marked(source, "setup")


def points(notebook: Any) -> list[float]:
    return [determine_grade(cell)[0] for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade")]


def kinds(notebook: Any) -> list[tuple[str, str]]:
    return [(problem.kind, problem.where) for problem in read_problems(notebook) if problem.kind != "worth a look"]


def text(cell: Any) -> str:
    return "".join(output.get("text", "") for output in cell.outputs)


@pytest.mark.parametrize("row", NOTEBOOKS.values(), ids=NOTEBOOKS)
def test_a_notebook_gets_what_its_row_says(bench: Bench, row: dict[str, Any]) -> None:
    made = bench.run(
        *(
            cell if isinstance(cell, str) else course(cell[0]) if cell[1] == "setup" else graded(*cell)
            for cell in row["cells"]
        ),
        settings=GradingSettings(restarts=1, exercise_seconds=row.get("seconds", 60)),
    )
    assert points(made) == row["points"]
    found = [problem for problem in read_problems(made) if problem.kind != "worth a look"]
    assert kinds(made) == [(kind, where) for kind, where, _ in row.get("problems", [])]
    for problem, (_, _, word) in zip(found, row.get("problems", []), strict=True):
        assert word in problem.what
        assert len(problem.what) <= 300
        assert row.get("hidden", "\0") not in problem.what
    for index, shown in row.get("outputs", {}).items():
        assert [output.output_type for output in made.cells[int(index)].outputs] == shown
    assert all(text(made.cells[int(index)]) == printed for index, printed in row.get("printed", {}).items())
    assert len(bench.rooms) == row.get("processes", len(bench.rooms))


def test_text_and_empty_cells_are_left_as_they_are(bench: Bench) -> None:
    before = new_output("stream", text="old")
    empty = new_code_cell("  \n", outputs=[before])
    made = bench.run(new_markdown_cell("# Title"), empty, "1")
    assert made.cells[0].source == "# Title"
    assert made.cells[1].outputs == [before]
    assert made.cells[2].outputs[0].data == {"text/plain": "1"}


def test_what_was_there_before_is_no_output(bench: Bench) -> None:
    stale = graded("assert f() == 1")
    stale.outputs, stale.execution_count = [new_output("execute_result", data={"text/plain": "1"})], 7
    made = bench.run("def f(): return 2", stale)
    assert [output.output_type for output in made.cells[1].outputs] == ["error"]
    assert made.cells[1].execution_count is None
    assert set(made.cells[1].metadata["execution"]) == {"iopub.status.busy", "shell.execute_reply"}


def test_a_cell_that_crashes_only_the_second_time_is_left_out_as_well(bench: Bench, tmp_path: Any) -> None:
    again = f"import os\nif os.path.exists({str(tmp_path / 'seen')!r}): os._exit(0)\nopen({str(tmp_path / 'seen')!r}, 'w').close()"
    cells = ("def f(): return 1", again, DEADLY, graded("assert f() == 1"))
    made = bench.run(*cells, settings=GradingSettings(restarts=2))
    assert points(made) == [1]
    assert len(bench.rooms) == 3


def test_the_cpu_time_of_all_its_processes_is_the_submissions(bench: Bench) -> None:
    bench.cpu_seconds = 60.0
    cells = ("def f(): return 1", DEADLY, graded("assert f() == 1"))
    assert points(bench.run(*cells, settings=GradingSettings(submission_cpu_seconds=61))) == [1]
    made = bench.run(*cells, settings=GradingSettings(submission_cpu_seconds=59))
    assert points(made) == [0]
    assert kinds(made)[-1] == ("time used up", "test")


def test_a_notebook_that_cannot_be_graded_is_not_run(bench: Bench) -> None:
    made = new_notebook(cells=[student("1"), graded("pass")])
    add_problems(made, [Problem("wrong chapter", "This is another notebook.", fatal=True)])
    bench.checker().run(made)
    assert bench.rooms == []
    assert points(made) == [0]
    assert made.cells[1].outputs[0].evalue == "This is another notebook."
    assert made.cells[0].outputs == []


def test_problems_that_were_there_stay(bench: Bench) -> None:
    made = new_notebook(cells=[student("1 / 0")])
    add_problems(made, [Problem("cell restored", "A cell was missing.")])
    bench.checker().run(made)
    assert [problem.kind for problem in read_problems(made)] == ["cell restored", "cell error"]


def test_where_no_process_is_to_be_had_nothing_is_graded(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(forbidden: Sequence[str]) -> Any:
        raise ZygoteError("the process that student code is forked from has died")

    monkeypatch.setattr(bench, "new_child", none)
    with pytest.raises(ZygoteError):
        bench.run("1")


def test_an_accident_of_the_graders_leaves_no_process(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> None:
        raise RuntimeError("ours")

    monkeypatch.setattr(module, "show_outputs", fail)
    with pytest.raises(RuntimeError, match="ours"):
        bench.run("1", graded("pass"))
    assert bench.rooms[0].closed
