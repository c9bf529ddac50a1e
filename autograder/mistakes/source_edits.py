"""Create a wrong implementation by editing the reference's source.

The edited definition runs in its own module. It imports unchanged names; the definitions between the exercise and an edited helper are
copied, so that the exercise really runs the edited helper.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import linecache
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from autograder.errors import CourseError
from autograder.static_analysis.definitions import (
    Definition,
    ModuleSource,
    docstring_node,
    first_line,
    last_line,
    module_source,
    register_source,
)

PROJECT = "tfcourse"


class EditError(CourseError):
    """An error in an edit, which does not fit its source."""


@dataclass(frozen=True)
class Edit:
    """One change of a definition's source, of exactly one of four kinds."""

    find: str = ""  # text that occurs exactly once in the code, without docstrings
    replace: str | None = None  # its replacement
    drop: str = ""  # the beginning of exactly one statement, which is removed
    returns: str = ""  # an expression to return instead of the result, which it contains as ``{result}``
    first: str = ""  # statements to run before all others
    # the definition to edit: a helper or another exercise that the reference uses, or a method, as ``Class.method``; by default the
    # exercise itself, or for a class and ``returns`` or ``first`` its ``forward``
    of: str = ""

    def __post_init__(self) -> None:
        kinds = [kind for kind in ("find", "drop", "returns", "first") if getattr(self, kind)]
        if len(kinds) != 1 or (self.replace is not None) != bool(self.find):
            raise EditError(
                f"an edit needs exactly one of find (with replace), drop, returns and first; this one has {kinds or 'none'}"
            )
        if self.returns and "{result}" not in self.returns:
            raise EditError(f"returns = {self.returns!r} does not say where the {{result}} goes; give a body instead")


@dataclass(frozen=True)
class Node:
    """A top-level definition of the project and its code without docstrings."""

    module: str  # the module that holds it
    name: str
    code: str  # its lines without docstrings
    numbers: tuple[int, ...]  # the number of each of these lines in the module's file, from 1

    @property
    def key(self) -> tuple[str, str]:
        return self.module, self.name


def apply_edits(
    reference: Callable[..., Any], edits: Sequence[Edit], *, body: str | None = None, name: str, file: Path
) -> Callable[..., Any]:
    """Return the wrong implementation that edits of the reference create.

    Args:
        reference: a public function or class of the project.
        edits: the changes, applied in order.
        body: statements that replace the whole body (of a class: everything in it) before the edits.
        name: short name of the mistake.
        file: the file that declares it: tracebacks name it.

    Raises:
        EditError: if an edit does not fit.
    """
    text = edited_source(reference, edits, body=body)
    return run_source(text, reference.__name__, f"{file}#{name}")


def edited_source(reference: Callable[..., Any], edits: Sequence[Edit], *, body: str | None = None) -> str:
    """Return the source of a module with the edited reference.

    Raises:
        EditError: if an edit does not fit.
    """
    start, sources = _definition_key(reference), Sources()
    reached = sources.reachable(start)
    return sources.module_source(start, reached, _change_definitions(start, reached, edits, body))


def changed_definitions(
    reference: Callable[..., Any], edits: Sequence[Edit], *, body: str | None = None
) -> dict[tuple[str, str], str]:
    """Return the edited code of the definitions that edits change.

    Raises:
        EditError: if an edit does not fit.
    """
    start = _definition_key(reference)
    return _change_definitions(start, Sources().reachable(start), edits, body)


def _definition_key(reference: Callable[..., Any]) -> tuple[str, str]:
    return reference.__module__, reference.__name__


def _change_definitions(
    start: tuple[str, str], reached: Mapping[tuple[str, str], Node], edits: Sequence[Edit], body: str | None
) -> dict[tuple[str, str], str]:
    changed: dict[tuple[str, str], str] = {}
    if body is not None:
        changed[start] = _replace_body(reached[start].code, body)
    for edit in edits:
        key, method = _find_target(edit, start, reached)
        code = changed.get(key, reached[key].code)
        changed[key] = _apply_edit(edit, code, method)
    for (_, changed_name), code in changed.items():
        try:
            ast.parse(code)
        except SyntaxError as error:
            raise EditError(f"the edited {changed_name} is not valid Python: {error}") from error
    return changed


def _find_target(
    edit: Edit, start: tuple[str, str], reached: Mapping[tuple[str, str], Node]
) -> tuple[tuple[str, str], str]:
    """Return the definition that an edit changes, and its method or an empty string."""
    owner, _, method = edit.of.partition(".")
    if not owner:
        is_class = reached[start].code.lstrip().startswith(("class ", "@")) and "class " in reached[start].code
        return start, "forward" if is_class and (edit.returns or edit.first) else ""
    matches = [key for key in reached if key[1] == owner]
    if len(matches) != 1:
        names = ", ".join(sorted(name for _, name in reached))
        raise EditError(
            f"of = {edit.of!r}: {start[1]} reaches {len(matches)} definitions of that name; it reaches {names}"
        )
    return matches[0], method


# ----------------------------------------------------------------------------------------------------------- edits


