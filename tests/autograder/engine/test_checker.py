"""A notebook is graded cell by cell: students' cells there, graded cells here, and each cell is told what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from nbgrader.utils import determine_grade

from autograder.engine.checker.checker import Checker
from autograder.engine.checker.remote_objects import RemoteNamespace
from autograder.engine.checker.zygote_client import ZygoteError
from autograder.engine.settings import GradingSettings
from autograder.engine.shell.cell_shell import CellShell, make_shell
from autograder.submission.problem import Problem, add_problems, problems_of

from .student import Student, Unwatched

SETTINGS = GradingSettings(restarts=1)
DEADLY = "import os\nos._exit(0)"


class Room(Unwatched):
    """A student's process as a zygote would give it."""

    layers = ("resource limits",)
    isolation = "none"

    def __init__(self, cpu_seconds: float, forbidden: Sequence[str] = ()) -> None:
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

    def close(self) -> None:
        """End it."""
        self.closed = True
        self._student.close()


class Bench:
    """Grades notebooks, and remembers the processes that were had for them."""

    def __init__(self, shell: CellShell) -> None:
        self.rooms: list[Room] = []
        self.cpu_seconds = 0.0
        self.shell = shell

    def new_child(self, forbidden: Sequence[str] = ()) -> Room:
        """Make a process."""
        self.rooms.append(Room(self.cpu_seconds, forbidden))
        return self.rooms[-1]

    def checker(self, settings: GradingSettings = SETTINGS) -> Checker:
        """Make a checker."""
        new_child: Any = self.new_child
        how_it_ended: Any = Room.wait_for
        return Checker(settings, new_child, how_it_ended, self.shell)

    def run(self, *cells: Any, settings: GradingSettings = SETTINGS, files: dict[str, bytes] | None = None) -> Any:
        """Grade cells and return the notebook."""
        made = new_notebook(cells=[student(cell) if isinstance(cell, str) else cell for cell in cells])
        self.checker(settings).run(made, files)
        assert all(room.closed for room in self.rooms)
        return made


@pytest.fixture
def bench() -> Iterator[Bench]:
    """What notebooks are graded with; IPython knows only one shell at a time."""
    before = InteractiveShell._instance
    yield Bench(make_shell(RemoteNamespace()))
    CellShell.clear_instance()
    InteractiveShell._instance = before


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
    return [(problem.kind, problem.where) for problem in problems_of(notebook) if problem.kind != "worth a look"]


def text(cell: Any) -> str:
    return "".join(output.get("text", "") for output in cell.outputs)


def test_graded_cells_run_here_and_ask_there(bench: Bench) -> None:
    made = bench.run(
        "import os\nthere = os.getpid()\ndef f(x): return [x, os.getpid()]",
        graded("import os\nassert os.getpid() != there\nassert f(1) == [1, there]"),
        graded("assert f(1) == [2, there]"),
    )
    assert points(made) == [1, 0]


def test_what_the_courses_own_cells_define_is_known_on_both_sides(bench: Bench) -> None:
    made = bench.run(
        course("import math\nprint('once')\ndef helper(x): return 2 * x"),
        "def f(x): return helper(x) + math.floor(0.5)",
        graded("assert helper(2) == f(2) == math.ceil(3.5)"),
    )
    assert points(made) == [1]
    assert text(made.cells[0]) == "once\n"


def test_a_name_that_the_course_uses_cannot_be_taken_from_it(bench: Bench) -> None:
    made = bench.run(
        course("def expected(x): return 2 * x"),
        "def expected(x): return f(x)\ndef f(x): return 0\nimport builtins\nbuiltins.abs = lambda x: 0",
        graded("assert f(1) == expected(1)", "one"),
        graded("assert abs(f(1) - 2) < 1", "two"),
    )
    assert points(made) == [0, 0]


def test_what_students_show_during_a_test_is_neither_result_nor_error_of_it(bench: Bench) -> None:
    made = bench.run(
        "from IPython.display import display\n"
        "def f():\n    get_ipython().displayhook(1)\n    display(1)\n    get_ipython().showtraceback()\n    return 0",
        graded("assert f() == 1"),
    )
    assert [output.output_type for output in made.cells[1].outputs] == ["error"]
    assert points(made) == [0]


