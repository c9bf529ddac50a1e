"""Run the pre-check: check a notebook with the visible tests before it is handed in.

It runs the notebook's code cells in a fresh IPython shell, in a separate process with limits, and checks every exercise that they define.
The command of a student build is here too (``tfcourse validate NOTEBOOK``), because it must work with nothing but what that build has.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from autograder.checking.rehearsal import Limits, RehearsalError, UncheckedExercise, rehearse
from autograder.checking.rehearsal_process import NOT_DEFINED
from autograder.checking.similar_names import is_similar_name
from autograder.checking.stamp import STAMP
from autograder.checking.verdict import Verdict

# The placeholder for an answer in words.
PLACEHOLDER = "YOUR ANSWER HERE"
_DEFINED = re.compile(r"^(?:async\s+def|def|class)\s+(\w+)", re.MULTILINE)
# The line of a prompt that tells how long its exercise takes.
_MINUTES = re.compile(r"^\*Difficulty ★{1,3}, about (\d+) minutes\.\*$", re.MULTILINE)
# The default limits are the grader's.
LIMITS = Limits()


class NotebookError(Exception):
    """The file cannot be checked; the message states the reason and a remedy."""


@dataclass(frozen=True)
class CellError:
    """A code cell that raised, or was stopped."""

    cell: int  # the cell's number among the code cells, from 1
    first_line: str  # the cell's first line
    # the exception, as ``"TypeError: …"``, or a sentence about what has happened: ``"It was stopped after 60 s."``
    error: str

    def __str__(self) -> str:
        reason = f": {self.error}" if self.error.startswith("It ") else f" raised {self.error}"
        return f"code cell {self.cell} ({self.first_line[:60]}){reason}"


@dataclass(frozen=True)
class AbsentExercise:
    """A checked name that earns nothing, because it is not defined or not an exercise."""

    name: str
    reason: str  # why it earns nothing, in a few words
    points: float | None = None  # what it is worth, or None if it is not an exercise of this course
    error: CellError | None = None  # the error of the cell that should have defined it, if there is one

    def __str__(self) -> str:
        score = "" if self.points is None else f"0 of {self.points:g} points: "
        cause = f" ({self.error})" if self.error else ""
        return f"{self.name}: {score}{self.reason}{cause}"


@dataclass(frozen=True)
class UnansweredQuestion:
    """A question in words without a written answer."""

    name: str  # the question's name, or empty where the notebook has lost it
    points: float | None  # what it is worth, or None where the notebook does not say


@dataclass(frozen=True)
class Validation:
    """The result of the pre-check."""

    verdicts: tuple[Verdict, ...]  # one per exercise that is there, in the order of the notebook
    absent: tuple[AbsentExercise, ...]  # what the notebook asks for and is not there
    errors: tuple[CellError, ...]  # code cells that raised
    # questions in words that still wait for an answer. A person grades them, so they do not count here.
    unanswered: tuple[UnansweredQuestion, ...]
    seconds: float  # how long it took
    # the release of the checks that the notebook belongs to, if the installed package has another one
    other_release: str = ""
    # how long each exercise takes, as its prompt says, in the order of the notebook
    minutes: Mapping[str, int] = field(default_factory=dict)

    @property
    def missing(self) -> tuple[str, ...]:
        """The names that the notebook checks but that could not be checked."""
        return tuple(absent.name for absent in self.absent)

    @property
    def score(self) -> float:
        """The points earned on the visible tests."""
        return sum(verdict.score for verdict in self.verdicts)

    @property
    def max_score(self) -> float:
        """The maximum points on the visible tests, including exercises that could not be checked."""
        return sum(verdict.max_score for verdict in self.verdicts) + sum(item.points or 0.0 for item in self.absent)

    @property
    def passed(self) -> bool:
        """Whether every exercise of the notebook has full marks on the visible tests."""
        return not self.missing and all(verdict.passed for verdict in self.verdicts)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data, ready for JSON."""
        return {
            "passed": self.passed,
            "score": self.score,
            "max_score": self.max_score,
            "missing": list(self.missing),
            "errors": [vars(error) for error in self.errors],
            "unanswered": [vars(question) for question in self.unanswered],
            "verdicts": [verdict.to_dict() for verdict in self.verdicts],
        }


