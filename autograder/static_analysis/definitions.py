"""Find the source of a function or class, and replace its bodies."""

from __future__ import annotations

import ast
import inspect
import io
import re
import sys
import tokenize
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeAlias

from autograder.errors import CourseError
from autograder.static_analysis.scopes import global_names, import_targets

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

# Comments for tools say nothing to a reader of the notebook.
_TOOL_COMMENT = re.compile(r"#\s*(noqa|type:|mypy:|pragma|ruff:|fmt:)")


@dataclass(frozen=True)
class ModuleSource:
    """The source of a module."""

    path: Path
    text: str  # what is in it

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed module."""
        return ast.parse(self.text)

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the text, without their ends."""
        return self.text.split("\n")

    @cached_property
    def definitions(self) -> dict[str, ast.stmt]:
        """The statements that bind the module's own top-level names."""
        by_name: dict[str, ast.stmt] = {}
        for statement in self.tree.body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                by_name[statement.name] = statement
            elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
                by_name |= dict.fromkeys(assigned_names(statement), statement)
        return by_name

    @cached_property
    def imports(self) -> dict[str, tuple[str, str | None]]:
        """The names that the module's imports bind: ``{name: (module, attribute)}``."""
        return import_targets(self.tree.body)

    def reads(self, node: ast.stmt) -> Sequence[ast.Name]:
        """Return the names that a statement uses from outside it."""
        if node not in self._cached_reads:
            self._cached_reads[node] = tuple(global_names(node))
        return self._cached_reads[node]

    @cached_property
    def _cached_reads(self) -> dict[ast.stmt, tuple[ast.Name, ...]]:
        return {}

    def offset(self, line: int, column: int) -> int:
        """Return the index in the text of a line and a column in bytes, as ``ast`` gives them."""
        return self._line_starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    @cached_property
    def _line_starts(self) -> list[int]:
        """The index of each line's beginning."""
        return [0, *accumulate(len(line) + 1 for line in self.lines)]

    def slice(self, first: int, last: int) -> list[str]:
        """Return the lines from ``first`` to ``last`` inclusive, counted from 1."""
        return self.lines[first - 1 : last]

    def get_source(self, node: ast.stmt) -> str:
        """Return the source of a statement with its decorators."""
        return "\n".join(self.slice(first_line(node), last_line(node)))


def module_source(path: Path) -> ModuleSource:
    """Read a module's source.

    Raises:
        CourseError: if it cannot be read or is no Python.
    """
    try:
        stat = path.stat()
        return _read_module(path, stat.st_mtime_ns, stat.st_size)
    except OSError as error:
        raise CourseError(f"the module cannot be read ({error.strerror})", where=path) from error


# Room for all modules of the course: a student build asks for one after the other, which would push each out of a smaller cache.
@lru_cache(maxsize=1024)
def _read_module(path: Path, modified: int, size: int) -> ModuleSource:
    module = ModuleSource(path, path.read_text(encoding="utf-8"))
    try:
        _ = module.tree
    except SyntaxError as error:
        raise CourseError(f"the module is not valid Python: {error}", where=path) from error
    return module


# Modules that were made in this process, by the name of the file that they say they are from.
_registered: dict[str, ModuleSource] = {}


def register_source(file: str, text: str) -> ModuleSource:
    """Register the source of a module without a file under its code's file name.

    Raises:
        SyntaxError: if it is no Python.
    """
    module = ModuleSource(Path(file), text)
    _ = module.tree
    _registered[file] = module
    return module


def find_definition(obj: Callable[..., Any]) -> tuple[ModuleSource, Definition]:
    """Return the module and the syntax node of a function or class.

    Raises:
        CourseError: if it has no source, for example because it was made by ``functools.partial`` or is a lambda.
    """
    # Decorators such as torch.no_grad() wrap; the source is that of the function within.
    obj = inspect.unwrap(obj)
    name = getattr(obj, "__name__", repr(obj))
    file = _find_file(obj)
    if file is None:
        raise CourseError(f"{name} has no source file", do="Write it as a function or a class in a module.")
    module = _registered.get(str(file)) or module_source(file)
    kind = (ast.ClassDef,) if inspect.isclass(obj) else (ast.FunctionDef, ast.AsyncFunctionDef)
    if obj.__qualname__ == name:
        matches = [module.definitions.get(name)]
    else:
        line = None if inspect.isclass(obj) else obj.__code__.co_firstlineno
        named = (node for node in ast.walk(module.tree) if isinstance(node, kind) and node.name == name)
        matches = [node for node in named if line in (None, first_line(node))]
    if len(matches) != 1 or not isinstance(matches[0], kind):
        raise CourseError(
            f"the source of {name} was not found", where=file, do="Define it exactly once, with def or class."
        )
    return module, matches[0]


def _find_file(obj: Callable[..., Any]) -> Path | None:
    if inspect.isclass(obj):
        file = getattr(sys.modules.get(obj.__module__), "__file__", None)
    elif inspect.isfunction(obj):
        file = obj.__code__.co_filename
    else:
        file = None
    return Path(file) if file and (file in _registered or Path(file).is_file()) else None


def first_line(node: ast.stmt) -> int:
    """Return the line of a statement's first decorator, or else its own."""
    decorators: Sequence[ast.expr] = getattr(node, "decorator_list", ())
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def last_line(node: ast.stmt) -> int:
    """Return the last line of a statement."""
    return node.end_lineno or node.lineno


