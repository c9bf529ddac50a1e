"""Say which lines of a definition are texts, and which variables a line assigns."""

from __future__ import annotations

import ast
import re


def docstring_lines(tree: ast.AST) -> tuple[int, ...]:
    """Return the lines of texts that stand alone."""
    texts = (node for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    return tuple(sorted({line for node in texts for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}))


def assigned_names(tree: ast.AST) -> dict[int, tuple[int, frozenset[str]]]:
    """Return the last line of each assignment, with the variables that it assigns, by each of its lines."""
    found: dict[int, tuple[int, frozenset[str]]] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            last = node.end_lineno or node.lineno
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            inside = [item for target in targets for item in ast.walk(target) if isinstance(item, ast.Name)]
            names = frozenset(item.id for item in inside if isinstance(item.ctx, ast.Store))
            found.update(dict.fromkeys(range(node.lineno, last + 1), (last, names)))
    return found


def own_names(source: str) -> set[str]:
    """Return the attributes of an instance that its class names."""
    return set(re.findall(r"\bself\.(\w+)", source))