def validate(path: Path, limits: Limits = LIMITS) -> Validation:
    """Run a notebook's code and check every exercise in it.

    Args:
        path: an ``.ipynb`` file.
        limits: what the notebook may use.

    Raises:
        NotebookError: if the file is not a notebook, contains no exercise, or nothing can be run here.
    """
    started = time.perf_counter()
    every = _read_cells(path)
    cells = [cell.source for cell in every if cell.kind == "code"]
    names = _checked_names(cells)
    if not names:
        raise NotebookError(f"{path}: there is no exercise in this notebook. Is it a chapter's exercise notebook?")
    if importlib.util.find_spec("IPython") is None:
        raise NotebookError("IPython is needed to run a notebook's cells. Install it: pip install ipython")
    to_run = [(number, source) for number, source in enumerate(cells, start=1) if not _is_test(source)]
    try:
        outcome = rehearse(to_run, names, limits)
    except RehearsalError as error:
        raise NotebookError(f"{path}: the notebook could not be run here: {error}") from error
    errors = [
        CellError(number, _first_line(cells[number - 1]), outcome.errors[number].text)
        for number in sorted(outcome.errors)
    ]
    results = [(name, outcome.exercises.get(name, UncheckedExercise("not checked", None))) for name in names]
    return Validation(
        verdicts=tuple(result for _, result in results if isinstance(result, Verdict)),
        absent=tuple(
            _describe_absent(name, result, cells, errors, names)
            for name, result in results
            if isinstance(result, UncheckedExercise)
        ),
        errors=tuple(errors),
        unanswered=tuple(_find_unanswered(every)),
        seconds=time.perf_counter() - started,
        other_release=_other_release(path),
        minutes=_stated_minutes(every, names),
    )


def _stated_minutes(cells: Sequence[_Cell], names: Sequence[str]) -> dict[str, int]:
    """Return the minutes stated in the prompts, by exercise; exercises without a prompt are omitted."""
    minutes: dict[str, int] = {}
    announced = 0
    for cell in cells:
        if cell.kind == "markdown":
            match = _MINUTES.search(cell.source)
            announced = int(match[1]) if match else announced
        for name in _DEFINED.findall(cell.source) if cell.kind == "code" and announced else ():
            if name in names and name not in minutes:
                minutes[name], announced = announced, 0
    return minutes


def _other_release(path: Path) -> str:
    """Return the notebook's version of the checks if the installed package has another one; otherwise an empty string."""
    mark = json.loads(path.read_text(encoding="utf-8")).get("metadata", {}).get("tfcourse")
    stamp = str(mark.get("checks", "")) if isinstance(mark, dict) else ""
    return stamp if STAMP and stamp and stamp != STAMP else ""


def _first_line(source: str) -> str:
    return next(iter(source.strip().splitlines()), "")


def _describe_absent(
    name: str, result: UncheckedExercise, cells: Sequence[str], errors: Sequence[CellError], asked: Sequence[str]
) -> AbsentExercise:
    """Describe a name that could not be checked: its points, and the cell error or misspelling that caused it."""
    cause = next((error for error in reversed(errors) if _seems_to_define(cells[error.cell - 1], name)), None)
    reason = result.reason
    if reason == NOT_DEFINED and cause is None:
        others = (other for cell in cells for other in _DEFINED.findall(cell) if other not in asked)
        misnamed = next((other for other in others if is_similar_name(other, name)), None)
        reason += f", but {misnamed} is: rename it if it is your solution" if misnamed else ""
    return AbsentExercise(name, reason, result.points, cause)


def _seems_to_define(source: str, name: str) -> bool:
    """Return whether a cell seems to define a name, even if the cell is invalid Python."""
    return re.search(rf"^\s*(async\s+def|def|class)\s+{name}\b|^{name}\s*=", source, re.MULTILINE) is not None


def _find_unanswered(cells: Sequence[_Cell]) -> Iterator[UnansweredQuestion]:
    """Yield the written questions whose answer is still the placeholder, with or without nbgrader's metadata."""
    for cell in cells:
        question = cell.mark.get("grade") and cell.mark.get("solution")
        untouched = cell.source.strip() == PLACEHOLDER or (question and PLACEHOLDER in cell.source)
        if cell.kind == "markdown" and untouched:
            yield UnansweredQuestion(str(cell.mark.get("grade_id", "")), cell.mark.get("points"))


class _Cell(NamedTuple):
    """A notebook cell: its type, its text, and its nbgrader metadata, if any."""

    kind: str
    source: str
    mark: Mapping[str, Any]


