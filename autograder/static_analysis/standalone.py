"""Copy a function or class with its project dependencies into code that runs in a notebook cell."""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from autograder.errors import CourseError
from autograder.static_analysis.definitions import (
    Definition,
    ModuleSource,
    docstring_node,
    find_definition,
    first_line,
    last_line,
    module_source,
)

# Names that every exercise notebook has: what its setup cell imports.
_GIVEN: dict[str, tuple[str, str | None]] = {
    "math": ("math", None),
    "torch": ("torch", None),
    "nn": ("torch", "nn"),
    "Tensor": ("torch", "Tensor"),
}
_PROJECT = ("tfcourse", "autograder")
_LITERALS = (int, float, complex, str, bytes, bool, type(None), torch.dtype)


def standalone_source(obj: Callable[..., Any], *, rename: str) -> str:
    """Return code for a function or class that needs only ``torch``, ``Tensor``, ``nn`` and ``math``.

    Project code that it uses, including references from ``tfcourse``, is included under private names such as ``_<rename>_helper_1``, so
    that no other cell's function is overwritten. Other imports are kept as imports. Docstrings are removed.

    Args:
        obj: the function or class, for example a misconception's ``implementation``.
        rename: its new name.

    Raises:
        CourseError: if it cannot be extracted: its source is missing, or it closes over a value that cannot be written as code.
    """
    module, node = find_definition(obj)
    inliner = _Inliner(rename, (*_PROJECT, obj.__module__))
    code = inliner.code(_CodeContext(module, node, _closure_values(obj)), rename)
    return "\n\n\n".join(["\n".join(sorted(inliner.imports))] * bool(inliner.imports) + [*inliner.parts, code])


@dataclass(frozen=True)
class _CodeContext:
    """A piece of code and the origin of its names."""

    module: ModuleSource
    node: ast.stmt
    closure: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class _Inliner:
    """A collector of the definitions that a piece of code needs, dependencies first."""

    prefix: str
    ours: tuple[str, ...]
    parts: list[str] = field(default_factory=list)
    imports: set[str] = field(default_factory=set)
    _names: dict[object, str] = field(default_factory=dict)

    def code(self, definition: _CodeContext, name: str) -> str:
        """Return the code of a definition under a new name, with its project names replaced."""
        module, node = definition.module, definition.node
        edits: list[tuple[int, int, str]] = []
        skipped: list[tuple[int, int]] = []
        old_name = ""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            old_name = node.name
            edits.append((*_name_span(module, node), name))
            skipped = [*_docstring_lines(node)]
        else:
            edits.append((*_target_span(module, node), name))
        removed = {line for first, last in skipped for line in range(first, last + 1)}
        for read in module.reads(node):
            if read.lineno in removed:
                continue
            if read.id == old_name:
                edits.append((*_expression_span(module, read), name))
            elif replacement := self._replacement_edit(definition, read):
                edits.append(replacement)
        return _edited_statement(module, node, edits, skipped)

    def _replacement_edit(self, definition: _CodeContext, read: ast.Name) -> tuple[int, int, str] | None:
        """Return the edit for a use of a global name, or None if the name may stay."""
        module = definition.module
        if read.id in definition.closure:
            return (*_expression_span(module, read), self._inline_value(read.id, definition.closure[read.id]))
        if read.id in module.definitions:
            statement = _CodeContext(module, module.definitions[read.id])
            return (*_expression_span(module, read), self._inline_helper(statement))
        if read.id in module.imports:
            return self._inline_import(definition, read, *module.imports[read.id])
        if hasattr(builtins, read.id):
            return None
        raise CourseError(
            f"the name {read.id} is undefined: it is neither in this module nor a builtin",
            where=f"{module.path}:{read.lineno}",
        )

    def _inline_import(
        self, definition: _CodeContext, read: ast.Name, origin: str, attribute: str | None
    ) -> tuple[int, int, str] | None:
        if _GIVEN.get(read.id) == (origin, attribute):
            return None
        if not self._is_ours(origin):
            if attribute is None:
                self.imports.add(f"import {origin}" + (f" as {read.id}" if read.id != origin.partition(".")[0] else ""))
            else:
                self.imports.add(
                    f"from {origin} import {attribute}" + (f" as {read.id}" if read.id != attribute else "")
                )
            return None
        owner = importlib.import_module(origin)
        value = owner if attribute is None else _find_attribute(owner, attribute)
        if not inspect.ismodule(value):
            return (
                *_expression_span(definition.module, read),
                self._inline_member(owner.__name__, attribute or "", value),
            )
        # `from tfcourse import attention`, then `attention.causal_mask`: the two names become one.
        parent = _find_parent_attribute(definition.node, read)
        while parent is not None and inspect.ismodule(member := _find_attribute(value, parent.attr)):
            value, inner = member, _find_parent_attribute(definition.node, parent)
            if inner is None:
                break
            parent = inner
        if parent is None:
            raise CourseError(
                f"the module {origin} is used as a value",
                where=f"{definition.module.path}:{read.lineno}",
                do="Use its functions and classes by name, as in module.function.",
            )
        return (
            *_expression_span(definition.module, parent),
            self._inline_member(value.__name__, parent.attr, _find_attribute(value, parent.attr)),
        )

    def _inline_member(self, module_name: str, name: str, value: Any) -> str:
        """Include a module's member and return its private name."""
        if inspect.isfunction(value) or inspect.isclass(value):
            return self._inline_value(name, value)
        module = module_source(Path(str(importlib.import_module(module_name).__file__)))
        if name not in module.definitions:
            return self._inline_value(name, value)
        return self._inline_helper(_CodeContext(module, module.definitions[name]))

    def _inline_value(self, name: str, value: Any) -> str:
        """Return a literal for a value, or else a private name for it."""
        if inspect.isfunction(value) or inspect.isclass(value):
            if not self._is_ours(value.__module__):
                top = value.__qualname__.partition(".")[0]
                self.imports.add(f"from {value.__module__} import {top}")
                return str(value.__qualname__)
            module, node = find_definition(value)
            return self._inline_helper(_CodeContext(module, node, _closure_values(value)))
        if isinstance(value, _LITERALS) or (
            isinstance(value, (tuple, list)) and all(isinstance(item, _LITERALS) for item in value)
        ):
            return repr(value)
        if self._is_ours(type(value).__module__) and getattr(value, "__dict__", None) == {}:
            # Nothing is in it but what its class says: it can be made again.
            return f"{self._inline_value(type(value).__name__, type(value))}()"
        raise CourseError(f"{name} holds a {type(value).__name__}, which cannot be written into a notebook")

    def _is_ours(self, module_name: str) -> bool:
        return any(module_name == package or module_name.startswith(f"{package}.") for package in self.ours)

    def _inline_helper(self, definition: _CodeContext) -> str:
        """Include a helper once and return its private name."""
        closed = tuple(sorted((key, id(value)) for key, value in definition.closure.items()))
        key = (definition.module.path, definition.node.lineno, closed)
        if key not in self._names:
            # Not by its own name: that may be another exercise's, which nobody has written in this cell.
            new = self._names[key] = f"_{self.prefix}_helper_{len(self._names) + 1}"
            self.parts.append(self.code(definition, new))
        return self._names[key]


