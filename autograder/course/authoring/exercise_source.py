"""Generate an exercise's code: the students' stub and the instructors' solution."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from autograder.checking.exercise import Exercise
from autograder.static_analysis.definitions import (
    Function,
    ModuleSource,
    find_definition,
    first_line,
    function_body,
    indent_body,
    is_private,
    last_line,
    remove_tool_comments,
    replace_bodies,
    returns_none,
)
from autograder.static_analysis.scopes import global_names
from autograder.static_analysis.standalone import standalone_source

__all__ = ["BEGIN_SOLUTION", "END_SOLUTION", "STUB_BODY", "solution_source", "standalone_source", "stub_source"]

#: nbgrader's replacement for a solution.
STUB_BODY = ("# YOUR CODE HERE", "raise NotImplementedError()")
BEGIN_SOLUTION = "### BEGIN SOLUTION"
END_SOLUTION = "### END SOLUTION"


def stub_source(exercise: Exercise) -> str:
    """Return the stub: the reference's signature and docstring (for a class, of every public method) without bodies.

    Raises:
        CourseError: if the reference cannot be cut into head and body.
    """
    module, node = find_definition(exercise.reference)
    return replace_bodies(module, node, lambda function, private: indent_body(STUB_BODY, function))


def solution_source(exercise: Exercise) -> str:
    """Return the reference with each body between nbgrader's solution markers.

    A body includes the module's private helpers that it uses: a helper that returns a value is part of the solution and is copied, because
    the student build lacks it. A helper that only checks is imported. nbgrader reduces the result to exactly :func:`stub_source`.

    Raises:
        CourseError: if the reference cannot be cut into head and body.
    """
    module, node = find_definition(exercise.reference)

    def fill(function: Function, private: list[Function]) -> list[str]:
        lines = function_body(module, function)
        for method in private:
            # Inside the markers, so that it is removed with the solution.
            lines += ["", *remove_tool_comments(module.slice(first_line(method), last_line(method)))]
        helpers = _copied_helpers(module, [function, *private])
        imports = _helper_imports(exercise.reference.__module__, module, [function, *private, *helpers], helpers)
        before = [*indent_body(imports, function), *[""] * bool(imports)]
        for helper in helpers:
            source = remove_tool_comments(module.slice(first_line(helper), last_line(helper)))
            before += [*(line and indent_body([line], function)[0] for line in source), ""]
        return [
            *indent_body([BEGIN_SOLUTION], function),
            *before,
            *(lines or indent_body(["pass"], function)),
            *indent_body([END_SOLUTION], function),
        ]

    return replace_bodies(module, node, fill)


def _copied_helpers(module: ModuleSource, functions: Sequence[Function]) -> list[Function]:
    """Return the private helpers that return a value and that functions use, also indirectly, in the module's order."""
    helpers: dict[str, Function] = {}
    waiting = list(functions)
    while waiting:
        for read in global_names(waiting.pop()):
            helper = module.definitions.get(read.id)
            if (
                read.id not in helpers
                and is_private(read.id)
                and isinstance(helper, (ast.FunctionDef, ast.AsyncFunctionDef))
                and not returns_none(helper)
            ):
                helpers[read.id] = helper
                waiting.append(helper)
    return sorted(helpers.values(), key=lambda helper: helper.lineno)


def _helper_imports(
    name: str, module: ModuleSource, functions: Sequence[Function], written: Sequence[Function]
) -> list[str]:
    """Return import statements for the private names that functions use from their module, except copied ones."""
    required: dict[str, set[str]] = {}
    for read in {read.id for read in global_names(*functions)} - {function.name for function in written}:
        if not is_private(read):
            continue
        if read in module.definitions:
            required.setdefault(name, set()).add(read)
        elif read in module.imports:
            origin, attribute = module.imports[read]
            required.setdefault(origin, set()).add(read if attribute in (None, read) else f"{attribute} as {read}")
    return [f"from {origin} import {', '.join(sorted(names))}" for origin, names in sorted(required.items())]