def _read_cells(path: Path) -> list[_Cell]:
    if path.is_dir():
        raise NotebookError(f"{path}: this is a folder. Give the path of the notebook in it (it ends in .ipynb).")
    if not path.is_file():
        raise NotebookError(f"{path}: there is no such file. Give the path of your notebook (it ends in .ipynb).")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        cells = content["cells"] if "cells" in content else content["worksheets"][0]["cells"]
        return [
            _Cell(
                cell["cell_type"],
                "".join(cell.get("source", cell.get("input", ""))),
                dict(cell.get("metadata", {}).get("nbgrader") or {}),
            )
            for cell in cells
        ]
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        advice = "Open it in Jupyter and save it again, or fetch a fresh copy of the chapter's notebook."
        raise NotebookError(
            f"{path}: this is not a Jupyter notebook ({type(error).__name__}: {error}). {advice}"
        ) from error


def _checked_name(source: str) -> str | None:
    """Return ``f`` if a cell's first statement is the call ``check(f)`` or ``check(f, …)``; else None."""
    try:
        first = ast.parse(source).body[:1]
    except SyntaxError:
        return None
    match first:
        case [ast.Expr(ast.Call(func=ast.Name("check"), args=[ast.Name(name)]))]:
            return name
    return None


def _is_test(source: str) -> bool:
    return _checked_name(source) is not None


def _checked_names(cells: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(name for source in cells if (name := _checked_name(source))))


def describe_validation(validation: Validation) -> str:
    """Describe a validation for a terminal: everything that needs work first, then a line per solved exercise."""
    failed = [verdict for verdict in validation.verdicts if not verdict.passed]
    lines = [*map(str, validation.errors), *map(str, failed), *map(str, validation.absent)]
    lines += _solved_lines([verdict for verdict in validation.verdicts if verdict.passed])
    lines += _unanswered_lines(validation.unanswered)
    if validation.other_release:
        lines.append(
            f"This notebook belongs to checks {validation.other_release}, the installed package has {STAMP}: "
            "install the package that came with the notebook."
        )
    score = f"{validation.score:g} of {validation.max_score:g} points on the visible tests"
    hidden = "Grading also runs hidden tests: the same kinds of test with other inputs."
    return "\n".join([*lines, f"{score}, in {validation.seconds:.1f} s", *_progress_lines(validation), hidden])


def _progress_lines(validation: Validation) -> list[str]:
    """Describe how many exercises are solved, how long the others take, and which one is next."""
    solved = {verdict.exercise for verdict in validation.verdicts if verdict.passed}
    remaining = {name: minutes for name, minutes in validation.minutes.items() if name not in solved}
    count = f"{len(solved)} of {len(validation.verdicts) + len(validation.absent)} exercises solved"
    if not remaining:
        return [count]
    hours, minutes = divmod(sum(remaining.values()), 60)
    time_left = " ".join(filter(None, [f"{hours} h" * bool(hours), f"{minutes} min" * bool(minutes)]))
    name, next_minutes = next(iter(remaining.items()))
    return [f"{count}, about {time_left} to go; next: {name} (about {next_minutes} minutes)"]


def _solved_lines(passed: Sequence[Verdict]) -> list[str]:
    return [f"{verdict.exercise}: {verdict.score:g} of {verdict.max_score:g} points, all right" for verdict in passed]


def _unanswered_lines(unanswered: Sequence[UnansweredQuestion]) -> list[str]:
    if not unanswered:
        return []
    points = sum(question.points or 0 for question in unanswered)
    worth = f" ({points:g} point{'' if points == 1 else 's'}, graded by a person)" if points else ""
    one = len(unanswered) == 1
    return [f"{len(unanswered)} written question{' is' if one else 's are'} still unanswered{worth}"]


def report_validation(path: Path, *, as_json: bool, show: Callable[[str], Any] = print) -> int:
    """Validate a notebook, show the result, and return the exit code: 0 for full marks, 1 otherwise."""
    validation = validate(path)
    show(json.dumps(validation.to_dict(), indent=2) if as_json else describe_validation(validation))
    return 0 if validation.passed else 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command of a student build: ``tfcourse validate NOTEBOOK``."""
    parser = argparse.ArgumentParser(prog="tfcourse", description="Check your work before you hand it in.")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("validate", help="run a notebook and check every exercise in it")
    command.add_argument("notebook", type=Path, help="for example 03_scaled_dot_product.ipynb")
    command.add_argument("--json", action="store_true", help="print the result as JSON")
    options = parser.parse_args(arguments)
    try:
        return report_validation(options.notebook, as_json=options.json)
    except NotebookError as error:
        print(f"tfcourse: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