def _closure_values(obj: Callable[..., Any]) -> dict[str, Any]:
    obj = inspect.unwrap(obj)
    code, cells = getattr(obj, "__code__", None), getattr(obj, "__closure__", None)
    if code is None or not cells:
        return {}
    return {name: cell.cell_contents for name, cell in zip(code.co_freevars, cells, strict=True)}


def _find_attribute(owner: Any, name: str) -> Any:
    try:
        return getattr(owner, name)
    except AttributeError:
        return importlib.import_module(f"{owner.__name__}.{name}")


def _find_parent_attribute(root: ast.stmt, child: ast.expr) -> ast.Attribute | None:
    return next((n for n in ast.walk(root) if isinstance(n, ast.Attribute) and n.value is child), None)


def _expression_span(module: ModuleSource, node: ast.expr) -> tuple[int, int]:
    """Return the start and end of an expression in its module's text."""
    assert node.end_lineno is not None  # ast.parse always sets it
    assert node.end_col_offset is not None
    return module.offset(node.lineno, node.col_offset), module.offset(node.end_lineno, node.end_col_offset)


def _name_span(module: ModuleSource, node: Definition) -> tuple[int, int]:
    start = module.offset(node.lineno, node.col_offset)
    keyword = "class" if isinstance(node, ast.ClassDef) else "def"
    begin = module.text.index(node.name, module.text.index(keyword, start) + len(keyword))
    return begin, begin + len(node.name)


def _target_span(module: ModuleSource, node: ast.stmt) -> tuple[int, int]:
    target = (
        node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else getattr(node, "target", None)
    )
    if not isinstance(target, ast.Name):
        raise CourseError(
            "an assignment to several names at once cannot be copied",
            where=f"{module.path}:{node.lineno}",
            do="Assign one name per line.",
        )
    return _expression_span(module, target)


def _docstring_lines(node: Definition) -> list[tuple[int, int]]:
    """Return the lines of the docstrings of a function, or of a class and its methods."""
    owners: list[Definition] = [node]
    if isinstance(node, ast.ClassDef):
        owners += [item for item in node.body if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))]
    texts = [docstring_node(owner) for owner in owners if len(owner.body) > 1]
    return [(text.lineno, last_line(text)) for text in texts if text is not None]


def _edited_statement(
    module: ModuleSource, node: ast.stmt, edits: list[tuple[int, int, str]], skipped: list[tuple[int, int]]
) -> str:
    """Return a statement's text with edits applied, without the skipped lines and without indentation."""
    margin = node.col_offset
    removed = {line for first, last in skipped for line in range(first, last + 1)}
    text, start = module.text, module.offset(first_line(node), 0)
    end = module.offset(last_line(node), 0) + len(module.lines[last_line(node) - 1])
    # Lines to leave out are edits too: a line keeps its number until all is done.
    for line in removed:
        at = module.offset(line, 0)
        edits = [edit for edit in edits if not at <= edit[0] < at + len(module.lines[line - 1]) + 1]
        edits.append((at, at + len(module.lines[line - 1]) + 1, ""))
    pieces, position = [], start
    for begin, stop, replacement in sorted(set(edits)):
        pieces += [text[position:begin], replacement]
        position = stop
    pieces.append(text[position:end])
    lines = "".join(pieces).split("\n")
    return "\n".join(line[margin:] if not line[:margin].strip() else line for line in lines).rstrip()
