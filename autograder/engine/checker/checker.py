"""Grade one notebook: run its cells in the student's process, send it each check's tests, and judge the answers here.

Two rules protect the hidden tests and the ban of forbidden functions:

- *Visible first.* All cells and all visible tests run in all processes before the first hidden test. Afterwards only pass or fail of a
  process's answers reaches a page. Names keep the bindings that they had during the visible tests.
- *A process per set of forbidden functions.* The first process forbids nothing, and its cells give the outputs of the notebook. For every
  other set, a new process refuses these functions from its first line on, runs the cells again for their definitions, and waits.

If a cell exceeds a limit, only this cell fails. If the process died, the cells above run again in a new process, and grading continues
below.

A test cell is a check if it calls ``check`` with the name of an exercise and does nothing else. This is decided from its text. No code of
any notebook runs in this process. Any other test cell has a lecturer's own tests. It runs at its position among the cells, in the student's
process, as in nbgrader's kernel. So its author decides what it shows, and a submission that sets out to forge its result can.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from time import monotonic
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output

from autograder.checking.decision import collect_answers
from autograder.checking.hidden_messages import public_error_name
from autograder.checking.sheet import Sheet
from autograder.checking.verdict import VERDICT_MIME
from autograder.checks import verdict_on
from autograder.engine.cell_outputs import Outputs
from autograder.engine.checker.behaviour import compute_signature
from autograder.engine.checker.cell_results import (
    collect_printed,
    has_error,
    is_refused,
    list_remarks,
    set_grader_error,
    show_outputs,
)
from autograder.engine.checker.deferred_tests import CheckCell, WaitingProcess, parse_check_cell
from autograder.engine.checker.remote_subject import RemoteSubject
from autograder.engine.checker.rpc_client import CellLimits, LimitError, StudentClient
from autograder.engine.checker.student_process import StudentProcess
from autograder.engine.settings import GradingSettings
from autograder.intake.notebook.problem import Problem, add_problems
from autograder.intake.notebook.test_cells import cell_label, check_total, enforce_verdict, error_output, is_test
from autograder.static_analysis.cell_ast import syntax_error

# A problem quotes this many characters of a traceback's last line.
_TOLD = 300
# No chapter's exercises forbid more sets of functions.
_MOST_PROCESSES = 5


class Checker:
    """Runs and grades one notebook.

    Args:
        settings: the limits.
        new_child: makes a sandboxed process for the student's code that refuses the named functions.
        how_it_ended: tells the exit status of one that has ended.
    """

    def __init__(
        self,
        settings: GradingSettings,
        new_child: Callable[[Sequence[str]], StudentProcess],
        how_it_ended: Callable[[StudentProcess], int],
    ) -> None:
        self._settings = settings
        self._new_child = new_child
        self._how_it_ended = how_it_ended
        self._child: StudentProcess | None = None
        self._conversation: StudentClient | None = None
        self._forbidding_rules: tuple[str, ...] = ()
        self._visible: dict[int, CheckCell] = {}
        self._waiting: list[WaitingProcess] = []
        self._problems: list[Problem] = []
        self._reported: dict[str, None] = {}  # in order, without repetitions
        self._files: dict[str, bytes] = {}
        self._complete: set[int] = set()
        self._deadly: set[int] = set()
        self._cpu_seconds = 0.0
        self.layers: tuple[str, ...] = ()
        self.isolation = "none"
        self._asked = False  # whether a lecturer's own test has run
        # What wrong answers returned, by exercise, for instructors who group them.
        self.signatures: dict[str, dict[str, Any]] = {}

    def run(self, notebook: NotebookNode, files: Mapping[str, bytes] | None = None) -> None:
        """Run all code cells of a sanitised notebook in place; each test cell gets a verdict or an explained error.

        Args:
            files: what lies beside it, by relative path.
        """
        self._files = dict(files or {})
        if is_refused(notebook):
            return
        cells = [(i, cell) for i, cell in enumerate(notebook.cells) if cell.cell_type == "code" and cell.source.strip()]
        checks = ((index, parse_check_cell(cell, self._settings.kept_output)) for index, cell in cells if is_test(cell))
        tests = {index: check for index, check in checks if check is not None}
        try:
            self._run_first_process(notebook, cells, tests)
            for forbidden in dict.fromkeys(check.forbidden for check in tests.values() if check.forbidden):
                chosen = {index: check for index, check in tests.items() if check.forbidden == forbidden}
                self._run_process(notebook, cells, chosen, forbidden)
            # The questions to come have as much time as the cells had: no late cell takes it away from earlier exercises.
            self._renew_time()
            while self._waiting:
                self._resume_process(notebook, self._waiting.pop(0))
                self._run_hidden_tests(notebook)
                self._end_process()
        finally:
            self._end_process()
            for process in self._waiting:
                if process.child is not None:
                    process.child.close()
        add_problems(notebook, [*self._problems, *list_remarks(notebook, list(self._reported))])

    def _run_first_process(
        self, notebook: NotebookNode, cells: Sequence[tuple[int, NotebookNode]], tests: Mapping[int, CheckCell]
    ) -> None:
        """Run all cells for their outputs, and the visible tests of exercises that forbid nothing."""
        self._renew_time()
        self._start_process(notebook, 0)
        for index, cell in cells:
            if index not in tests:
                self._run_cell(notebook, cell, index)
            elif not tests[index].forbidden:
                self._run_visible_tests(notebook, cell, index, tests[index])
        self._suspend_process()

    def _run_process(
        self,
        notebook: NotebookNode,
        cells: Sequence[tuple[int, NotebookNode]],
        tests: Mapping[int, CheckCell],
        forbidden: tuple[str, ...],
    ) -> None:
        """Run visible tests in a process that refuses the functions which their exercises forbid."""
        self._renew_time()  # the cells run again, and take as long as they took before
        self._forbidding_rules = forbidden
        self._start_process(notebook, 0)
        for index, cell in cells:
            if index in tests:
                self._run_visible_tests(notebook, cell, index, tests[index])
            elif not is_test(cell) and index < max(tests):
                self._rerun_for_definitions(notebook, cell, index)
        self._suspend_process()

    def _suspend_process(self) -> None:
        """Suspend the process until all visible tests have run, or end it if none of its tests is left.

        A process that ran on could answer for another one, in which a function is forbidden, over any channel that the kernel leaves; and
        it could grow.
        """
        if self._child is not None and self._visible:
            self._child.suspend()
        # The processes that wait may together hold as much memory as one.
        large = self._child is not None and self._child.uses_more_memory_than(
            self._settings.memory_mb * 2**20 // _MOST_PROCESSES
        )
        if large or not self._visible:
            self._end_process()
        if self._visible:
            self._waiting.append(
                WaitingProcess(self._forbidding_rules, self._child, self._conversation, self._visible, large)
            )
        self._child, self._conversation, self._visible = None, None, {}

    def _resume_process(self, notebook: NotebookNode, process: WaitingProcess) -> None:
        self._forbidding_rules, self._visible = process.forbidden, process.visible
        if process.start_again:
            self._start_process(notebook, len(notebook.cells))
            return
        self._child, self._conversation = process.child, process.conversation
        if self._child is not None:
            self._child.resume()
            self._cpu_seconds -= self._child.cpu_seconds()

    def _run_cell(self, notebook: NotebookNode, cell: NotebookNode, index: int) -> None:
        """Run a cell in the student's process, and store its outputs."""
        conversation = self._available_client(cell, index)
        if conversation is None:
            return
        self._asked = self._asked or is_test(cell)
        outputs = Outputs(self._settings.kept_output)
        begun = datetime.now(UTC)
        conversation.begin(self._cell_limits(cell), outputs.add)
        with suppress(LimitError):  # the client keeps the error, and judging the cell reports it
            if conversation.ask({"do": "run", "source": cell.source}).get("value") is True:
                self._complete.add(index)
        show_outputs(cell, outputs.items, begun)
        self._record_failure(cell, index, conversation.broken)
        self._update_process(notebook, index)

    def _run_visible_tests(self, notebook: NotebookNode, cell: NotebookNode, index: int, check: CheckCell) -> None:
        """Run the visible tests of a test cell."""
        conversation = self._available_client(cell, index)
        if conversation is None:
            return
        self._visible[index] = check
        conversation.begin(self._cell_limits(cell), collect_printed(check.outputs))
        try:
            self._bind_exercise(conversation, index)
            if check.defined:
                collect_answers(self._find_sheet(check, hidden=False), self._make_subject(conversation, index))
            conversation.ask({"do": "remember", "cell": index})
        except LimitError:  # the client keeps the error
            pass
        except Exception as error:
            del self._visible[index]
            self._fail_cell(cell, index, "no verdict", f"The answers could not be judged ({type(error).__name__}).")
        check.answers, check.broken = conversation.known, conversation.broken
        self._update_process(notebook, index)

    def _bind_exercise(self, conversation: StudentClient, index: int) -> None:
        """Make the student's process bind an exercise's current function or class to its test cell."""
        check = self._visible[index]
        question = {"do": "look", "cell": index, "name": check.exercise.name}
        check.defined = conversation.ask(question).get("value") is True

    def _make_subject(self, conversation: StudentClient, index: int) -> RemoteSubject:
        return RemoteSubject(conversation, index, self._visible[index].exercise.name)

    def _find_sheet(self, check: CheckCell, *, hidden: bool) -> Sheet:
        return check.exercise.sheet(hidden=hidden, seed=self._settings.seed or 0, device=self._settings.device)

    def _run_hidden_tests(self, notebook: NotebookNode) -> None:
        """Run the hidden tests of the test cells; from here on, only pass or fail of the answers is shown."""
        for index, check in list(self._visible.items()):
            cell = notebook.cells[index]
            conversation = self._available_client(cell, index)
            if conversation is not None:
                begun = datetime.now(UTC)
                conversation.begin(self._cell_limits(cell), lambda output: None)
                if check.broken is None:
                    with suppress(LimitError):
                        conversation.ask({"do": "recall", "cell": index})
                conversation.known = check.answers
                conversation.broken = conversation.broken or check.broken
                show_outputs(cell, [*check.outputs.items, self._verdict_output(conversation, index)], begun)
                broken = conversation.broken
                if broken is not None and check.broken is None:
                    # Its own text could depend on a hidden question.
                    broken = LimitError(broken.kind, "A hidden question was not answered within the limits.")
                self._record_failure(cell, index, broken)
                if described := compute_signature(cell.outputs, conversation.known, self._settings.device):
                    self.signatures[described[0]] = described[1]
            del self._visible[index]
            self._update_process(notebook, index, upto=len(notebook.cells))

    def _verdict_output(self, conversation: StudentClient, index: int) -> Any:
        """Return a test cell's output: its verdict, or an error that explains why the verdict is missing."""
        check = self._visible[index]
        if not check.defined:
            return error_output("name error", f"name {check.exercise.name!r} is not defined")
        try:
            sheet = self._find_sheet(check, hidden=check.hidden)
            verdict = verdict_on(self._make_subject(conversation, index), sheet)
        except Exception as error:
            return error_output("no verdict", f"The answers could not be judged ({type(error).__name__}).")
        data = {VERDICT_MIME: verdict.to_dict(), "text/plain": repr(verdict), "text/html": verdict._repr_html_()}
        return new_output("execute_result", data=data)

    def _available_client(self, cell: NotebookNode, index: int) -> StudentClient | None:
        """Return the client of the student's process; None, after recording a problem, if it may not run this cell."""
        if self._is_time_up():
            self._fail_cell(cell, index, "time used up", "The submission had used up its time.")
            return None
        if self._conversation is None:
            message = f"{self._settings.restarts + 1} cells brought the process down; this one was not run."
            self._fail_cell(cell, index, "kernel died", message)
        return self._conversation

    def _update_process(self, notebook: NotebookNode, index: int, upto: int | None = None) -> None:
        """Record the reports of the student's process, and replace the process if the cell has ended it."""
        if self._child is not None:
            self._reported |= dict.fromkeys(self._child.reports())
        if self._conversation is not None and not self._conversation.alive:
            self._deadly.add(index)
            self._restart_process(notebook, index + 1 if upto is None else upto)

    def _rerun_for_definitions(self, notebook: NotebookNode, cell: NotebookNode, index: int) -> None:
        """Run a cell again, only for its definitions."""
        conversation = self._conversation
        if conversation is None or self._is_time_up() or index in self._deadly:
            return
        conversation.begin(self._cell_limits(cell), lambda output: None)
        with suppress(LimitError):
            conversation.ask({"do": "define", "source": cell.source, "complete": index in self._complete})
        self._update_process(notebook, index)

    def _record_failure(self, cell: NotebookNode, index: int, broken: LimitError | None) -> None:
        """Record a cell's failure if its outputs do not show it."""
        problem = enforce_verdict(cell) if is_test(cell) else None
        has_verdict = check_total(cell) is not None
        if problem is not None:
            self._fail_cell(cell, index, *problem)
        elif broken is not None and has_verdict:
            # The check reports it as a finding and gives points for the other rows.
            self._problems.append(Problem(broken.kind, broken.message, where=cell_label(cell, index)))
        elif broken is not None:
            self._fail_cell(cell, index, broken.kind, broken.message)
        elif not is_test(cell):
            self._note_error(cell, index)
        elif not has_verdict and not has_error(cell) and index not in self._complete:
            self._fail_cell(cell, index, "no verdict", "The test did not come to its end, and shows no error.")

    def _note_error(self, cell: NotebookNode, index: int) -> None:
        error = next((output for output in cell.outputs if output.output_type == "error"), None)
        if error is not None:
            message = f"The cell raised {error.ename}: {error.evalue.strip()}"[:_TOLD]
            if self._asked:
                # A test of the author's own may have shown hidden values to the student's code, which could print them here.
                silent = f"The cell raised {public_error_name(error.ename)}. Which one is not told, for the cell stands behind a test."
                fault = syntax_error(cell.source)
                message = f"The cell raised SyntaxError: {fault}" if fault else silent
            self._problems.append(Problem("cell error", message, where=cell_label(cell, index)))

    def _fail_cell(self, cell: NotebookNode, index: int, kind: str, message: str) -> None:
        set_grader_error(cell, kind, message)
        self._problems.append(Problem(kind, message, where=cell_label(cell, index)))

    def _cell_limits(self, cell: Mapping[str, Any]) -> CellLimits:
        settings, test = self._settings, bool(cell) and is_test(cell)
        remaining = max(1.0, self._stop_at - monotonic())
        cpu_remaining = max(1.0, settings.submission_cpu_seconds - self._cpu_seconds)
        seconds = settings.exercise_seconds if test else settings.cell_seconds
        cpu = settings.exercise_cpu_seconds if test else settings.submission_cpu_seconds
        return CellLimits(
            min(seconds, remaining),
            min(cpu, cpu_remaining),
            settings.memory_mb,
            settings.flood_output,
            settings.answers_mb,
        )

    def _start_process(self, notebook: NotebookNode, upto: int) -> None:
        """Start a process that refuses the forbidden functions, and run the cells above ``upto`` in it."""
        self._child = child = self._new_child(self._forbidding_rules)
        self.layers, self.isolation = child.layers, child.isolation
        self._conversation = conversation = StudentClient(child, self._how_it_ended, self._forbidding_rules)
        conversation.begin(self._cell_limits({}), lambda output: None)
        with suppress(LimitError):  # code that opens a file that does not fit gets FileNotFoundError
            for name, data in self._files.items():
                conversation.ask({"do": "place", "name": name, "data": data})
        for index, cell in enumerate(notebook.cells[:upto]):
            if self._is_time_up():
                self._end_process()
                return
            if cell.cell_type != "code" or not cell.source.strip() or index in self._deadly:
                continue
            conversation.begin(self._cell_limits(cell), lambda output: None)
            if index in self._visible:
                with suppress(LimitError):
                    self._bind_exercise(conversation, index)
                    conversation.ask({"do": "remember", "cell": index})
            elif not is_test(cell):
                request = (
                    {"do": "define", "complete": index in self._complete} if self._forbidding_rules else {"do": "run"}
                )
                with suppress(LimitError):
                    conversation.ask({**request, "source": cell.source})
            if not conversation.alive:
                self._deadly.add(index)
                self._restart_process(notebook, upto)
                return

    def _renew_time(self) -> None:
        self._stop_at, self._cpu_seconds = monotonic() + self._settings.submission_seconds, 0.0

    def _is_time_up(self) -> bool:
        return monotonic() >= self._stop_at or self._cpu_seconds >= self._settings.submission_cpu_seconds

    def _restart_process(self, notebook: NotebookNode, upto: int) -> None:
        self._end_process()
        if len(self._deadly) <= self._settings.restarts:
            self._start_process(notebook, upto)

    def _end_process(self) -> None:
        if self._child is not None:
            self._cpu_seconds += self._child.cpu_seconds()
            self._reported |= dict.fromkeys(self._child.last_reports())
            self._child.close()
        self._child = self._conversation = None
