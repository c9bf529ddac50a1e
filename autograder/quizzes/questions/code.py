"""Read the definition of a function or class, and compile it in a copy of its namespace, optionally with changes."""

from __future__ import annotations
import __future__

import ast
import inspect
import linecache
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any, TypeAlias

Definition: TypeAlias = ast.FunctionDef | ast.ClassDef

_FLAGS = __future__.annotations.compiler_flag
# Decorators that change the behaviour, and therefore stay. Others register or wrap the function, which must not happen twice.
_KEPT_DECORATORS = ("no_grad", "enable_grad", "inference_mode", "set_grad_enabled", "staticmethod", "dataclass")


class NoSourceError(LookupError):
    """The code of a function or class cannot be found, or cannot be compiled again."""


@dataclass(frozen=True)
class Code:
    """The source of a function or class, with its global names."""

    name: str  # the name of the exercise
    source: str  # the dedented definition, without decorators that register or wrap it
    namespace: Mapping[str, Any]  # the global names that it uses

    @classmethod
    def from_candidate(cls, candidate: Callable[..., Any]) -> Code:
        """Read the code of a function or class, which may be defined in a notebook's cell.

        Raises:
            NoSourceError: if the source cannot be found, or the code uses variables of an enclosing function.
        """
        function = next(_list_functions(candidate), None)
        name = str(getattr(candidate, "__name__", ""))
        if function is None:
            raise NoSourceError(f"{name or 'this object'} has no code in Python")
        if any(
            inner.__closure__ and inner.__code__.co_freevars != ("__class__",) for inner in _list_functions(candidate)
        ):
            raise NoSourceError(f"{name} is defined inside another function")
        lines = linecache.getlines(function.__code__.co_filename, function.__globals__)
        node = _find_definition("".join(lines), function.__code__, isinstance(candidate, type))
        if node is None:
            raise NoSourceError(f"the source of {name} cannot be read")
        first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
        text = textwrap.dedent("".join(lines[first - 1 : node.end_lineno])).rstrip("\n")
        return cls(name, remove_course_decorators(text), function.__globals__)

    @property
    def filename(self) -> str:
        """The file name of the compiled code, which identifies its frames."""
        return f"<code of {self.name}>"

    @property
    def tree(self) -> Definition:
        """The syntax tree of the definition."""
        node = ast.parse(self.source).body[0]
        assert isinstance(node, (ast.FunctionDef, ast.ClassDef))
        return node

    def run_definition(self, changed: str | ast.Module | None = None, extra: Mapping[str, Any] | None = None) -> Any:
        """Run the definition, or a changed definition, and return the function or class.

        Args:
            changed: the changed source or syntax tree.
            extra: additional global names.

        Raises:
            Exception: the error that running the definition raises.
        """
        namespace = {**self.namespace, **(extra or {})}
        code = compile(self.source if changed is None else changed, self.filename, "exec", _FLAGS, dont_inherit=True)
        exec(code, namespace)
        made = namespace[self.tree.name]
        if made.__name__ != self.name:
            made.__name__ = self.name
        return made


def remove_course_decorators(source: str) -> str:
    """Remove the decorators that register or wrap a definition from its source."""
    node = ast.parse(source).body[0]
    assert isinstance(node, (ast.FunctionDef, ast.ClassDef))
    lines = source.split("\n")
    for item in reversed(node.decorator_list):
        if not any(name in ast.unparse(item) for name in _KEPT_DECORATORS):
            del lines[item.lineno - 1 : item.end_lineno]
    return "\n".join(lines)


def _list_functions(candidate: Any) -> Iterator[FunctionType]:
    """Yield the undecorated function, or the undecorated methods of a class."""
    if isinstance(candidate, type):
        for value in vars(candidate).values():
            inner = getattr(value, "__func__", value)
            if inspect.isfunction(inspect.unwrap(inner) if callable(inner) else inner):
                yield inspect.unwrap(inner)
    elif inspect.isfunction(function := inspect.unwrap(candidate)):
        yield function


def _find_definition(text: str, code: CodeType, is_class: bool) -> Definition | None:
    """Find the definition of a code object in the text of a file or cell: its function, or the class of its method."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return None
    kind = ast.ClassDef if is_class else ast.FunctionDef
    found: Definition | None = None
    for node in ast.walk(tree):
        if isinstance(node, kind) and (is_class or node.name == code.co_name):
            first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
            if first <= code.co_firstlineno <= (node.end_lineno or first):
                found = node
    return found


def docstring_lines(tree: ast.AST) -> tuple[int, ...]:
    """Return the line numbers of docstrings and other statements that are only a constant."""
    texts = (node for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    return tuple(sorted({line for node in texts for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}))
