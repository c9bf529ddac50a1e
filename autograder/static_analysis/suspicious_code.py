"""Find unusual imports and names in a submission, as hints for the lecturer.

The search is static, so a hint proves nothing, costs no points and is not shown to the student. Forbidden functions are refused at run time
(:mod:`autograder.checking.refusal`). The lists are in :mod:`autograder.static_analysis.allow_list`. Each node is visited once, so the time
is linear in the size of the source.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from autograder.static_analysis.allow_list import BUILTINS, BUT_NOT, DUNDERS, MAGICS, MODULES, SHELL, TELLING
from autograder.static_analysis.cell_ast import UnreadableCellError, parse_cell

# So many names are told, and characters read, of one submission.
_MOST, _BUDGET = 30, 1_000_000


def find_suspicious(sources: Sequence[str]) -> tuple[str, ...]:
    """Return the names that a submission uses and no list allows, sorted.

    Args:
        sources: the student's code cells. Cells that Python cannot parse are ignored, because they cannot run either.
    """
    reader = _SuspicionFinder()
    budget = _BUDGET
    for source in dict.fromkeys(sources):
        budget -= len(source)
        if budget < 0:
            reader.found.add(f"more than {_BUDGET} characters of code, which is too much to be read")
            break
        try:
            if (tree := parse_cell(source)) is not None:
                reader.visit(tree)
        except UnreadableCellError as error:
            reader.found.add(str(error))
        except RecursionError:
            reader.found.add("a cell that is nested too deep to be read")
    names = sorted(reader.found)
    others = len(names) - _MOST
    return (*names[:_MOST], *([f"and {others} others"] if others > 0 else []))


class _SuspicionFinder(ast.NodeVisitor):
    def __init__(self) -> None:
        self.found: set[str] = set()

    def visit_Import(self, node: ast.Import) -> None:
        self._check_modules(alias.name for alias in node.names)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level:
            self.found.add("a relative import")
            return
        self._check_modules([node.module or ""])
        self._check_modules(f"{node.module}.{alias.name}" for alias in node.names if alias.name != "*")

    def _check_modules(self, paths: Iterable[str]) -> None:
        for path in paths:
            parts = path.split(".")
            above = {".".join(parts[:count]) for count in range(1, len(parts) + 1)}
            telling = [part for part in parts if _is_suspicious(part)]
            if not above & MODULES or above & BUT_NOT:
                self.found.add(_shorten_text(path if above & MODULES else parts[0]))
            elif telling:
                self.found.add(f"….{_shorten_text(telling[0])}")

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in BUILTINS:
            self.found.add(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if _is_suspicious(node.attr):
            self.found.add(f"….{_shorten_text(node.attr)}")
        elif isinstance(node.value, ast.Name) and f"{node.value.id}.{node.attr}" in BUT_NOT:
            self.found.add(f"{node.value.id}.{node.attr}")
        self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        of_ipython = isinstance(node.func, ast.Attribute) and ast.dump(node.func.value) == _GET_IPYTHON
        texts = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        if of_ipython and isinstance(node.func, ast.Attribute) and texts:  # a line with a sign, as IPython rewrites it
            first = (texts[0].split() or [""])[0]
            if node.func.attr in ("system", "getoutput"):
                self.found |= set() if first in SHELL else {f"!{_shorten_text(first)}"}
            elif first not in MAGICS:
                self.found.add(f"%{_shorten_text(first)}")
            return
        if isinstance(node.func, ast.Name) and node.func.id == "__import__" and texts:
            self._check_modules(texts[:1])  # an import with another word
            return
        self.generic_visit(node)


_GET_IPYTHON = ast.dump(ast.parse("get_ipython()").body[0].value)  # type: ignore[attr-defined]


def _is_suspicious(name: str) -> bool:
    dunder = name.startswith("__") and name.endswith("__")
    return name in TELLING or (dunder and name not in DUNDERS)


def _shorten_text(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}…"