def test_of_outputs_that_a_student_forges_during_a_test_only_text_is_kept(bench: Bench) -> None:
    made = bench.run(
        "import gc\nfrom autograder.engine.transport.serialization import pack\n"
        "(agent,) = [thing for thing in gc.get_objects() if type(thing).__name__ == 'RpcServer']\n"
        "def say(**output): agent._channel.send(pack({'out': output}))\n"
        "def f():\n"
        "    say(output_type='execute_result', data={'text/plain': '1'}, metadata={})\n"
        "    say(output_type='error', ename='E', evalue='', traceback=[])\n"
        "    say(output_type='stream', name='stdout', text='said')",
        graded("f()"),
    )
    assert [output.output_type for output in made.cells[1].outputs] == ["stream"]
    assert text(made.cells[1]) == "said"


def test_an_error_of_a_students_cell_is_a_problem_and_costs_nothing(bench: Bench) -> None:
    made = bench.run("1 / 0", "def f(): return 1", graded("assert f() == 1"))
    assert points(made) == [1]
    (problem,) = problems_of(made)
    assert (problem.kind, problem.where) == ("cell error", "cell 1")
    assert "ZeroDivisionError: division by zero" in problem.what


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("raise ValueError('secret 0.0727')", "raised an exception"),
        ("raise type('secret 0.0727', (Exception,), {})('secret')", "raised an exception"),
    ],
)
def test_behind_a_test_the_text_of_an_error_is_not_told_for_it_could_be_a_hidden_question(
    bench: Bench, source: str, told: str
) -> None:
    made = bench.run("def f(): return 1", graded("assert f() == 1"), source)
    (problem,) = problems_of(made)
    assert (problem.kind, problem.where) == ("cell error", "cell 3")
    assert told in problem.what
    assert "secret" not in problem.what


def test_behind_a_test_it_is_told_what_python_has_against_a_cell_s_text(bench: Bench) -> None:
    made = bench.run("def f(): return 1", graded("assert f() == 1"), "%time 1\nx = 1\ndef g(:", "exec('def g(:')")
    genuine, made_up, _ = problems_of(made)  # and exec is worth a look
    assert genuine.what == "The cell raised SyntaxError: invalid syntax (line 3)"
    assert "an exception. Which one is not told" in made_up.what


def test_what_is_told_of_an_error_is_short_however_long_it_is(bench: Bench) -> None:
    made = bench.run("raise ValueError('x' * 100_000)")
    assert len(problems_of(made)[0].what) <= 300


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


def test_after_a_crash_what_was_defined_is_defined_again_without_what_crashed(bench: Bench) -> None:
    made = bench.run(
        "n = 0\ndef f(): return n",
        "n += 1",
        graded("assert f() == 1", "one"),
        DEADLY,
        graded("assert f() == 1", "two"),
    )
    assert points(made) == [1, 1]
    assert kinds(made) == [("kernel died", "cell 4")]
    assert len(bench.rooms) == 2
    # What was shown was shown once.
    assert made.cells[1].outputs == []


def test_a_test_that_crashes_is_not_run_again(bench: Bench) -> None:
    made = bench.run(
        "import os\ndef f(): os._exit(0)\ndef g(): return 1", graded("f()", "one"), graded("assert g() == 1", "two")
    )
    assert points(made) == [0, 1]
    assert kinds(made) == [("kernel died", "one")]
    assert len(bench.rooms) == 2


def test_a_cell_that_crashes_only_the_second_time_is_left_out_as_well(bench: Bench, tmp_path: Any) -> None:
    again = f"import os\nif os.path.exists({str(tmp_path / 'seen')!r}): os._exit(0)\nopen({str(tmp_path / 'seen')!r}, 'w').close()"
    cells = ("def f(): return 1", again, DEADLY, graded("assert f() == 1"))
    made = bench.run(*cells, settings=GradingSettings(restarts=2))
    assert points(made) == [1]
    assert len(bench.rooms) == 3


