"""Run a cell for its definitions in a process that refuses functions with which the cell may compare itself.

A statement that fails is passed over, and the cell goes on below it. This holds for each statement of a cell and of the blocks in it
(``if``, ``for``, ``with``, a class), so that one comparison costs no definition. Functions run as they are written.

Protects against:

- a comparison with a refused function that costs an honest student what the cell defines below it

Does not protect against:

- a name that a failing statement would have bound: it is missing, and so is what needs it
- a comparison in ``while`` or ``try``, whose other statements decide how it goes on: the whole block is passed over
"""

from __future__ import annotations

import ast
import re
import sys
from copy import deepcopy
from typing import Any

from autograder.checking.refusal import ForbiddenFunctionError
from autograder.engine.student.cell_shell import CellShell

# Names in the cells' namespace while a cell runs.
_PASS_OVER, _PASS_OVER_IN_CONTEXT = "__pass_over__", "__pass_over_in_context__"
# These only measure or hide what a cell does, and they end it at the first error.
_MAGIC = re.compile(r"\s*%%(?:capture|prun|time)\b[^\n]*\n")
_NEVER_FAIL = (ast.Break, ast.Continue, ast.Global, ast.Pass)
_CAUSES = 15


def run_for_definitions(shell: CellShell, source: str, *, complete: bool) -> None:
    """Run a cell without output, skipping statements that fail.

    Args:
        shell: where it runs.
        source: its text.
        complete: whether the whole cell ran where nothing is refused: then any statement that fails is passed over. Otherwise only a
            statement that calls a refused function is, and the cell ends where it ended there.
    """
    kinds = (Exception,) if complete else (ForbiddenFunctionError,)
    # A context manager may expect an exception. A missing name is what a refused call has left behind.
    in_context = (ForbiddenFunctionError, NameError) if complete else kinds
    names = {_PASS_OVER: _ErrorFilter(kinds), _PASS_OVER_IN_CONTEXT: _ErrorFilter(in_context)}
    transformer = _GuardTransformer()
    shell.user_ns.update(names)
    shell.ast_transformers.append(transformer)
    try:
        shell.run(_MAGIC.sub("", source, count=1) if _MAGIC.match(source) else source, lambda output: None)
    finally:
        shell.ast_transformers[:] = [item for item in shell.ast_transformers if item is not transformer]
        for name in names:
            shell.user_ns.pop(name, None)


class _ErrorFilter:
    """An exception handler that re-raises the exception unless it, or one of its causes, has a given type."""

    def __init__(self, kinds: tuple[type[Exception], ...]) -> None:
        self._kinds = kinds

    def __call__(self) -> None:
        error = sys.exc_info()[1]
        for _ in range(_CAUSES):
            if isinstance(error, self._kinds):
                return
            error = error and (error.__cause__ or error.__context__)
        raise


class _GuardTransformer(ast.NodeTransformer):
    """Wraps each statement outside of functions in its own ``try``."""

    def __init__(self) -> None:
        self._guard = _PASS_OVER

    def visit_Module(self, node: ast.Module) -> ast.Module:
        node.body = self._guard_all(node.body)
        return node

    def _guard_all(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return [self._guard_statement(statement) for statement in body]

    def _guard_statement(self, statement: ast.stmt) -> ast.stmt:
        if isinstance(statement, _NEVER_FAIL) or _is_fixed(statement):
            return statement
        outer = self._guard
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            self._guard = _PASS_OVER_IN_CONTEXT
        if isinstance(statement, (ast.With, ast.AsyncWith, ast.If, ast.For, ast.AsyncFor, ast.ClassDef)):
            statement.body = self._guard_all(statement.body)
        self._guard = outer
        if isinstance(statement, (ast.If, ast.For, ast.AsyncFor)):
            statement.orelse = self._guard_all(statement.orelse)
        instead: list[ast.stmt] = []
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and statement.decorator_list:
            # The decorator may be what fails.
            plain: Any = deepcopy(statement)
            plain.decorator_list = []
            instead = [self._wrap_in_try(plain, [])]
        return self._wrap_in_try(statement, instead)

    def _wrap_in_try(self, statement: ast.stmt, instead: list[ast.stmt]) -> ast.stmt:
        guard, every = ast.Name(self._guard, ast.Load()), ast.Name("Exception", ast.Load())
        call = ast.Call(guard, [], [])
        handler = ast.ExceptHandler(every, None, [ast.Expr(call), *instead])
        guarded = ast.Try([statement], [handler], [], [])
        for new in (guard, every, call, handler.body[0], handler, guarded):  # the statement itself has its locations
            ast.copy_location(new, statement)
        return guarded


def _is_fixed(statement: ast.stmt) -> bool:
    """Return whether a statement must keep its position: a docstring, or an import from ``__future__``."""
    if isinstance(statement, ast.ImportFrom):
        return statement.module == "__future__"
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