def _apply_edit(edit: Edit, code: str, method: str) -> str:
    first, end = _method_span(code, method)
    part = code[first:end]
    if edit.find:
        assert edit.replace is not None
        count = part.count(edit.find)
        if count != 1:
            raise EditError(f"find = {edit.find!r} stands {count} times in the code, expected once")
        part = part.replace(edit.find, edit.replace)
    elif edit.drop:
        part = _drop_statement(part, edit.drop)
    elif edit.returns:
        part = _replace_returns(part, edit.returns)
    else:
        part = _insert_first(part, edit.first)
    return code[:first] + part + code[end:]


def _method_span(code: str, method: str) -> tuple[int, int]:
    """Return the start and end of a method in a class's code, or of the whole code for an empty name."""
    if not method:
        return 0, len(code)
    text = ModuleSource(Path("edited"), code)
    node = text.tree.body[0]
    methods = [item for item in getattr(node, "body", ()) if getattr(item, "name", None) == method]
    if len(methods) != 1:
        raise EditError(f"there is no method {method!r} to edit")
    end = text.offset(last_line(methods[0]), 0) + len(text.lines[last_line(methods[0]) - 1])
    return text.offset(first_line(methods[0]), 0), end


def _parse_indented(part: str) -> tuple[ModuleSource, str]:
    """Parse indented code as a module, and return the module and the indentation."""
    margin = part[: len(part) - len(part.lstrip())]
    return ModuleSource(Path("edited"), textwrap.dedent(part)), margin


def _drop_statement(part: str, beginning: str) -> str:
    text, margin = _parse_indented(part)
    statements = [
        node
        for node in ast.walk(text.tree)
        if isinstance(node, ast.stmt) and text.text[text.offset(node.lineno, node.col_offset) :].startswith(beginning)
    ]
    if len(statements) != 1:
        raise EditError(f"drop = {beginning!r} begins {len(statements)} statements, expected one")
    node, lines = statements[0], list(text.lines)
    lines[first_line(node) - 1 : last_line(node)] = (
        [" " * node.col_offset + "pass"] if _is_only_statement(node, text.tree) else []
    )
    return textwrap.indent("\n".join(lines), margin)


def _is_only_statement(node: ast.stmt, tree: ast.Module) -> bool:
    """Return whether a statement is the only one of its block."""
    blocks = (getattr(parent, field, None) for parent in ast.walk(tree) for field in ("body", "orelse", "finalbody"))
    return any(isinstance(block, list) and len(block) == 1 and block[0] is node for block in blocks)


def _replace_returns(part: str, expression: str) -> str:
    text, margin = _parse_indented(part)
    spans = [
        (
            text.offset(node.value.lineno, node.value.col_offset),
            text.offset(node.value.end_lineno or 0, node.value.end_col_offset or 0),
        )
        for node in _own_returns(text.tree.body[0])
        if node.value is not None
    ]
    if not spans:
        raise EditError("returns: the code returns nothing to edit")
    code = text.text
    for begin, end in sorted(spans, reverse=True):
        code = code[:begin] + "(" + expression.replace("{result}", f"({code[begin:end]})") + ")" + code[end:]
    return textwrap.indent(code, margin)


