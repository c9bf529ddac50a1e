"""An exercise's code in its forms: the stub that students get, the solution that instructors get, and loose code for sample notebooks."""

from __future__ import annotations

from autograder.authoring.standalone import standalone_source
from autograder.checking.exercise import Exercise
from autograder.scopes import global_names
from autograder.source_text import (
    Function,
    ModuleText,
    body,
    find_definition,
    first_line,
    indented,
    last_line,
    refilled,
    without_tool_comments,
)

__all__ = ["BEGIN_SOLUTION", "END_SOLUTION", "STUB_BODY", "solution_source", "standalone_source", "stub_source"]

#: What nbgrader puts in the place of a solution.
STUB_BODY = ("# YOUR CODE HERE", "raise NotImplementedError()")
BEGIN_SOLUTION = "### BEGIN SOLUTION"
END_SOLUTION = "### END SOLUTION"


def stub_source(exercise: Exercise) -> str:
    """Return the stub: the reference's signature and docstring, and of a class those of every public method, without any body.

    Raises:
        CourseError: if the reference cannot be cut into head and body.
    """
    module, node = find_definition(exercise.reference)
    return refilled(module, node, lambda function, private: indented(STUB_BODY, function))


def solution_source(exercise: Exercise) -> str:
    """Return the reference with each body between nbgrader's solution markers.

    Private helpers of the module that a body uses are imported inside it. nbgrader makes exactly :func:`stub_source` of this.

    Raises:
        CourseError: if the reference cannot be cut into head and body.
    """
    module, node = find_definition(exercise.reference)

    def fill(function: Function, private: list[Function]) -> list[str]:
        lines = body(module, function)
        for method in private:
            # Inside the markers, so that it goes when the solution goes.
            lines += ["", *without_tool_comments(module.slice(first_line(method), last_line(method)))]
        imports = _helper_imports(exercise.reference.__module__, module, [function, *private])
        return [
            *indented([BEGIN_SOLUTION, *imports], function),
            *[""] * bool(imports),
            *(lines or indented(["pass"], function)),
            *indented([END_SOLUTION], function),
        ]

    return refilled(module, node, fill)


def _helper_imports(name: str, module: ModuleText, functions: list[Function]) -> list[str]:
    """Return import statements for the private names that functions take from their module."""
    wanted: dict[str, set[str]] = {}
    for read in {read.id for read in global_names(*functions)}:
        if not read.startswith("_") or read.startswith("__"):
            continue
        if read in module.definitions:
            wanted.setdefault(name, set()).add(read)
        elif read in module.imports:
            origin, attribute = module.imports[read]
            wanted.setdefault(origin, set()).add(read if attribute in (None, read) else f"{attribute} as {read}")
    return [f"from {origin} import {', '.join(sorted(names))}" for origin, names in sorted(wanted.items())]
