"""What a code cell defines and checks, read from its text and never run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

_MAGIC = re.compile(r"^\s*[%!?].*$", re.MULTILINE)
_DEFINED = re.compile(r"^(?:async\s+)?(?:def|class)\s+(\w+)", re.MULTILINE)
_ASSIGNED = re.compile(r"^(\w+)\s*(?::[^=\n]+)?=(?!=)", re.MULTILINE)
_CHECKED = re.compile(r"^check\(\s*(\w+)", re.MULTILINE)


@lru_cache(maxsize=4096)
def defined_names(source: str, *, imports: bool = True) -> frozenset[str]:
    """Return the names that a cell binds at its top level: functions, classes, assignments and, unless they do not count, imports.

    A cell that Python cannot parse is read line by line, so that a syntax error does not hide where an exercise was written.
    """
    tree = _parse(source)
    if tree is None:
        return frozenset(_DEFINED.findall(source)) | frozenset(_ASSIGNED.findall(source))
    return frozenset(_bound(tree.body, imports))


@lru_cache(maxsize=4096)
def checked_names(source: str) -> frozenset[str]:
    """Return the names that a cell hands to ``check(…)`` at its top level."""
    tree = _parse(source)
    if tree is None:
        return frozenset(_CHECKED.findall(source))
    calls = (node.value for node in tree.body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
    return frozenset(
        call.args[0].id
        for call in calls
        if isinstance(call.func, ast.Name)
        and call.func.id == "check"
        and call.args
        and isinstance(call.args[0], ast.Name)
    )


def ends_in_check(source: str) -> bool:
    """Return whether a cell's last statement is a call of ``check``: its result is then the cell's score."""
    tree = _parse(source)
    last = tree.body[-1] if tree is not None and tree.body else None
    if not isinstance(last, ast.Expr) or not isinstance(last.value, ast.Call):
        return False
    return isinstance(last.value.func, ast.Name) and last.value.func.id == "check"


def imports_check(source: str) -> bool:
    """Return whether a cell imports the course's ``check``, as the setup cell does."""
    return (
        "check" in defined_names(source)
        and re.search(r"^\s*from\s+tfcourse\s+import\b", source, re.MULTILINE) is not None
    )


def _parse(source: str) -> ast.Module | None:
    try:
        return ast.parse(_MAGIC.sub("pass", source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _bound(statements: list[ast.stmt], imports: bool) -> Iterator[str]:
    for node in statements:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.Import, ast.ImportFrom)) and imports:
            yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))
        elif isinstance(node, (ast.If, ast.For, ast.While, ast.With, ast.Try)):
            for field in ("body", "orelse", "finalbody"):
                yield from _bound(getattr(node, field, []), imports)
