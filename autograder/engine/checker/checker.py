"""Grade one notebook: run the student's cells in the student's process, and graded cells here with proxies for the student's objects.

A cell that breaks a limit fails alone. If the student's process died, the cells above run again in a new process, and grading continues
below.

A locked cell that is no test runs on both sides. The student's cells and the graded ones need the setup cell's imports; it is the
course's own text, so it may run where the reference is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from time import monotonic
from typing import Any

from nbformat import NotebookNode
from nbformat.notebooknode import from_dict

from autograder.checking.hidden_messages import told_kind
from autograder.engine.checker.behaviour import signature_of
from autograder.engine.checker.remote_objects import RemoteNamespace, proxy_for
from autograder.engine.checker.rpc_client import CellLimits, LimitError, StudentClient
from autograder.engine.checker.zygote_client import StudentProcess
from autograder.engine.settings import GradingSettings
from autograder.engine.student.shell import CellShell, Outputs
from autograder.static_analysis.cell_ast import syntax_error
from autograder.static_analysis.suspicious_code import find_suspicious
from autograder.submission.problem import Problem, add_problems, problems_of
from autograder.submission.test_cells import error_output, is_locked, is_test, name_of, settle

# A problem quotes this many characters of a traceback's last line.
_TOLD = 300
# A problem lists this many suspicious events of the student's process.
_REPORTED = 12


class Checker:
    """Runs one notebook.

    Args:
        settings: the limits.
        new_child: makes a sandboxed process for the student's code.
        how_it_ended: tells the exit status of one that has ended.
        shell: where graded cells run.
    """

    def __init__(
        self,
        settings: GradingSettings,
        new_child: Callable[[], StudentProcess],
        how_it_ended: Callable[[StudentProcess], int],
        shell: CellShell,
    ) -> None:
        self._settings = settings
        self._new_child = new_child
        self._how_it_ended = how_it_ended
        self._shell = shell
        self._names = shell.user_ns
        self._child: StudentProcess | None = None
        self._conversation: StudentClient | None = None
        self._problems: list[Problem] = []
        self._reported: dict[str, None] = {}  # in order, without repetitions
        self._files: dict[str, bytes] = {}
        self._deadly: set[int] = set()
        self._cpu_seconds = 0.0
        self.layers: tuple[str, ...] = ()
        self.isolation = "none"
        self._asked = False  # whether a test has been run
        # What wrong answers returned, by exercise, for instructors who group them.
        self.signatures: dict[str, dict[str, Any]] = {}

    def run(self, notebook: NotebookNode, files: Mapping[str, bytes] | None = None) -> None:
        """Run all code cells of a sanitised notebook, in place. Each test cell gets a verdict, or an error that explains why it has none.

        Args:
            notebook: the notebook.
            files: what lies beside it, by relative path.
        """
        self._files = dict(files or {})
        fatal = next((problem for problem in problems_of(notebook) if problem.fatal), None)
        if fatal is not None:
            for cell in notebook.cells:
                if is_test(cell):
                    cell.outputs = [error_output("not gradable", fatal.what)]
            return
        self._stop_at = monotonic() + self._settings.submission_seconds
        try:
            self._start(notebook, 0)
            for index, cell in enumerate(notebook.cells):
                if cell.cell_type == "code" and cell.source.strip():
                    self._cell(notebook, cell, index)
        finally:
            self._end()
        add_problems(notebook, [*self._problems, *self._worth_a_look(notebook)])

    def _worth_a_look(self, notebook: NotebookNode) -> list[Problem]:
        code = [cell for cell in notebook.cells if cell.cell_type == "code" and not is_test(cell)]
        sources = [cell.source for cell in code if not is_locked(cell)]
        suspicious = find_suspicious(sources)
        remarks = []
        if suspicious:
            remarks.append(f"Its code uses what no exercise needs: {', '.join(suspicious)}.")
        if self._reported:
            lines = [*self._reported][:_REPORTED] + ["…"] * (len(self._reported) > _REPORTED)
            remarks.append(f"While it ran, its code did what no exercise needs: it {'; it '.join(lines)}.")
        return [Problem("worth a look", text, do="It cost nothing; a person should read it.") for text in remarks]

    def _cell(self, notebook: NotebookNode, cell: NotebookNode, index: int) -> None:
        conversation = self._conversation
        if self._is_time_up():
            self._fail(cell, index, "time used up", "The submission had used up its time.")
            return
        if conversation is None:
            downs = self._settings.restarts + 1
            self._fail(cell, index, "kernel died", f"{downs} cells brought the process down; this one was not run.")
            return
        test = is_test(cell)
        outputs = Outputs(self._settings.kept_output, trusted=test)
        begun = datetime.now(UTC)
        conversation.begin(self._allowance(cell), _printed(outputs) if test else outputs.add)
        if test:
            self._asked = True
            self._shell.run(cell.source, outputs.add)
        else:
            self._students(cell, conversation)
            if is_locked(cell):
                # Graded cells may use what the course's own cells define. Their output is already in the notebook.
                self._shell.run(cell.source, lambda output: None)
        cell.outputs = from_dict(outputs.items)
        cell.execution_count = None
        ended = datetime.now(UTC)
        cell.metadata["execution"] = {"iopub.status.busy": begun.isoformat(), "shell.execute_reply": ended.isoformat()}
        self._judge(cell, index, conversation.broken)
        if test and (described := signature_of(cell.outputs, conversation.known, self._settings.device)):
            self.signatures[described[0]] = described[1]
        if not conversation.alive:
            self._deadly.add(index)
            self._restart(notebook, index + 1)

    def _students(self, cell: NotebookNode, conversation: StudentClient) -> None:
        with suppress(LimitError):  # the client keeps the error, and judging the cell reports it
            conversation.ask({"do": "run", "source": cell.source})

    def _judge(self, cell: NotebookNode, index: int, broken: LimitError | None) -> None:
        """Report a cell's failure where its outputs do not show it."""
        problem = settle(cell) if is_test(cell) else None
        if problem is not None:
            self._fail(cell, index, *problem)
        elif broken is not None and is_test(cell) and not _has_error(cell):
            # The check reports it as a finding and gives points for the other rows.
            self._problems.append(Problem(broken.kind, broken.message, where=name_of(cell, index)))
        elif broken is not None:
            self._fail(cell, index, broken.kind, broken.message)
        elif not is_test(cell):
            self._note_error(cell, index)

    def _note_error(self, cell: NotebookNode, index: int) -> None:
        error = next((output for output in cell.outputs if output.output_type == "error"), None)
        if error is not None:
            message = f"The cell raised {error.ename}: {error.evalue.strip()}"[:_TOLD]
            if self._asked:
                # The student's code has seen the hidden questions by now, and could print one of them in an error message.
                silent = f"The cell raised {told_kind(error.ename)}. Which one is not told, for the cell stands behind a test."
                fault = syntax_error(cell.source)
                message = f"The cell raised SyntaxError: {fault}" if fault else silent
            self._problems.append(Problem("cell error", message, where=name_of(cell, index)))

    def _fail(self, cell: NotebookNode, index: int, kind: str, message: str) -> None:
        streams = [output for output in cell.get("outputs", []) if output.output_type == "stream"]
        cell.outputs = [*streams, error_output(kind, message)]
        self._problems.append(Problem(kind, message, where=name_of(cell, index)))

    def _allowance(self, cell: Mapping[str, Any]) -> CellLimits:
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

    def _start(self, notebook: NotebookNode, upto: int) -> None:
        """Start a new process and run the cells above ``upto`` in it."""
        self._child = child = self._new_child()
        self.layers, self.isolation = child.layers, child.isolation
        conversation = StudentClient(child, self._how_it_ended, lambda reference: proxy_for(conversation, reference))
        self._conversation = conversation
        conversation.begin(self._allowance({}), lambda output: None)
        with suppress(LimitError):  # the next request to a process that has ended reports the failure
            conversation.give_key()
        with suppress(LimitError):  # code that opens a file that does not fit gets FileNotFoundError
            for name, data in self._files.items():
                conversation.ask({"do": "place", "name": name, "data": data})
        if isinstance(self._names, RemoteNamespace):
            self._names.conversation = conversation
        for index, cell in enumerate(notebook.cells[:upto]):
            if self._is_time_up():
                self._end()
                return
            if cell.cell_type == "code" and cell.source.strip() and not is_test(cell) and index not in self._deadly:
                conversation.begin(self._allowance(cell), lambda output: None)
                self._students(cell, conversation)
                if not conversation.alive:
                    self._deadly.add(index)
                    self._restart(notebook, upto)
                    return

    def _is_time_up(self) -> bool:
        return monotonic() >= self._stop_at or self._cpu_seconds >= self._settings.submission_cpu_seconds

    def _restart(self, notebook: NotebookNode, upto: int) -> None:
        self._end()
        if len(self._deadly) <= self._settings.restarts:
            self._start(notebook, upto)

    def _end(self) -> None:
        if self._child is not None:
            self._cpu_seconds += self._child.cpu_seconds()
            self._reported |= dict.fromkeys(self._child.reports())
            self._child.close()
        self._child = self._conversation = None


def _printed(outputs: Outputs) -> Callable[[Mapping[str, Any]], None]:
    """Keep what a student's code prints while it is tested. Results and errors of a graded cell come from the checker alone."""

    def take(output: Mapping[str, Any]) -> None:
        if output.get("output_type") == "stream":
            outputs.add(output)

    return take


def _has_error(cell: NotebookNode) -> bool:
    return any(output.output_type == "error" for output in cell.outputs)
