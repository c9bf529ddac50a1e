"""Run a submission in a Jupyter kernel; any behaviour of its code becomes a result and never a failure of the grader.

The class is a preprocessor of nbgrader's, so that ``nbgrader autograde`` and the formgrader run submissions just as ``tfcourse
autograde`` does.
"""

from __future__ import annotations

import asyncio
import copy
import math
from pathlib import Path
from subprocess import DEVNULL
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, cast

from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbclient.util import ensure_async
from nbgrader.preprocessors import Execute
from traitlets import Any as AnyTrait
from traitlets import Bool, Enum, Integer

from autograder.engine.checker.output_limit import limit_outputs
from autograder.engine.environment import kernel_environment
from autograder.engine.settings import GradingSettings, resolve_device
from autograder.intake.notebook.problem import Problem, add_problems, problems_of
from autograder.intake.notebook.test_cells import error_output, is_test, name_of, settle

_TRACEBACK_LINES = 60
_ERROR_CHARACTERS = 4_000


class KernelExecute(Execute):  # type: ignore[misc]
    """nbgrader's Execute with a private folder, a clean environment, hard limits, and a named problem for every failure."""

    settings = AnyTrait(GradingSettings(), help="The limits, the device and the seed.")

    # Jupyter's graceful shutdown waits almost a second, for a kernel that holds nothing to save.
    shutdown_kernel = Enum(("graceful", "immediate"), "immediate").tag(config=True)
    iopub_timeout = Integer(5, help="Seconds that a stopped cell has to fall silent.").tag(config=True)
    coalesce_streams = Bool(True).tag(config=True)
    store_widget_state = Bool(False).tag(config=True)

    def preprocess(self, nb: Any, resources: Any = None, km: Any = None) -> tuple[Any, Any]:
        """Run all code cells of a sanitised notebook, in place.

        A notebook with a fatal problem is not run: its test cells get that problem as their error.
        """
        fatal = next((problem for problem in problems_of(nb) if problem.fatal), None)
        if fatal is not None:
            for cell in nb.cells:
                if is_test(cell):
                    cell.outputs = [error_output("not gradable", fatal.what)]
            return nb, resources
        # As in the parent class, each notebook gets a new client.
        NotebookClient.__init__(self, nb, km)
        self.reset_execution_trackers()
        self._found: list[Problem] = []
        self._stop_at = monotonic() + self.settings.submission_seconds
        with TemporaryDirectory(prefix="tfcourse-", ignore_cleanup_errors=True) as folder:
            self._run(folder)
        limit_outputs(nb)
        add_problems(nb, self._found)
        return nb, resources

    def _run(self, folder: str) -> None:
        """Run the cells in order. A cell that crashes the kernel fails alone; the cells below run in a new kernel."""
        work = Path(folder) / "work"
        work.mkdir()
        self.resources = {"metadata": {"path": str(work)}}
        self._sockets = Path(folder) / "k"
        environment = kernel_environment(
            Path(folder), device=resolve_device(self.settings.device), seed=self.settings.student_seed
        )
        position, deadly = 0, set[int]()
        while position < len(self.nb.cells):
            if len(deadly) > self.settings.restarts:
                self._give_up(position)
                return
            # Keep the kernel process's own prints off the grader's terminal.
            with self.setup_kernel(env=environment, stdout=DEVNULL, stderr=DEVNULL):
                position = self._run_from(position, deadly)

    def create_kernel_manager(self) -> Any:
        """Return a manager whose kernel uses sockets in the submission's own folder, which no other user can open."""
        manager = super().create_kernel_manager()
        manager.transport, manager.ip = "ipc", str(self._sockets)
        return manager

    def _run_from(self, start: int, deadly: set[int]) -> int:
        """Run the cells above again in a fresh kernel, then those from an index on; if the kernel dies, return where to continue."""
        # Seed the running kernel: its start draws random numbers, and not always as many.
        self.wait_for_reply(
            self.kc.execute(_SEED.format(seed=self.settings.student_seed), silent=True, store_history=False)
        )
        for index, cell in enumerate(self.nb.cells[:start]):
            if cell.cell_type == "code" and not is_test(cell) and index not in deadly:
                self._characters, self._flooded = 0, False
                try:
                    self.execute_cell(copy.deepcopy(cell), index)
                except Exception:
                    deadly.add(index)
                    return start
                finally:
                    self.nb.cells[index] = cell
        for index in range(start, len(self.nb.cells)):
            cell = self.nb.cells[index]
            try:
                self._run_cell(cell, index)
            except Exception as error:  # this cell caused any failure of the kernel's connection
                deadly.add(index)
                self._bury(cell, index, error)
                return index + 1
        return len(self.nb.cells)

    def _run_cell(self, cell: Any, index: int) -> None:
        if cell.cell_type != "code" or not cell.source.strip():
            return
        if monotonic() >= self._stop_at:
            self._fail(
                cell, index, "time used up", f"The submission had used up its {self.settings.submission_seconds} s."
            )
            return
        self._characters, self._flooded = 0, False
        self.execute_cell(cell, index, store_history=True)
        if self._flooded:
            self._fail_flood(cell, index)
        elif any(output.output_type == "error" and output.ename == "CellTimeoutError" for output in cell.outputs):
            self._fail(cell, index, "timeout", f"It was stopped after {self._get_timeout(cell)} s.")
        elif is_test(cell):
            if problem := settle(cell):
                self._fail(cell, index, *problem)
        else:
            self._note_error(cell, index)

    def _note_error(self, cell: Any, index: int) -> None:
        error = next((output for output in cell.outputs if output.output_type == "error"), None)
        if error is not None:
            message = f"The cell raised {error.ename}: {error.evalue.strip()}"[:300]
            self._found.append(Problem("cell error", message, where=name_of(cell, index)))

    def _fail(self, cell: Any, index: int, kind: str, message: str) -> None:
        """Give a cell one error of the grader's; a test cell gets no points."""
        streams = [output for output in cell.outputs if output.output_type == "stream"]
        cell.outputs = [*streams, error_output(kind, message)]
        self._found.append(Problem(kind, message, where=name_of(cell, index)))

    def _bury(self, cell: Any, index: int, error: Exception) -> None:
        if self._flooded:
            self._fail_flood(cell, index)
        elif isinstance(error, CellTimeoutError):
            self._fail(
                cell, index, "timeout", "It could neither be finished in time nor interrupted; its kernel was killed."
            )
        elif isinstance(error, DeadKernelError):
            self._fail(
                cell,
                index,
                "kernel died",
                "The kernel died: the code ended its process, crashed it, or filled the memory.",
            )
        else:
            self._fail(
                cell, index, "kernel died", f"The kernel could not be understood any more ({type(error).__name__})."
            )

    def _fail_flood(self, cell: Any, index: int) -> None:
        self._fail(
            cell,
            index,
            "output flood",
            f"It printed more than {self.settings.flood_output} characters and was stopped.",
        )

    def _give_up(self, start: int) -> None:
        message = f"{self.settings.restarts + 1} cells brought the kernel down; what follows was not run."
        self._found.append(Problem("kernel died", message))
        for cell in self.nb.cells[start:]:
            if is_test(cell):
                cell.outputs = [error_output("kernel died", message)]

    def _get_timeout(self, cell: Any) -> int | None:
        limit = cast("int | None", super()._get_timeout(cell))
        if cell is None or limit is None:
            return limit
        remaining: float = self._stop_at - monotonic()
        return max(1, min(limit, math.ceil(remaining)))

    def output(self, outs: list[Any], msg: dict[str, Any], display_id: str | None, cell_index: int) -> Any:
        """Add an output of the kernel, within the limit of characters."""
        content = msg["content"]
        self._characters += _size(content)
        if self._characters > self.settings.flood_output and not self._flooded:
            self._flooded = True
            self._stopping = asyncio.ensure_future(ensure_async(self.km.interrupt_kernel()))
        if msg["msg_type"] == "error":
            content["evalue"] = str(content.get("evalue", ""))[:_ERROR_CHARACTERS]
            content["traceback"] = [str(line)[:_ERROR_CHARACTERS] for line in content.get("traceback", [])][
                -_TRACEBACK_LINES:
            ]
        # Always keep results: a forgotten print must not push out a verdict.
        elif (_size(content) if msg["msg_type"] == "execute_result" else self._characters) > self.settings.kept_output:
            return None
        return super().output(outs, msg, display_id, cell_index)


_SEED = "__import__('autograder.engine.seeding', fromlist=['seed_all']).seed_all({seed})"


def _size(content: Any) -> int:
    """Return about how many characters a message carries."""
    if isinstance(content, str):
        return len(content)
    if isinstance(content, dict):
        return sum(map(_size, content.values()))
    if isinstance(content, list):
        return sum(map(_size, content))
    return 8