def _own_returns(node: ast.AST) -> Iterator[ast.Return]:
    """Yield the return statements of a function, excluding inner functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Return):
            yield child
        elif not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            yield from _own_returns(child)


def _insert_first(part: str, statements: str) -> str:
    text, margin = _parse_indented(part)
    node = text.tree.body[0]
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        raise EditError("first: only a function has a first statement")
    begin = first_line(node.body[0])
    added = textwrap.indent(textwrap.dedent(statements).strip("\n"), " " * node.body[0].col_offset)
    lines = [*text.lines[: begin - 1], *added.split("\n"), *text.lines[begin - 1 :]]
    return textwrap.indent("\n".join(lines), margin)


def _replace_body(code: str, body: str) -> str:
    text = ModuleSource(Path("edited"), code)
    node = text.tree.body[0]
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    head = text.lines[: first_line(node.body[0]) - 1]
    while head and not head[-1].rstrip().endswith(":"):  # comments between the signature and the body
        head.pop()
    return "\n".join([*head, textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")])


# --------------------------------------------------------------------------------------------------- modules


class Sources:
    """The project's definitions and their dependencies."""

    def __init__(self) -> None:
        self._texts: dict[str, ModuleSource] = {}

    def text(self, module: str) -> ModuleSource:
        if module not in self._texts:
            self._texts[module] = module_source(Path(str(importlib.import_module(module).__file__)))
        return self._texts[module]

    def node(self, module: str, name: str) -> Node | None:
        """Return a function or class of the project, or None for any other name."""
        statement = self.text(module).definitions.get(name)
        if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return None
        text = self.text(module)
        numbers = _lines_without_docstrings(statement)
        return Node(module, name, "\n".join(text.lines[number - 1] for number in numbers), numbers)

    def neighbours(self, module: str, name: str) -> Iterator[tuple[str, str]]:
        """Yield the project's functions and classes that a definition uses."""
        text = self.text(module)
        for read in text.reads(text.definitions[name]):
            key = self._resolve_name(module, read.id)
            if key is not None and key != (module, name):
                yield key

    def _resolve_name(self, module: str, name: str) -> tuple[str, str] | None:
        text = self.text(module)
        if name in text.definitions:
            key = module, name
        elif name in text.imports and text.imports[name][1] and text.imports[name][0].startswith(PROJECT):
            key = text.imports[name][0], str(text.imports[name][1])
        else:
            return None
        return key if self.node(*key) is not None else None

    def reachable(self, start: tuple[str, str]) -> dict[tuple[str, str], Node]:
        """Return all project definitions that one uses directly or indirectly, dependencies first, itself last."""
        definitions: dict[tuple[str, str], Node] = {}
        visited: set[tuple[str, str]] = set()

        def visit(key: tuple[str, str]) -> None:
            if key in visited:
                return
            visited.add(key)
            for other in self.neighbours(*key):
                visit(other)
            node = self.node(*key)
            assert node is not None
            definitions[key] = node

        if self.node(*start) is None:
            raise EditError(f"{start[1]} is no function or class of {start[0]}")
        visit(start)
        return definitions

    def module_source(
        self, start: tuple[str, str], reached: Mapping[tuple[str, str], Node], changed: Mapping[tuple[str, str], str]
    ) -> str:
        """Return a module with the changed definitions and the definitions through which they are used."""
        copied = self._path_definitions(start, reached, set(changed))
        names = [name for _, name in copied]
        if len(set(names)) != len(names):
            raise EditError(f"two definitions of one name would be copied: {', '.join(sorted(names))}")
        parts = [changed.get(key, reached[key].code) for key in reached if key in copied]
        imports = self._import_lines(
            [(key, changed.get(key, reached[key].code)) for key in reached if key in copied], set(names)
        )
        return "\n\n\n".join(["\n".join(["from __future__ import annotations", *imports]), *parts]) + "\n"

    def _path_definitions(
        self, start: tuple[str, str], reached: Mapping[tuple[str, str], Node], targets: set[tuple[str, str]]
    ) -> set[tuple[str, str]]:
        """Return the definitions on the paths from the start to the targets, both ends included."""
        copied = set(targets) | {start}
        grown = True
        while grown:
            grown = False
            for key in reached:
                if key not in copied and any(other in copied - {start} for other in self.neighbours(*key)):
                    copied.add(key)
                    grown = True
        return copied

    def _import_lines(self, parts: Sequence[tuple[tuple[str, str], str]], copied: set[str]) -> list[str]:
        """Return the imports that copied definitions need."""
        lines: dict[str, str] = {}
        for (module, _), code in parts:
            text = self.text(module)
            statement = ModuleSource(Path("edited"), code)
            for read in (read for node in statement.tree.body for read in statement.reads(node)):
                line = self._import_line(text, module, read.id, copied)
                if line and lines.setdefault(read.id, line) != line:
                    raise EditError(f"the name {read.id} means two things: {lines[read.id]!r} and {line!r}")
        return sorted(set(lines.values()))

    def _import_line(self, text: ModuleSource, module: str, name: str, copied: set[str]) -> str:
        if name in copied:
            return ""
        if name in text.definitions:
            return f"from {module} import {name}"
        if name in text.imports:
            origin, attribute = text.imports[name]
            alias = f" as {name}" if name != (attribute or origin) else ""
            return f"from {origin} import {attribute}{alias}" if attribute else f"import {origin}{alias}"
        if hasattr(builtins, name):
            return ""
        statement = _WELL_KNOWN.get(name)
        if statement is None:
            raise EditError(f"the name {name} is undefined: it is neither in {module} nor a builtin")
        return statement


# Names that edits may use besides those of the reference's module.
_WELL_KNOWN = {
    "F": "from torch.nn import functional as F",
    "Tensor": "from torch import Tensor",
    "math": "import math",
    "nn": "from torch import nn",
    "np": "import numpy as np",
    "replace": "from dataclasses import replace",
    "torch": "import torch",
}


def _lines_without_docstrings(node: Definition) -> tuple[int, ...]:
    """Return the line numbers of a definition, without its docstrings."""
    owners: list[Definition] = [node]
    if isinstance(node, ast.ClassDef):
        owners += [item for item in node.body if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))]
    texts = [docstring_node(owner) for owner in owners if len(owner.body) > 1]
    docstring_lines = {line for item in texts if item is not None for line in range(item.lineno, last_line(item) + 1)}
    return tuple(number for number in range(first_line(node), last_line(node) + 1) if number not in docstring_lines)


def run_source(text: str, name: str, file: str) -> Callable[..., Any]:
    """Run source as a new module and return its definition of a name.

    Raises:
        EditError: if it does not run.
    """
    module = ModuleType("tfcourse_mistakes." + "".join(c if c.isalnum() else "_" for c in file.rpartition("/")[2]))
    module.__file__ = file
    register_source(file, text)
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    sys.modules[module.__name__] = module
    try:
        exec(compile(text, file, "exec"), vars(module))
    except Exception as error:
        raise EditError(f"the edited code does not run: {type(error).__name__}: {error}") from error
    definition: Callable[..., Any] = getattr(module, name)
    return definition
