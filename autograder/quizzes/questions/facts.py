"""Collect what running a definition shows, as plain data that can leave the process in which student code runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from autograder.checking.sheet import Sheet
from autograder.quizzes.questions.changes import Change, try_changes
from autograder.quizzes.questions.code import Code
from autograder.quizzes.questions.inputs import Input, result_text, turned, visible_inputs
from autograder.quizzes.questions.lines import Layout, Statement, layout, uses_sets
from autograder.quizzes.questions.trace import Point, watched_run

# The sorts of values that sizes decide.
_OF_SIZES = ("shape", "int", "tuple")


@dataclass(frozen=True)
class RunFacts:
    """What one input showed."""

    input: str  # the input as text
    complete: bool  # whether the text gives every number
    number: int  # the input's number in the changes' results
    result: str  # the result as text, or empty
    points: tuple[Point, ...]  # the values at places of the code
    counts: Mapping[int, int]  # how often each line ran
    parameters: Mapping[str, int]  # for a class, the number of parameters of the whole and of its parts, by name


@dataclass(frozen=True)
class Facts:
    """Everything that questions about one definition are made from."""

    exercise: str
    source: str  # the definition
    statements: tuple[Statement, ...]  # the statements that can be asked about
    hidden_lines: tuple[int, ...]  # lines of docstrings, which are not shown
    rows: Mapping[str, str]  # the titles of the check's rows by name
    runs: tuple[RunFacts, ...]  # what inputs showed
    changes: tuple[Change, ...]  # what changes of a line showed


def gather(code: Code, sheet: Sheet) -> Facts:
    """Run a definition on visible inputs, as it is and with changed lines, and return the facts. Only the code decides them."""
    parts = layout(code.tree)
    inputs = visible_inputs(sheet)
    found = [_run(code, parts, item, number) for number, item in enumerate(inputs)]
    runs = [run for run in found if run is not None]
    return Facts(
        exercise=sheet.exercise,
        source=code.source,
        statements=tuple(parts.statements[line] for line in sorted(parts.statements)),
        hidden_lines=tuple(sorted(parts.docstring)),
        rows={section.aspect: section.title for section in sheet.sections},
        runs=tuple(runs),
        changes=tuple(try_changes(code, sheet, inputs)) if runs else (),
    )


def _run(code: Code, parts: Layout, item: Input, number: int) -> RunFacts | None:
    """Return the facts of one input that follow from its text and the code."""
    run = watched_run(code, parts, item.request)
    if run is None:
        return None
    # The order of a set may decide which line runs and what a variable holds, but no shape.
    steady = not uses_sets(code.tree)
    counts = dict(run.counts) if steady else {}
    points = [point for point in run.points if steady or point.sort == "shape"]
    if not item.complete:
        # Only sizes are told. What changes with the numbers cannot be asked for.
        other = watched_run(code, parts, turned(item.request))
        same = set(other.points) if other is not None else set()
        counts = counts if other is not None and other.counts == run.counts else {}
        points = [point for point in points if point.sort in _OF_SIZES and (point in same or other is None)]
        points = [point for point in points if point.sort == "shape" or other is not None]
    result = result_text(run.answer) if item.complete else ""
    parameters = _parameters(code, item.request.init) if item.request.init is not None else {}
    return RunFacts(item.text, item.complete, number, result, tuple(points), counts, parameters)


def _parameters(code: Code, init: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of parameters of an instance (under an empty name) and of its direct parts."""
    module = code.compiled()(**init)
    parts = {"": module, **dict(module.named_children())}
    counts = {name: sum(weight.numel() for weight in part.parameters()) for name, part in parts.items()}
    direct = {name: weight.numel() for name, weight in module.named_parameters(recurse=False)}
    return {name: count for name, count in {**counts, **direct}.items() if count}
