"""Which functions of PyTorch the text of an exercise names: read, never run.

What counts is what the exercise's own definition reaches: its code and that of the student's functions that it uses. A scratch cell that
compares with PyTorch's own function is nobody's business.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

_TORCH = "torch"


def mentions(sources: Sequence[str], exercise: str) -> frozenset[str]:
    """Return the names of PyTorch's functions and classes that an exercise uses, as far as its text says so.

    Args:
        sources: the code cells, in order; one that Python cannot parse defines nothing.
        exercise: the name of a function or class.
    """
    defined, torch_names = _read(tuple(sources))
    found: set[str] = set()
    waiting, seen = [exercise], set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in torch_names:
            found.add(torch_names[name])
        for node in defined.get(name, ()):
            found |= set(_used(node, torch_names))
            waiting += [item.id for item in ast.walk(node) if isinstance(item, ast.Name)]
    return frozenset(found)


@lru_cache(maxsize=2)
def _read(sources: tuple[str, ...]) -> tuple[Mapping[str, list[ast.AST]], Mapping[str, str]]:
    """Return what the cells define by name, and the names under which they know something of PyTorch's."""
    trees = [tree for source in sources if (tree := _parsed(source)) is not None]
    defined = _defined(trees)
    own = {name for name, nodes in defined.items() if not all(isinstance(node, ast.Assign) for node in nodes)}
    # A function of the student's may have the name of one of PyTorch's.
    return defined, {name: last for name, last in _imported(trees).items() if name not in own}


def _parsed(source: str) -> ast.Module | None:
    # A line of IPython's own is no Python; what stands around it is.
    lines = ["pass" if line.lstrip().startswith(("%", "!", "?")) else line for line in source.splitlines()]
    try:
        return ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _imported(trees: Sequence[ast.Module]) -> dict[str, str]:
    """Return the names under which something of PyTorch is known anywhere, with the last part of what they stand for."""
    known: dict[str, str] = {}
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == _TORCH:
                    known[alias.asname or _TORCH] = alias.name.rpartition(".")[2] if alias.asname else _TORCH
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == _TORCH:
            known |= {alias.asname or alias.name: alias.name for alias in node.names if alias.name != "*"}
            if any(alias.name == "*" for alias in node.names):
                known |= {name: name for name in _public_names(node.module or "")}
    # Another name for something of PyTorch, as in `attend = F.scaled_dot_product_attention`, is known by what it stands for.
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.Assign) and (last := _last(node.value, known)):
            known |= {target.id: last for target in node.targets if isinstance(target, ast.Name)}
    return known


def _public_names(module: str) -> Sequence[str]:
    """Return what a star import of a module of PyTorch's brings, as far as the module has been imported here."""
    found = sys.modules.get(module)
    return [] if found is None else getattr(found, "__all__", [name for name in vars(found) if name[0] != "_"])


def _defined(trees: Sequence[ast.Module]) -> Mapping[str, list[ast.AST]]:
    """Return what the cells define at their top level, by name; of several definitions every one counts."""
    found: dict[str, list[ast.AST]] = {}
    for node in (node for tree in trees for node in tree.body):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.setdefault(node.name, []).append(node)
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in (item for one in targets for item in ast.walk(one)):
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node)
                elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                    # `exercise.helper = …` hangs something on it.
                    found.setdefault(target.value.id, []).append(node)
    return found


def _used(node: ast.AST, torch_names: Mapping[str, str]) -> Iterator[str]:
    for item in ast.walk(node):
        if isinstance(item, ast.Attribute) and _is_torch(item.value, torch_names):
            yield item.attr
        elif isinstance(item, ast.Name) and item.id in torch_names:
            yield torch_names[item.id]
        elif isinstance(item, ast.Constant) and isinstance(item.value, str) and item.value.isidentifier():
            yield item.value  # as in getattr(F, "…")
        elif isinstance(item, ast.ImportFrom) and (item.module or "").partition(".")[0] == _TORCH:
            yield from (alias.name for alias in item.names)


def _is_torch(node: ast.AST, torch_names: Mapping[str, str]) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in torch_names


def _last(node: ast.AST, torch_names: Mapping[str, str]) -> str:
    """Return the last part of a dotted name that begins with something of PyTorch, or an empty text."""
    if isinstance(node, ast.Attribute) and _is_torch(node.value, torch_names):
        return node.attr
    return torch_names.get(node.id, "") if isinstance(node, ast.Name) else ""
