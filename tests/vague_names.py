"""Count vague names: how many of the names that ``autograder`` binds say nothing about what they hold.

Run ``python -m tests.vague_names`` for the count of each package and the share of all, or with a package to list the places.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
VAGUE = frozenset(
    (
        *("found", "known", "place", "wanted", "seen", "given", "own", "made", "told"),
        *("there", "mine", "theirs", "said", "heard", "about", "left", "gone", "here"),
        *("whose", "tried", "beside", "asked", "kept", "came", "what", "word", "words"),
        *("answered", "lost", "settled", "whole", "thing", "things"),
    )
)


def bound_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield each name that a module binds, with its line: variables, arguments, functions and classes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler) and node.name:
            yield node.name, node.lineno


def is_vague(name: str) -> bool:
    """Return whether a name, without leading underscores, is one of the vague words."""
    return name.lstrip("_") in VAGUE


def package_of(path: Path) -> str:
    """Return the package below ``autograder`` that holds a module; a module of the top level is its own package."""
    return path.relative_to(ROOT / "autograder").parts[0].removesuffix(".py")


def count_names(root: Path = ROOT / "autograder") -> tuple[Counter[str], Counter[str]]:
    """Count the vague names and all bound names of each package."""
    vague: Counter[str] = Counter()
    bound: Counter[str] = Counter()
    for path in sorted(root.rglob("*.py")):
        package = package_of(path)
        for name, _ in bound_names(ast.parse(path.read_text(encoding="utf-8"))):
            bound[package] += 1
            vague[package] += is_vague(name)
    return +vague, bound


def main(arguments: list[str]) -> None:
    """Print the count of each package, or the places in one package."""
    if arguments:
        for path in sorted((ROOT / "autograder" / arguments[0]).rglob("*.py")):
            for name, line in bound_names(ast.parse(path.read_text(encoding="utf-8"))):
                if is_vague(name):
                    print(f"{path.relative_to(ROOT)}:{line}: {name}")
        return
    vague, bound = count_names()
    for package, count in vague.most_common():
        print(f"{package:20} {count:5} of {bound[package]}")
    print(f"{vague.total()} of {bound.total()}: {vague.total() / bound.total():.2%}")


if __name__ == "__main__":
    main(sys.argv[1:])
