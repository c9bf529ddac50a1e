"""Find the branches of a reference that no question runs, by coverage.py."""

from __future__ import annotations

import ast
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from autograder.checking.decision import decide
from autograder.checking.exercise import Exercise
from autograder.checking.subject import LocalSubject
from autograder.mistakes.source_edits import Node
from autograder.quizzes.mutation.guards import list_guard_lines, promises_errors
from tools.quality.mutants import own_definitions


@dataclass(frozen=True)
class Branches:
    """The branches of an exercise's own definitions."""

    total: int  # how many there are; a line that is not run at all counts as one
    missed: tuple[str, ...]  # a line for each that no question runs


def branches_of(exercise: Exercise) -> Branches:
    """Run the reference on all questions, visible and hidden, and return its branches and the missed ones."""
    from coverage import Coverage  # only developers have it, and the pages are written without it

    sheet = exercise.sheet(hidden=True)
    nodes = own_definitions(exercise)
    files = {node.module: Path(str(sys.modules[node.module].__file__)) for node in nodes}
    measured = Coverage(branch=True, include=sorted(map(str, files.values())), data_file=None, config_file=False)
    measured.set_option("report:exclude_lines", [])
    measured.start()
    try:
        decide(sheet, LocalSubject(exercise.reference))
    finally:
        measured.stop()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "coverage.json")
        measured.json_report(outfile=str(report))
        reports = {Path(name).name: item for name, item in json.loads(report.read_text("utf-8"))["files"].items()}
    total, missed = 0, []
    guards = promises_errors(exercise.reference)
    for node in nodes:
        run, lines = reports.get(files[node.module].name), _lines_of_functions(node)
        if not guards:
            lines -= {node.numbers[line - 1] for line in list_guard_lines(node.code)}
        if run is None:
            missed.append(f"{node.name}: never runs")
            continue
        unrun = [line for line in run["missing_lines"] if line in lines]
        arcs = [(a, b) for a, b in run["missing_branches"] if a in lines and a not in unrun and abs(b) not in unrun]
        total += len([1 for a, _ in run["executed_branches"] if a in lines]) + len(arcs) + len(unrun)
        text = dict(zip(node.numbers, node.code.split("\n"), strict=True))
        missed += [f"{node.name}: line {line} is never run: {text[line].strip()}" for line in unrun]
        missed += [f"{node.name}: line {a} never goes to {_target(b, text)}: {text[a].strip()}" for a, b in arcs]
    return Branches(total, tuple(missed))


def _lines_of_functions(node: Node) -> set[int]:
    """Return the lines on which statements of functions begin; the others have run when the module was imported."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    owners = [owner for owner in ast.walk(ast.parse(node.code)) if isinstance(owner, functions)]
    statements = (inner for owner in owners for statement in owner.body for inner in ast.walk(statement))
    return {node.numbers[inner.lineno - 1] for inner in statements if isinstance(inner, ast.stmt)}


def _target(line: int, text: dict[int, str]) -> str:
    return "the end" if line < 0 else f"line {line} ({text.get(line, '').strip()})"
