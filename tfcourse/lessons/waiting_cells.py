"""Cells of a lesson that wait for an exercise: they say which one, show the output that the course has stored, and the next one runs."""

from __future__ import annotations

import ast
import hashlib
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# What an empty exercise of the students' package says.
_EMPTY = re.compile(
    r"^(\w+) is an exercise of chapter (\w+): write it in the notebook$|^(\w+) belongs to the solution of an exercise$"
)
_HANDLER = "_tfcourse_waits"
_WRAPPER = f"""\
try:
    pass
except (NotImplementedError, NameError) as {_HANDLER}_error:
    if not {_HANDLER}({_HANDLER}_error):
        raise
"""


def let_cells_wait(lesson: Path) -> None:
    """From now on a cell that meets an empty exercise does not end in an error. Outside of IPython nothing happens.

    Args:
        lesson: the lesson's notebook, whose metadata hold the stored outputs; without it cells only say what they wait for.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        return
    for transformer in [item for item in shell.ast_transformers if isinstance(item, WaitingCells)]:
        transformer.end()
    WaitingCells(shell, stored_outputs(lesson)).start()


def source_key(source: str) -> str:
    """Return the key under which a cell's output is stored: a hash of its code."""
    return hashlib.sha256(source.strip().encode()).hexdigest()[:16]


def stored_outputs(lesson: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the outputs that a lesson's notebook brings along, by :func:`source_key`; an empty dictionary if it has no stored outputs."""
    try:
        stored: dict[str, list[dict[str, Any]]] = json.loads(lesson.read_text(encoding="utf-8"))["metadata"][
            "tfcourse"
        ]["outputs"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return stored


class WaitingCells(ast.NodeTransformer):
    """An IPython transformer that wraps each cell, so that an empty exercise ends the cell and not the run."""

    def __init__(self, shell: Any, outputs: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        self._shell = shell
        self._outputs = outputs
        # What is missing because a cell waited: name, and the exercise that it waits for.
        self._owed: dict[str, str] = {}
        self._cell = ""
        self._assigned: set[str] = set()

    def start(self) -> None:
        """Begin to wrap cells."""
        self._shell.user_ns[_HANDLER] = self._waits
        self._shell.events.register("pre_run_cell", self._begin)
        self._shell.ast_transformers.append(self)

    def end(self) -> None:
        """Wrap no more cells."""
        self._shell.events.unregister("pre_run_cell", self._begin)
        self._shell.ast_transformers.remove(self)

    def _begin(self, info: Any) -> None:
        self._cell = info.raw_cell

    def visit(self, node: ast.AST) -> ast.AST:
        """Wrap a cell: ``try`` it, and where it meets an empty exercise say so."""
        if not isinstance(node, ast.Module) or not node.body or _begins_with_use(node):
            return node
        body = [_shown(statement) if statement is node.body[-1] else statement for statement in node.body]
        wrapped = ast.parse(_WRAPPER).body[0]
        assert isinstance(wrapped, ast.Try)
        wrapped.body = body
        self._assigned = _assigned_names(node)
        return ast.fix_missing_locations(ast.Module([wrapped], node.type_ignores))

    def _waits(self, error: Exception) -> bool:
        """Say what a cell waits for, if it is an exercise; else the error is the cell's own."""
        exercise = self._exercise_of(error)
        if exercise is None:
            return False
        # What the cell was to make is missing from now on, or half made, and what it had from an earlier run would mislead.
        self._owed |= dict.fromkeys(self._assigned, exercise)
        for name in self._assigned:
            self._shell.user_ns.pop(name, None)
        _close_figures()
        stored = self._outputs.get(source_key(self._cell))
        then = " Below is what the course's own code shows." if stored else ""
        print(f"This cell waits for your {exercise}.{then}")
        for output in stored or ():
            self._show(output)
        return True

    def _exercise_of(self, error: Exception) -> str | None:
        if isinstance(error, NameError):
            return self._owed.get(error.name or "")
        match = _EMPTY.match(str(error))
        if match is None:
            return None
        return match[1] or _exercise_above(error) or match[3]

    def _show(self, output: Mapping[str, Any]) -> None:
        if output["output_type"] == "stream":
            print("".join(output["text"]), end="")
        elif "data" in output:
            data = {kind: text if isinstance(text, str) else "".join(text) for kind, text in output["data"].items()}
            self._shell.display_pub.publish(data=data, metadata=output.get("metadata", {}))


def _close_figures() -> None:
    """Close what the cell had begun to draw; a notebook would show it half done."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")


def _exercise_above(error: BaseException) -> str | None:
    """Return the public function of ``tfcourse`` that called the helper which raised."""
    trace, found = error.__traceback__, None
    while trace is not None:
        code = trace.tb_frame.f_code
        if trace.tb_frame.f_globals.get("__name__", "").startswith("tfcourse.") and not code.co_name.startswith("_"):
            found = code.co_name
        trace = trace.tb_next
    return found


def _begins_with_use(node: ast.Module) -> bool:
    """Whether this is the cell that loads one's own code."""
    return any("tfcourse.use(" in ast.unparse(statement) for statement in node.body)


def _shown(statement: ast.stmt) -> ast.stmt:
    """Return a last statement so that its value is displayed also inside of a ``try``."""
    if not isinstance(statement, ast.Expr):
        return statement
    shown = ast.parse("__import__('sys').displayhook(0)").body[0]
    assert isinstance(shown, ast.Expr)
    assert isinstance(shown.value, ast.Call)
    shown.value.args = [statement.value]
    return ast.copy_location(shown, statement)


class _Assigned(ast.NodeVisitor):
    """Collects the names that a cell assigns or changes in part at its top level, without imports."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """A function's own names are its own."""
        self.names.add(node.name)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """A class's own names are its own."""
        self.names.add(node.name)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """A lambda's own names are its own."""

    def visit_Name(self, node: ast.Name) -> None:
        """A name that is stored into."""
        if isinstance(node.ctx, ast.Store):
            self.names.add(node.id)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """``table["a"] = …`` changes ``table``."""
        self._changed(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """``model.x = …`` changes ``model``."""
        self._changed(node)

    def _changed(self, node: ast.Subscript | ast.Attribute) -> None:
        inner: ast.expr = node
        while isinstance(inner, (ast.Subscript, ast.Attribute)):
            inner = inner.value
        if isinstance(node.ctx, ast.Store) and isinstance(inner, ast.Name):
            self.names.add(inner.id)
        self.generic_visit(node)


def _assigned_names(node: ast.Module) -> set[str]:
    visitor = _Assigned()
    visitor.visit(node)
    return visitor.names