def test_after_as_many_crashes_as_are_allowed_the_rest_is_not_run(bench: Bench) -> None:
    made = bench.run("def f(): return 1", DEADLY, DEADLY, "print('never')", graded("assert f() == 1"))
    assert points(made) == [0]
    assert kinds(made) == [
        ("kernel died", "cell 2"), ("kernel died", "cell 3"), ("kernel died", "cell 4"), ("kernel died", "test"),
    ]  # fmt: skip
    *_, last = problems_of(made)
    assert last.what == "2 cells brought the process down; this one was not run."
    assert text(made.cells[3]) == ""
    assert len(bench.rooms) == 2


def test_the_cpu_time_of_all_its_processes_is_the_submissions(bench: Bench) -> None:
    bench.cpu_seconds = 60.0
    cells = ("def f(): return 1", DEADLY, graded("assert f() == 1"))
    assert points(bench.run(*cells, settings=GradingSettings(submission_cpu_seconds=61))) == [1]
    made = bench.run(*cells, settings=GradingSettings(submission_cpu_seconds=59))
    assert points(made) == [0]
    assert kinds(made)[-1] == ("time used up", "test")


def test_an_exercise_that_takes_too_long_is_told_its_seconds_and_the_next_one_has_its_own(bench: Bench) -> None:
    made = bench.run(
        "import time\ndef f(): time.sleep(100)\ndef g(): return 1",
        graded("f()", "one"),
        graded("assert g() == 1", "two"),
        settings=GradingSettings(exercise_seconds=1),
    )
    assert points(made) == [0, 1]
    assert problems_of(made)[0].what == "It was stopped after 1 s."
    assert len(bench.rooms) == 1


def test_a_broken_limit_that_the_test_has_swallowed_is_told_all_the_same(bench: Bench) -> None:
    made = bench.run(
        "import os\ndef f(): os._exit(0)",
        graded("try:\n    f()\nexcept Exception:\n    print('caught')"),
    )
    assert kinds(made) == [("kernel died", "test")]
    assert text(made.cells[1]) == "caught\n"


def test_a_check_without_a_verdict_gets_no_points(bench: Bench) -> None:
    made = bench.run(course("def check(f): return 1"), "def f(): return 1", graded("check(f)"))
    assert points(made) == [0]
    assert kinds(made) == [("no verdict", "test")]


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
    assert [problem.kind for problem in problems_of(made)] == ["cell restored", "cell error"]


def test_where_no_process_is_to_be_had_nothing_is_graded(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(forbidden: Sequence[str]) -> Any:
        raise ZygoteError("the process that student code is forked from has died")

    monkeypatch.setattr(bench, "new_child", none)
    with pytest.raises(ZygoteError):
        bench.run("1")


def test_an_accident_of_the_graders_leaves_no_process(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> None:
        raise RuntimeError("ours")

    monkeypatch.setattr(bench.shell, "run", fail)
    with pytest.raises(RuntimeError, match="ours"):
        bench.run("1", graded("pass"))
    assert bench.rooms[0].closed


def test_files_lie_beside_the_notebook(bench: Bench, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = bench.run("print(open('sub/a').read())", files={"sub/a": b"content"})
    assert text(made.cells[0]) == "content\n"


def test_the_layers_of_the_process_are_told(bench: Bench) -> None:
    checker = bench.checker()
    assert (checker.layers, checker.isolation) == ((), "none")
    checker.run(new_notebook(cells=[student("1")]))
    assert checker.layers == Room.layers


def test_only_wrong_answers_leave_a_signature(bench: Bench) -> None:
    def signatures(returned: str) -> dict[str, Any]:
        checker = bench.checker()
        source = (
            "def merge_query_key(w_q, w_k):\n"
            "    if w_q.ndim != 2 or w_k.ndim != 2 or w_q.shape[1] != w_k.shape[1]:\n"
            f"        raise ValueError\n    return {returned}"
        )
        test = marked("check(merge_query_key, hidden=True)", "test_merge_query_key", grade=True, points=4.0)
        checker.run(new_notebook(cells=[course("from tfcourse import check"), student(source), test]))
        return checker.signatures

    assert signatures("w_q @ w_k.mT") == {}
    wrong = signatures("w_k @ w_q.mT")
    assert list(wrong) == ["merge_query_key"]
    assert wrong["merge_query_key"]["values"]
    assert list(signatures("1 / 0")) == list(signatures("__import__('os')._exit(3)")) == ["merge_query_key"]
