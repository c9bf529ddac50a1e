"""Replace a node in a syntax tree."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, TypeAlias

# The name of an operator, what comes in a node's place (statements for a statement), and how it is shown if not as it runs.
Change: TypeAlias = tuple[str, Any, str]


@dataclass(frozen=True)
class Place:
    """The position of a node in a tree."""

    node: ast.AST
    owner: ast.AST
    field: str
    index: int | None

    def put(self, new: Any) -> None:
        """Put a node in this one's place, or any number of statements."""
        if self.index is None:
            setattr(self.owner, self.field, new)
        else:
            block = getattr(self.owner, self.field)
            changed = [*block[: self.index], *(new if isinstance(new, list) else [new]), *block[self.index + 1 :]]
            if not changed and self.field == "body":
                changed = [ast.Pass()]
            setattr(self.owner, self.field, changed)

    def changed(self, tree: ast.Module, new: Any) -> str:
        """Return the tree's code with this node replaced; the tree is unchanged."""
        before = getattr(self.owner, self.field)
        self.put(new)
        try:
            return ast.unparse(ast.fix_missing_locations(tree))
        finally:
            setattr(self.owner, self.field, before)


def called_name(function: ast.expr) -> str:
    """Return the last part of the name of a called function, or an empty text."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
