"""Run a notebook's cells in a process without a sandbox, and report their outputs; ``workers/plain.py`` starts it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from autograder.checking.rehearsal_process import Failed, OutputFloodError, Tell, run_cells, run_one_job
from autograder.checking.verdict import VERDICT_MIME
from autograder.engine import seeding
from autograder.engine.cell_outputs import Outputs
from autograder.engine.student.cell_shell import make_shell


def main() -> None:
    """Run the job that the parent process sends."""
    run_one_job(_run_job)


def _run_job(job: Mapping[str, Any], tell: Tell) -> None:
    runner = _Shell(job["limits"]["output"], job["limits"]["longest"])
    seeding.seed_all(job["limits"]["seed"])
    run_cells(job, tell, runner)


class _Shell:
    """Runs cells in the shell that the sandbox's processes use, and collects their outputs.

    Args:
        most: how many characters a cell may print.
        longest: how many of them it keeps.
    """

    def __init__(self, most: int, longest: int) -> None:
        self._shell = make_shell()
        self._most, self._longest = most, longest
        self._outputs = Outputs(longest)

    def run(self, source: str) -> Failed | None:
        outputs = self._outputs = Outputs(self._longest)
        self._shell.run(source, self._collect_output)
        if outputs.characters > self._most:
            raise OutputFloodError(self._most)
        error = next((output for output in outputs.items if output["output_type"] == "error"), None)
        if error is None:
            return None
        if error["ename"] == "KeyboardInterrupt":
            raise KeyboardInterrupt
        return "cell error", f"The cell raised {error['ename']}: {error['evalue'].strip()}"

    def _collect_output(self, output: dict[str, Any]) -> None:
        self._outputs.add(output)
        if self._outputs.characters > self._most and output["output_type"] == "stream":
            raise OutputFloodError(self._most)
        verdict, last = output.get("data", {}).get(VERDICT_MIME), self._outputs.items[-1:]
        if verdict and last[0]["output_type"] == "execute_result":  # here the student's process decides
            last[0]["data"][VERDICT_MIME] = verdict

    def event_data(self) -> Mapping[str, Any]:
        return {"outputs": self._outputs.items}
