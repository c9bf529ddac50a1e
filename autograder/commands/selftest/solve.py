"""Run the solutions and the stubs as the grader runs submissions.

Every exercise must get full marks for its solution and none for its stub: then course, checks and machine agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

from autograder.checking.verdict import VERDICT_MIME, Verdict
from autograder.course.authoring.chapter import Chapter, find_chapter, grade_id, is_test
from autograder.course.authoring.solution_notebook import hidden_test
from autograder.course.authoring.sync import require_project_package
from autograder.engine.interface import Executor, Submission
from autograder.engine.settings import GradingSettings, is_cuda_available, resolve_device
from autograder.engine.workers.plain import PlainExecutor
from autograder.errors import CourseError
from autograder.intake.notebook.problem import read_problems

# A generous limit: this tests correctness, not speed.
CELL_SECONDS = 300
NOTEBOOK_SECONDS = 1800


@dataclass(frozen=True)
class SolveResult:
    """The result of one exercise on one device."""

    chapter: str
    exercise: str
    device: str  # ``"cpu"`` or ``"cuda"``
    solution: Verdict | None  # the verdict on the solution, or None if its test gave none
    stub: Verdict | None  # the verdict on the stub, or None if its test gave none
    error: str = ""  # why a verdict is missing, or empty

    @property
    def is_sound(self) -> bool:
        """Whether the solution gets full marks and the stub none."""
        full = self.solution is not None and self.solution.passed
        return full and self.stub is not None and self.stub.score == 0

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data, ready for JSON."""
        return {
            "chapter": self.chapter,
            "exercise": self.exercise,
            "device": self.device,
            "sound": self.is_sound,
            "solution": self.solution.to_dict() if self.solution else None,
            "stub": self.stub.to_dict() if self.stub else None,
            "error": self.error,
        }

    def __str__(self) -> str:
        solution = f"{self.solution.score:g} of {self.solution.max_score:g}" if self.solution else "no verdict"
        stub = f"{self.stub.score:g}" if self.stub else "no verdict"
        label = "sound  " if self.is_sound else "UNSOUND"
        lines = [f"{label}  {self.device:4}  {self.chapter}  {self.exercise}: solution {solution}, stub {stub}"]
        lines += [f"         {self.error}"] if self.error else []
        if self.solution is not None:
            lines += [f"         {f.aspect}: {f.message}" for f in self.solution.findings if not f.passed]
        if self.stub is not None:
            lines += [f"         the stub passes {f.aspect}" for f in self.stub.findings if f.passed]
        return "\n".join(lines)


def resolve_devices(choice: str) -> list[str]:
    """Return the names of the devices for the solutions.

    Args:
        choice: ``"cpu"``, ``"cuda"``, or ``"auto"``: the CPU, and CUDA if it is available.

    Raises:
        CourseError: if CUDA is chosen and not available.
    """
    if choice == "auto":
        return ["cpu", "cuda"] if is_cuda_available() else ["cpu"]
    return [resolve_device(choice)]


def solve(
    root: Path,
    chapters: Sequence[str],
    *,
    device: str = "cpu",
    progress: Callable[[str], None] = lambda step: None,
    make_executor: Callable[[GradingSettings], Executor] = PlainExecutor,
) -> list[SolveResult]:
    """Run the solution notebooks and the stubs of chapters on a device.

    The tests include the hidden tests, as in the grader.

    Args:
        chapters: names of chapters.
        device: ``"cpu"`` or ``"cuda"``.
        progress: called with each finished notebook.
        make_executor: creates the executor.

    Raises:
        CourseError: if a chapter has no solution notebook, the installed package is not this project's, or a notebook cannot be run.
    """
    require_project_package(root)
    selected = [find_chapter(root, name) for name in chapters]
    notebooks = {chapter.name: _read_solution(chapter) for chapter in selected}
    settings = GradingSettings(device=device, cell_seconds=CELL_SECONDS, submission_seconds=NOTEBOOK_SECONDS)
    executor = make_executor(settings)
    results = []
    for chapter in selected:
        solutions = _run_notebook(executor, chapter, "solutions", notebooks[chapter.name])
        progress(f"{chapter.name}: solutions on {device}")
        stubs = _run_notebook(executor, chapter, "stubs", chapter.notebook())
        progress(f"{chapter.name}: stubs on {device}")
        for exercise in chapter.exercises():
            solution, error = solutions.get(exercise.name, _ABSENT)
            stub, other = stubs.get(exercise.name, _ABSENT)
            results.append(SolveResult(chapter.name, exercise.name, device, solution, stub, error or other))
    return results


_ABSENT = (None, "the notebook has no test cell for it")


def _read_solution(chapter: Chapter) -> Any:
    path = chapter.solution_path
    advice = "Write it from the reference: tfcourse sync"
    if not path.is_file():
        raise CourseError("the solution notebook is missing", where=path, do=advice)
    try:
        return nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
    except (ValueError, KeyError, AttributeError, nbformat.ValidationError) as error:
        raise CourseError(f"the solution notebook cannot be read ({error})", where=path, do=advice) from error


def _run_notebook(
    executor: Executor, chapter: Chapter, kind: str, notebook: Any
) -> dict[str, tuple[Verdict | None, str]]:
    """Run a notebook, and return each exercise's verdict, or None and the reason."""
    for cell in notebook.cells:
        if is_test(cell):
            cell.source = hidden_test(grade_id(cell).removeprefix("test_"))
    execution = executor.grade_one(Submission(kind, chapter.name, nbformat.writes(notebook)))
    if execution.failure:
        raise CourseError(
            f"the notebook with the {kind} of {chapter.name} could not be run: {execution.failure}",
            do="tfcourse doctor lists what is missing here.",
        )
    done = nbformat.reads(execution.notebook, as_version=4)
    problems = {problem.where: problem.what for problem in read_problems(done)}
    verdicts = {}
    for cell in filter(is_test, done.cells):
        name = grade_id(cell).removeprefix("test_")
        verdict, error = _read_verdict(cell.outputs)
        # The error of an exercise's cell or of the setup cell says more than the NameError in the test.
        verdicts[name] = (verdict, (problems.get(name) or problems.get("setup") or error) if error else "")
    return verdicts


def _read_verdict(outputs: Sequence[Any]) -> tuple[Verdict | None, str]:
    for output in outputs:
        if output.output_type == "execute_result" and VERDICT_MIME in output.data:
            return Verdict.from_dict(output.data[VERDICT_MIME]), ""
        if output.output_type == "error":
            return None, f"{output.ename}: {output.evalue}"
    return None, "the test cell showed no verdict"
