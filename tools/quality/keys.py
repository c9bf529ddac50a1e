"""Hash everything that decides an exercise's measures: the code of reference, check, engine and operators, without texts.

Comments, docstrings, the layout, sentences (texts with a blank in them: messages, titles), and in checks and engine the names of local
variables and private names may change, and nothing runs again. Names in a reference count: what is recorded about it quotes its lines.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from autograder.checking.exercise import Exercise
from autograder.checks import declaring_module
from autograder.mistakes.source_edits import EditError, Sources
from autograder.quizzes.mutation.guards import promises_errors
from autograder.static_analysis.definitions import module_source
from autograder.static_analysis.import_graph import source_files
from tools.quality.mutants import Key, own_definitions, reached_code

_ROOT = Path(__file__).parents[2]
_PACKAGE = _ROOT / "autograder"
# The wording of a verdict, and which mistake it names, decide no points.
_WORDING = {
    "diagnosis.py",
    "example.py",
    "hidden_messages.py",
    "value_text.py",
    "verdict.py",
    "similar_names.py",
    "stamp.py",
}
_ENGINE = (
    *(_PACKAGE / "quizzes" / "mutation" / f"{name}.py" for name in ("operators", "expressions", "statements")),
    *(_PACKAGE / "quizzes" / "mutation" / f"{name}.py" for name in ("places", "limits", "guards")),
    *(_ROOT / "tools" / "quality" / f"{name}.py" for name in ("mutants", "measure", "effects", "branches")),
)
_COURSE = "tfcourse"
_OF_CHECKS = {("autograder", "checks"), ("autograder", "checking")}


def key_of(exercise: Exercise) -> str:
    """Return the key of an exercise's measures: while it stays the same, so do they."""
    parts = (
        reference_digest(exercise),
        files_digest(files_of_the_check(exercise)),
        files_digest(_ENGINE),
        *(".".join(node.key) for node in own_definitions(exercise)),
        f"errors: {promises_errors(exercise.reference)}",
    )
    return _joined(parts)


def reference_digest(exercise: Exercise) -> str:
    """Return a digest of the definitions of the course that the reference reaches and that the check's questions name."""
    return _joined(f"{'.'.join(name)} {code}" for name, code in sorted(_definitions(exercise).items()))


def files_digest(files: Iterable[Path]) -> str:
    """Return a digest of the code of Python files, whatever their folders, layout, sentences and private names."""
    return _joined(f"{file.name} {_file_digest(file)}" for file in sorted(files))


def files_of_the_check(exercise: Exercise) -> list[Path]:
    """Return the modules that declare an exercise's check and ask its questions, except the modules that word the verdict."""
    files = source_files(declaring_module(exercise))
    inside = [file for file in files if file.relative_to(_PACKAGE.parent).parts[:2] in _OF_CHECKS]
    return [file for file in inside if file.name not in _WORDING]


def _joined(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def _definitions(exercise: Exercise) -> dict[Key, str]:
    """Return the code of the course's definitions that the reference reaches, and that the makers of cases name."""
    digests = {key: _text_digest(node.code) for key, node in reached_code(exercise).items()}
    for file in source_files(declaring_module(exercise)):
        if file.is_relative_to(_PACKAGE / "checks"):
            for key in _named(file):
                digests |= _closure(key)
    modules = {module for module, _ in digests}
    return digests | {(module, ""): _constants(module) for module in modules}


@cache
def _named(file: Path) -> frozenset[Key]:
    """Return the definitions of the course that a module names."""
    text = module_source(file)
    modules: dict[str, str] = {}
    keys: set[Key] = set()
    for name, (origin, attribute) in text.imports.items():
        if origin.partition(".")[0] == _COURSE:
            full_name = f"{origin}.{attribute}" if attribute else origin
            if _is_module(full_name):
                modules[name] = full_name
            else:
                keys.add((origin, str(attribute)))
    for node in ast.walk(text.tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            keys.add((modules[node.value.id], node.attr))
    return frozenset(keys)


@cache
def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@cache
def _sources() -> Sources:
    return Sources()


@cache
def _closure(key: Key) -> dict[Key, str]:
    try:
        return {other: _text_digest(node.code) for other, node in _sources().reachable(key).items()}
    except (EditError, KeyError):  # a constant of the module, or a name that it imports from elsewhere
        return {key: ""}


@cache
def _constants(module: str) -> str:
    """Return the assignments and imports at a module's top level."""
    try:
        text = _sources().text(module)
    except ImportError:
        return ""
    kinds = (ast.Assign, ast.AnnAssign, ast.Import, ast.ImportFrom)
    return _text_digest("\n".join(text.get_source(node) for node in text.tree.body if isinstance(node, kinds)))


@cache
def _file_digest(file: Path) -> str:
    tree = _WithNumberedLocals().visit(ast.parse(file.read_text(encoding="utf-8")))
    return _digest(_WithoutFolders().visit(_WithNumberedPrivateNames().visit(tree)))


@cache
def _text_digest(code: str) -> str:
    return _digest(ast.parse(code))


def _digest(tree: ast.AST) -> str:
    return hashlib.sha256(_dump(_WithoutSentences().visit(tree)).encode()).hexdigest()


def _dump(node: object) -> str:
    """Return a tree as text, without empty fields: versions of Python differ in the fields that they add."""
    if isinstance(node, list):
        return f"[{', '.join(map(_dump, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = ((name, value) for name, value in ast.iter_fields(node) if value is not None and value != [])
    return f"{type(node).__name__}({', '.join(f'{name}={_dump(value)}' for name, value in fields)})"


class _WithoutSentences(ast.NodeTransformer):
    """Empties every text that has a blank in it, and drops statements that are nothing but a text."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant("") if isinstance(node.value, str) and " " in node.value else node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return ast.Pass() if is_text else self.generic_visit(node)


class _WithoutFolders(ast.NodeTransformer):
    """Leaves of the name of a module from which something is imported the last part: a module may move."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        return ast.ImportFrom((node.module or "").rpartition(".")[2], node.names, node.level)


class _WithNumberedLocals(ast.NodeTransformer):
    """Replaces the names of a function's local variables, including inner functions, by their order of appearance."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        renamed: ast.AST = _Renamed(_local_variables(node)).visit(node)
        return renamed


class _WithNumberedPrivateNames(ast.NodeTransformer):
    """Replaces a module's private names (functions, classes, methods and attributes) by their order of appearance."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for field in ("name", "id", "attr", "asname", "arg"):
            name = getattr(node, field, None)
            if isinstance(name, str) and name.startswith("_") and not name.startswith("__"):
                setattr(node, field, f"private {self._numbers.setdefault(name, len(self._numbers))}")
        return super().generic_visit(node)


def _local_variables(function: ast.FunctionDef) -> list[str]:
    nodes = list(ast.walk(function))
    bound = [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    bound += [node.name for node in nodes if isinstance(node, ast.ExceptHandler) and node.name]
    fixed = {node.arg for node in nodes if isinstance(node, ast.arg)}  # a caller may pass them by name
    for node in nodes:
        if isinstance(node, ast.Global | ast.Nonlocal):
            fixed.update(node.names)
    return [name for name in dict.fromkeys(bound) if name not in fixed]


class _Renamed(ast.NodeTransformer):
    def __init__(self, names: list[str]) -> None:
        self.names = {name: f"local {number}" for number, name in enumerate(names)}

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(self.names.get(node.id, node.id), node.ctx)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        self.generic_visit(node)
        node.name = self.names.get(node.name, node.name) if node.name else None
        return node
