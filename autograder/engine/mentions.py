"""Which functions of PyTorch the text of an exercise names: read, never run.

What counts is what the exercise's own definition reaches: its code and that of the student's functions that it uses. A scratch cell that
compares with PyTorch's own function is nobody's business.
"""

from __future__ import annotations

import ast
import sys
from collections import ChainMap
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from autograder.engine.cells import Statement, last_name, parsed, walk
from autograder.scopes import bound_names, global_names

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


class Reading:
    """What a student's cells define, read in the order in which they run: what comes after a check was no part of what it looked at."""

    def __init__(self) -> None:
        self._defined: dict[str, list[Statement]] = {}
        # Names that stand for something of PyTorch's, or did, with the last part of what they stand for.
        self._torch_names: dict[str, str] = {}
        # Names that stand for a function or a class of the student's, whatever they stood for before.
        self._own: set[str] = set()

    def add(self, source: str) -> None:
        """Read the next cell; one that Python cannot parse defines nothing."""
        cell = parsed(source)
        for statement in cell.statements if cell is not None else ():
            self._import(statement)
            given = _given(statement)
            for name in given | (self._changed(statement) - given):
                self._defined.setdefault(name, []).append(statement)

    def mentions(self, exercise: str) -> frozenset[str]:
        """Return the names of PyTorch's functions and classes that an exercise uses, as far as its text says so.

        Args:
            exercise: the name of a function or class.
        """
        found: set[str] = set()
        waiting, seen = [exercise], set[str]()
        known = self._defined.keys() | self._torch_names.keys()
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            if name in self._torch_names and name not in self._own:
                found.add(self._torch_names[name])
            for statement in self._defined.get(name, ()):
                words = _words(statement)
                # Its arguments and variables are not the notebook's, whatever they are called. To find out takes long, and matters seldom.
                of_the_notebook = words.names & known
                if not words.bound.isdisjoint(of_the_notebook):
                    of_the_notebook &= _free_names(statement)
                roots = (of_the_notebook | words.given) & self._torch_names.keys()
                found |= words.literal
                found |= {last for root, last in words.attributes if root in roots}
                waiting += of_the_notebook
        return frozenset(found)

    def _import(self, statement: Statement) -> None:
        """Take note of the names that stand for something of PyTorch's, and of those that do so no more."""
        names: dict[str, str] = {}
        known = ChainMap(names, self._torch_names)
        for node in statement.nodes:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names.update(_from_torch(node))
            elif isinstance(node, ast.Assign) and (last := _last(node.value, known)):
                # Another name for something of PyTorch, as in `attend = F.scaled_dot_product_attention`, is known by what it stands for.
                names.update({target.id: last for target in node.targets if isinstance(target, ast.Name)})
        self._torch_names |= names
        if _is_definition(statement):
            self._own.add(cast("ast.ClassDef", statement.top).name)  # what it imports is its own business
        else:
            self._own -= names.keys()

    def _changed(self, statement: Statement) -> Set[str]:
        """Return the names of what a statement changes, of what has been defined; to a module nothing is done by `plt.plot(…)`."""
        changed, asked = _done_to(statement)
        # A scratch cell that calls a method of a class does nothing to the class.
        asked = {name for name in asked if not all(map(_is_definition, self._defined.get(name, ())))}
        return (changed | asked) & self._defined.keys()


