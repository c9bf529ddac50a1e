"""Which functions of PyTorch the text of an exercise names: read, never run.

What counts is what the exercise's own definition reaches: its code and that of the student's functions that it uses. A scratch cell that
compares with PyTorch's own function is nobody's business.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from autograder.engine.cells import Cell, Statement, parsed, walk

_TORCH = "torch"

# What looks something up by a name that is a text, and what gives a namespace as a dictionary.
_LOOKUPS = {
    "getattr",
    "getattr_static",
    "__getattr__",
    "__getattribute__",
    "import_module",
    "__import__",
    "attrgetter",
    "methodcaller",
}
_NAMESPACES = {"vars", "globals", "locals", "__dict__"}


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
        for words in map(_words, defined.get(name, ())):
            found |= words.literal
            found |= {last for root, last in words.attributes if root in torch_names}
            found |= {torch_names[word] for word in words.names if word in torch_names}
            waiting += words.names
    return frozenset(found)


@lru_cache(maxsize=2)
def _read(sources: tuple[str, ...]) -> tuple[Mapping[str, list[Statement]], Mapping[str, str]]:
    """Return what the cells define by name, and the names under which they know something of PyTorch's."""
    cells = [cell for source in sources if (cell := parsed(source)) is not None]
    defined = _defined(cells)
    own = {name for name, found in defined.items() if not all(isinstance(one.top, ast.Assign) for one in found)}
    # A function of the student's may have the name of one of PyTorch's.
    return defined, {name: last for name, last in _imported(cells).items() if name not in own}


def _imported(cells: Sequence[Cell]) -> dict[str, str]:
    """Return the names under which something of PyTorch is known anywhere, with the last part of what they stand for."""
    known: dict[str, str] = {}
    nodes = [node for cell in cells for node in cell.nodes]
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == _TORCH:
                    known[alias.asname or _TORCH] = alias.name.rpartition(".")[2] if alias.asname else _TORCH
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == _TORCH:
            known |= {alias.asname or alias.name: alias.name for alias in node.names if alias.name != "*"}
            if any(alias.name == "*" for alias in node.names):
                known |= {name: name for name in _public_names(node.module or "")}
    # Another name for something of PyTorch, as in `attend = F.scaled_dot_product_attention`, is known by what it stands for.
    for assignment in (node for node in nodes if isinstance(node, ast.Assign)):
        if last := _last(assignment.value, known):
            known |= {target.id: last for target in assignment.targets if isinstance(target, ast.Name)}
    return known


def _public_names(module: str) -> Sequence[str]:
    """Return what a star import of a module of PyTorch's brings, as far as the module has been imported here."""
    found = sys.modules.get(module)
    return [] if found is None else getattr(found, "__all__", [name for name in vars(found) if name[0] != "_"])


def _defined(cells: Sequence[Cell]) -> Mapping[str, list[Statement]]:
    """Return what the cells define at their top level, by name; of several definitions every one counts.

    What a definition stands under, an `if` or a `with`, belongs to it.
    """
    found: dict[str, list[Statement]] = {}
    for statement in (statement for cell in cells for statement in cell.statements):
        defines = isinstance(statement.top, (*_DEFINITIONS, *_ASSIGNMENTS))
        names = {name for node in ([statement.top] if defines else statement.nodes) for name in _bound(node)}
        for name in names:
            found.setdefault(name, []).append(statement)
    return found


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_ASSIGNMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr)


def _bound(node: ast.AST) -> set[str]:
    """Return the names that a definition or an assignment gives something to: of `exercise.helper = …` the exercise's, too."""
    if isinstance(node, _DEFINITIONS):
        return {node.name}
    if not isinstance(node, _ASSIGNMENTS):
        return set()
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return {item.id for target in targets for item in walk(target) if isinstance(item, ast.Name)}


@dataclass(frozen=True, eq=False)
class _Words:
    """What a piece of code names.

    Attributes:
        names: plain names.
        attributes: of each dotted name, what it begins with and a part of it: ``F.softmax`` is ``("F", "softmax")``.
        literal: texts that are looked up, as in ``getattr(F, "softmax")``, or can be nothing but a name of PyTorch's
            (see :func:`_is_ordinary`), and what is imported from PyTorch by name.
    """

    names: frozenset[str]
    attributes: frozenset[tuple[str, str]]
    literal: frozenset[str]


@lru_cache(maxsize=4096)
def _words(statement: Statement) -> _Words:
    names, attributes, literal = set(), set(), set()
    ordinary = {id(text) for item in statement.nodes for text in _beside_the_point(item)}
    for item in statement.nodes:
        if isinstance(item, ast.Attribute):
            if root := _root(item):
                attributes.add((root, item.attr))
        elif isinstance(item, ast.Name):
            names.add(item.id)
        elif isinstance(item, ast.Constant) and isinstance(item.value, str):
            if item.value.isidentifier() and id(item) not in ordinary and not _is_ordinary(item.value):
                literal.add(item.value)
        elif isinstance(item, (ast.Subscript, ast.Call)):
            literal |= {name for text in _looked_up(item) for name in text.split(".") if name.isidentifier()}
        elif isinstance(item, ast.ImportFrom) and (item.module or "").partition(".")[0] == _TORCH:
            literal |= {alias.name for alias in item.names}
    return _Words(frozenset(names), frozenset(attributes), frozenset(literal))


def _looked_up(node: ast.AST) -> list[str]:
    """Return the texts in a piece of code that are names of something: ``getattr(F, "gelu")``, ``vars(F)["gelu"]``."""
    places: Sequence[ast.AST] = []
    if isinstance(node, ast.Subscript) and _is_namespace(node.value):
        places = [node.slice]
    elif isinstance(node, ast.Call):
        called = _last_name(node.func)
        of_a_namespace = isinstance(node.func, ast.Attribute) and _is_namespace(node.func.value)
        if called in _LOOKUPS or of_a_namespace:
            # What stands first in getattr(…) is where it is looked up.
            places = node.args[1:] if called in ("getattr", "getattr_static") else node.args
    found = (item for place in places for item in walk(place))
    return [item.value for item in found if isinstance(item, ast.Constant) and isinstance(item.value, str)]


def _is_namespace(node: ast.AST) -> bool:
    return _last_name(node.func if isinstance(node, ast.Call) else node) in _NAMESPACES


def _last_name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _beside_the_point(node: ast.AST) -> Sequence[ast.AST | None]:
    """Return what in a piece of code is a text for itself: a docstring, the keys of a dictionary, the sides of a comparison."""
    if isinstance(node, ast.Expr):
        return [node.value]
    if isinstance(node, ast.Dict):
        return node.keys
    return [node.left, *node.comparators] if isinstance(node, ast.Compare) else []


def _is_ordinary(word: str) -> bool:
    """Whether a name of PyTorch's is a word that may stand for anything in a text: ``grad``, ``lstm``, ``LSTM``, ``Linear``."""
    return "_" not in word and (word.islower() or word.isupper() or word.istitle())


def _root(node: ast.AST) -> str:
    """Return the name that a dotted name begins with, or an empty text."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _last(node: ast.AST, torch_names: Mapping[str, str]) -> str:
    """Return the last part of a dotted name that begins with something of PyTorch, or an empty text."""
    if isinstance(node, ast.Attribute) and _root(node) in torch_names:
        return node.attr
    return torch_names.get(node.id, "") if isinstance(node, ast.Name) else ""
