"""Replace nodes in a syntax tree."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, TypeAlias

# The operator's name, the replacement (a list of statements for a statement), and its text if that is not its code.
Change: TypeAlias = tuple[str, Any, str]


@dataclass(frozen=True)
class NodePosition:
    """The position of a node in a syntax tree."""

    node: ast.AST
    owner: ast.AST
    field: str
    index: int | None

    def replace_with(self, new: Any) -> None:
        """Replace this node by another node, or by a list of statements."""
        if self.index is None:
            setattr(self.owner, self.field, new)
        else:
            block = getattr(self.owner, self.field)
            changed = [*block[: self.index], *(new if isinstance(new, list) else [new]), *block[self.index + 1 :]]
            if not changed and self.field == "body":
                changed = [ast.Pass()]
            setattr(self.owner, self.field, changed)

    def render_changed(self, tree: ast.Module, new: Any) -> str:
        """Return the tree's code with this node replaced; the tree itself stays unchanged."""
        before = getattr(self.owner, self.field)
        self.replace_with(new)
        try:
            return ast.unparse(ast.fix_missing_locations(tree))
        finally:
            setattr(self.owner, self.field, before)


def called_name(function: ast.expr) -> str:
    """Return the last part of a called function's name; empty if it has no name."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