def _from_torch(node: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """Return the names that an import gives to something of PyTorch's, with the last part of what they stand for."""
    if isinstance(node, ast.Import):
        ours = [alias for alias in node.names if alias.name.partition(".")[0] == _TORCH]
        return {alias.asname or _TORCH: alias.name.rpartition(".")[2] if alias.asname else _TORCH for alias in ours}
    if (node.module or "").partition(".")[0] != _TORCH:
        return {}
    names = {alias.asname or alias.name: alias.name for alias in node.names}
    return names | {name: name for name in _public_names(node.module or "")} if "*" in names else names


def _public_names(module: str) -> Sequence[str]:
    """Return what a star import of a module of PyTorch's brings, as far as the module has been imported here."""
    found = sys.modules.get(module)
    return [] if found is None else getattr(found, "__all__", [name for name in vars(found) if name[0] != "_"])


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _is_definition(statement: Statement) -> bool:
    return isinstance(statement.top, _DEFINITIONS)


@lru_cache(maxsize=4096)  # cells that the course provides come again with every student
def _given(statement: Statement) -> Set[str]:
    """Return the names that a statement gives something to, among them those that a function in it declares global."""
    if isinstance(statement.top, (ast.Import, ast.ImportFrom)):
        return frozenset()
    everywhere = {name for node in statement.nodes if isinstance(node, ast.Global) for name in node.names}
    try:
        return bound_names([cast("ast.stmt", statement.top)]) | everywhere
    except RecursionError:  # an expression of a thousand terms
        return _words(statement).bound | everywhere


@lru_cache(maxsize=4096)
def _done_to(statement: Statement) -> tuple[Set[str], Set[str]]:
    """Return the names of what a statement changes, as in `exercise.helper = …`, and of what it has do something: `ways.append(…)`."""
    changed: list[ast.AST] = []
    asked: list[ast.AST] = []
    for node in () if isinstance(statement.top, _DEFINITIONS) else statement.nodes:
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            changed.append(node)
        elif isinstance(node, ast.Call) and last_name(node.func) in ("setattr", "__setattr__"):
            changed += node.args[:1]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            asked.append(node.func)
    return {*map(_root, changed)}, {*map(_root, asked)}


@dataclass(frozen=True, eq=False)
class _Words:
    """What a piece of code names.

    Attributes:
        names: names that are read somewhere in it.
        bound: names that are arguments or variables somewhere in it.
        given: names that an import or the assignment of a dotted name gives.
        attributes: of each dotted name, what it begins with and a part of it: ``F.softmax`` is ``("F", "softmax")``.
        literal: texts that are looked up, as in ``getattr(F, "softmax")``, or can be nothing but a name of PyTorch's
            (see :func:`_is_ordinary`), and what is imported from PyTorch by name.
    """

    names: frozenset[str]
    bound: frozenset[str]
    given: frozenset[str]
    attributes: frozenset[tuple[str, str]]
    literal: frozenset[str]


@lru_cache(maxsize=4096)
def _words(statement: Statement) -> _Words:
    names, bound, given, literal = set[str](), set[str](), set[str](), set[str]()
    attributes = set[tuple[str, str]]()
    ordinary = {id(text) for item in statement.nodes for text in _beside_the_point(item)}
    for item in statement.nodes:
        if isinstance(item, ast.Name):
            (names if isinstance(item.ctx, ast.Load) else bound).add(item.id)
        elif isinstance(item, ast.Attribute):
            if root := _root(item):
                attributes.add((root, item.attr))
        elif isinstance(item, ast.Constant):
            if isinstance(item.value, str) and item.value.isidentifier() and id(item) not in ordinary:
                literal |= set() if _is_ordinary(item.value) else {item.value}
        elif isinstance(item, (ast.Subscript, ast.Call)):
            literal |= {name for text in _looked_up(item) for name in text.split(".") if name.isidentifier()}
        elif isinstance(item, ast.arg):
            bound.add(item.arg)
        elif isinstance(item, (ast.Assign, ast.Import, ast.ImportFrom)):
            given |= _given_by_dots(item)
            if isinstance(item, ast.ImportFrom) and (item.module or "").partition(".")[0] == _TORCH:
                literal |= {alias.name for alias in item.names}
        elif name := getattr(item, "name", None) or getattr(item, "rest", None):
            bound.add(name)  # a definition, an exception, a pattern
    return _Words(
        frozenset(names), frozenset(bound | given), frozenset(given), frozenset(attributes), frozenset(literal)
    )


@lru_cache(maxsize=4096)
def _free_names(statement: Statement) -> Set[str]:
    try:
        return {name.id for name in global_names(statement.top)}
    except RecursionError:
        return _words(statement).names


def _given_by_dots(node: ast.AST) -> Set[str]:
    """Return the names that an import gives, or an assignment of a dotted name: ``G = torch.nn.functional``."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    if isinstance(node, ast.Assign) and _root(node.value):
        return {target.id for target in node.targets if isinstance(target, ast.Name)}
    return frozenset()


def _looked_up(node: ast.AST) -> list[str]:
    """Return the texts in a piece of code that are names of something: ``getattr(F, "gelu")``, ``vars(F)["gelu"]``."""
    places: Sequence[ast.AST] = []
    if isinstance(node, ast.Subscript) and _is_namespace(node.value):
        places = [node.slice]
    elif isinstance(node, ast.Call):
        called = last_name(node.func)
        of_a_namespace = isinstance(node.func, ast.Attribute) and _is_namespace(node.func.value)
        if called in _LOOKUPS or of_a_namespace:
            # What stands first in getattr(…) is where it is looked up.
            places = node.args[1:] if called in ("getattr", "getattr_static") else node.args
    found = (item for place in places for item in walk(place))
    return [item.value for item in found if isinstance(item, ast.Constant) and isinstance(item.value, str)]


def _is_namespace(node: ast.AST) -> bool:
    return last_name(node.func if isinstance(node, ast.Call) else node) in _NAMESPACES


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
    """Return the name that a dotted name begins with, or one with brackets, or an empty text."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _last(node: ast.AST, torch_names: Mapping[str, str]) -> str:
    """Return the last part of a dotted name that begins with something of PyTorch, or an empty text."""
    if isinstance(node, ast.Attribute) and _root(node) in torch_names:
        return node.attr
    return torch_names.get(node.id, "") if isinstance(node, ast.Name) else ""