def assigned_names(statement: ast.Assign | ast.AnnAssign) -> list[str]:
    """Return the plain names that an assignment binds."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    nodes = [node for target in targets for node in ast.walk(target)]
    return [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]


def docstring_node(node: Definition) -> ast.stmt | None:
    """Return the docstring statement of a function or class, or None."""
    first = node.body[0]
    is_text = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return first if is_text else None


def body_statements(node: Definition) -> list[ast.stmt]:
    """Return the statements of a function or class after its docstring."""
    return node.body[1:] if docstring_node(node) is not None else node.body


def definition_head(module: ModuleSource, node: Definition) -> list[str]:
    """Return the lines of decorators, signature and docstring, without comments for tools.

    Raises:
        CourseError: if the body begins on the line of the signature.
    """
    if node.body[0].lineno == node.lineno or _find_signature_end(module, node) == node.body[0].lineno:
        raise CourseError(
            f"the body of {node.name} begins on the line of its signature",
            where=f"{module.path}:{node.lineno}",
            do="Begin it on a new line.",
        )
    doc = docstring_node(node)
    signature_end = _find_signature_end(module, node)
    lines = remove_tool_comments(module.slice(first_line(node), signature_end))
    return lines if doc is None else [*lines, *module.slice(signature_end + 1, last_line(doc))]


def function_body(module: ModuleSource, node: Function) -> list[str]:
    """Return the lines of a function's body after its docstring, without comments for tools."""
    doc = docstring_node(node)
    start = (_find_signature_end(module, node) if doc is None else last_line(doc)) + 1
    lines = remove_tool_comments(module.slice(start, last_line(node)))
    while lines and not lines[0].strip():
        lines.pop(0)
    return lines


def split_methods(node: ast.ClassDef) -> tuple[list[Function], list[Function]]:
    """Return a class's public and private methods separately."""
    methods = [item for item in node.body if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))]
    public = [method for method in methods if not method.name.startswith("_") or method.name.startswith("__")]
    return public, [method for method in methods if method not in public]


def replace_bodies(
    module: ModuleSource, node: Definition, fill: Callable[[Function, list[Function]], list[str]]
) -> str:
    """Return the source of a function or class with other bodies.

    Args:
        module: the module that contains it.
        node: its definition. A class keeps its head, its fields and every public method.
        fill: returns the lines of a function's new body, indented as in the module. Its second argument contains the private methods
            removed from the class, which the new body may include.

    Raises:
        CourseError: if a class contains a statement that is neither a field nor a method.
    """
    if not isinstance(node, ast.ClassDef):
        return "\n".join([*definition_head(module, node), *fill(node, [])])
    public, private = split_methods(node)
    blocks = ["\n".join([*definition_head(module, node), *_field_lines(module, node)])]
    homes = _assign_to_public(public, private)
    blocks += ["\n".join([*definition_head(module, method), *fill(method, homes[method.name])]) for method in public]
    return "\n\n".join(blocks)


def remove_tool_comments(lines: list[str]) -> list[str]:
    """Remove comments for linters and type checkers from lines of code."""
    result = list(lines)
    for token in _tokenize("\n".join(lines) + "\n"):
        if token.type == tokenize.COMMENT and _TOOL_COMMENT.match(token.string):
            row, column = token.start
            result[row - 1] = lines[row - 1][:column].rstrip()
    return result


def _tokenize(text: str) -> Iterator[tokenize.TokenInfo]:
    """Return the tokens of code that may be only a part of a program."""
    with suppress(tokenize.TokenError, IndentationError):
        yield from tokenize.generate_tokens(io.StringIO(text).readline)


def _find_signature_end(module: ModuleSource, node: Definition) -> int:
    """Return the line of the colon that ends a signature."""
    start = first_line(node)
    text = "\n".join(module.slice(node.lineno, node.body[0].lineno))
    depth, lambdas = 0, 0
    for token in _tokenize(text + "\n"):
        if token.type == tokenize.OP and token.string in "([{":
            depth += 1
        elif token.type == tokenize.OP and token.string in ")]}":
            depth -= 1
        elif token.string == "lambda" and depth == 0:
            lambdas += 1
        elif token.type == tokenize.OP and token.string == ":" and depth == 0:
            if not lambdas:
                return node.lineno + token.start[0] - 1
            lambdas -= 1
    raise CourseError(f"the signature of {node.name} has no end", where=f"{module.path}:{start}")


def _field_lines(module: ModuleSource, node: ast.ClassDef) -> list[str]:
    """Return the lines of a class's fields and of the texts that explain them."""
    lines: list[str] = []
    for item in body_statements(node):
        is_text = isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant)
        if isinstance(item, (ast.AnnAssign, ast.Assign)) or is_text:
            lines += remove_tool_comments(module.slice(item.lineno, last_line(item)))
        elif not isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Pass)):
            raise CourseError(
                f"the class {node.name} holds a {type(item).__name__}, which a stub could neither show nor hide",
                where=f"{module.path}:{item.lineno}",
                do="Keep to fields and methods in the class of an exercise.",
            )
    return lines


def _assign_to_public(public: Sequence[Function], private: Sequence[Function]) -> dict[str, list[Function]]:
    """Assign every private method to the public method before it, or to the first."""
    homes: dict[str, list[Function]] = {method.name: [] for method in public}
    for method in private:
        before = [other for other in public if other.lineno < method.lineno] or list(public[:1])
        if before:
            homes[before[-1].name].append(method)
    return homes


def indent_body(lines: Sequence[str], function: Function) -> list[str]:
    """Indent lines to the depth of a function's body."""
    return [" " * (function.col_offset + 4) + line for line in lines]


def is_private(name: str) -> bool:
    """Return whether a name has one leading underscore, not two."""
    return name.startswith("_") and not name.startswith("__")


def returns_none(node: Definition) -> bool:
    """Return whether a function is declared to return None."""
    returns = getattr(node, "returns", None)
    return isinstance(returns, ast.Constant) and returns.value is None
