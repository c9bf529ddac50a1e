"""Find the names that a code cell defines and checks, without running it."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from autograder.static_analysis.limited_parse import UnreadableCellError, parse_text

# Lines that IPython turns into calls: magics, shell commands, questions.
_ASSIGNED_MAGIC = re.compile(r"^([ \t]*\w[\w, \t]*=[ \t]*)[!%].*$", re.MULTILINE)
_CELL_MAGIC = re.compile(r"\A\s*%%(\w+)[^\n]*\n?")
# Magics that run the rest of the cell as the Python it is; the text under any other belongs to a shell, a file, another process.
_TRANSPARENT = frozenset({"time", "capture", "prun"})
_DEFINED = re.compile(r"^(?:async\s+)?(?:def|class)\s+(\w+)", re.MULTILINE)
_ASSIGNED = re.compile(r"^(\w+)\s*(?::[^=\n]+)?=(?!=)", re.MULTILINE)
_ONLY_CHECK = re.compile(r"check\((\w+)(, hidden=True)?\)")
_CHECKED = re.compile(r"^check\(\s*(\w+)", re.MULTILINE)
# What a copy from a chat or a PDF brings along: spaces without width, marks of direction, and spaces that are no spaces.
_INVISIBLE = re.compile("[\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff\u00ad]")
_ODD_SPACE = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")


def defined_names(source: str, *, imports: bool = True) -> frozenset[str]:
    """Return the names that a cell binds at its top level.

    A cell that Python cannot parse is read line by line, so that a syntax error does not hide where an exercise was written.
    """
    return _cached_summary(source).bound if imports else _cached_summary(source).written


def definitions_in_text(text: str) -> frozenset[str]:
    """Return the functions and classes that a text, Python or not, defines at the start of a line."""
    return frozenset(_DEFINED.findall(text))


def is_python(source: str) -> bool:
    """Return whether a cell is valid Python."""
    return _parse_without_magics(source) is not None


def cell_magic(source: str) -> str:
    """Return the magic of a cell in another language, such as ``%%bash``, or an empty string."""
    match = _CELL_MAGIC.match(source)
    return f"%%{match[1]}" if match and match[1] not in _TRANSPARENT else ""


def has_invisible_characters(source: str) -> bool:
    """Return whether a cell has invisible characters or spaces that Python rejects."""
    return bool(_INVISIBLE.search(source) or _ODD_SPACE.search(source))


def strip_invisible_characters(source: str) -> str:
    """Remove invisible characters from a cell if that makes it valid Python."""
    if not has_invisible_characters(source) or is_python(source):
        return source
    mended = _ODD_SPACE.sub(" ", _INVISIBLE.sub("", source))
    return mended if is_python(mended) else source


def checked_names(source: str) -> frozenset[str]:
    """Return the names that a cell passes to ``check(…)`` at its top level."""
    return _cached_summary(source).checked


class CellSummary(NamedTuple):
    """A summary of a cell's top level."""

    bound: frozenset[str]  # names that it binds
    written: frozenset[str]  # bound names that it does not import
    checked: frozenset[str]  # names that it passes to ``check(…)``
    # a digest of each requested definition. Docstrings, comments and layout are ignored: definitions with the same code have the same
    # digest.
    bodies: Mapping[str, str] = MappingProxyType({})
    # nested functions and classes, with the definitions that contain them
    buried: Mapping[str, str] = MappingProxyType({})


@lru_cache(maxsize=1024)
def _cached_summary(source: str) -> CellSummary:
    return summarise_cell(source)


def summarise_cell(source: str, bodies: frozenset[str] = frozenset(), *, parse: bool = True) -> CellSummary:
    """Return a summary of a cell's top level.

    Args:
        source: its text.
        bodies: the definitions of which a digest is wanted.
        parse: whether Python's parser may read it. A cell that it cannot or must not read is read line by line.
    """
    tree = _parse_without_magics(source) if parse else None
    if tree is None:
        defined = frozenset(_DEFINED.findall(source)) | frozenset(_ASSIGNED.findall(source))
        return CellSummary(defined, defined, frozenset(_CHECKED.findall(source)))
    calls = (node.value for node in tree.body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
    checked = frozenset(
        call.args[0].id
        for call in calls
        if isinstance(call.func, ast.Name)
        and call.func.id == "check"
        and call.args
        and isinstance(call.args[0], ast.Name)
    )
    bound, written = (frozenset(_find_bound_names(tree.body, imports=imports)) for imports in (True, False))
    return CellSummary(bound, written, checked, _body_digests(tree, bodies), _nested_definitions(tree))


def _nested_definitions(tree: ast.Module) -> dict[str, str]:
    nested: dict[str, str] = {}
    for outer in _find_definitions(tree.body):
        kind = "class" if isinstance(outer, ast.ClassDef) else "function"
        for inner in ast.walk(outer):
            if inner is not outer and isinstance(inner, _DEFINITIONS):
                nested.setdefault(inner.name, f"{kind} {outer.name}")
    return nested


def _body_digests(tree: ast.Module, names: frozenset[str]) -> dict[str, str]:
    digests: dict[str, str] = {}
    for node in _find_definitions(tree.body):
        if node.name in names and node.name not in digests:
            for part in ast.walk(node):
                if isinstance(part, _DEFINITIONS) and ast.get_docstring(part, clean=False) is not None:
                    part.body = part.body[1:] or [ast.Pass()]
            digests[node.name] = hashlib.sha256(_dump_node(node).encode("utf-8", "surrogatepass")).hexdigest()
    return digests


def find_only_check(source: str) -> tuple[str, bool] | None:
    """Return the name that a cell checks and whether with hidden tests, or None if the cell does anything else.

    Its statements are calls ``check(name)`` and ``check(name, hidden=True)`` with one name, and perhaps the import of ``check``.
    """
    tree = _parse_without_magics(source)
    lines = [] if tree is None else [ast.unparse(statement) for statement in tree.body]
    calls = [_ONLY_CHECK.fullmatch(line) for line in lines if line != "from tfcourse import check"]
    names = {call and call[1] for call in calls}
    return (name, any(call and call[2] for call in calls)) if len(names) == 1 and (name := names.pop()) else None


def ends_in_check(source: str) -> bool:
    """Return whether a cell's last statement is a call of ``check``."""
    tree = _parse_without_magics(source)
    last = tree.body[-1] if tree is not None and tree.body else None
    if not isinstance(last, ast.Expr) or not isinstance(last.value, ast.Call):
        return False
    return isinstance(last.value.func, ast.Name) and last.value.func.id == "check"


def imports_check(source: str) -> bool:
    """Return whether a cell imports the course's ``check``."""
    return imports_from_course(source) and "check" in defined_names(source)


def imports_from_course(source: str) -> bool:
    """Return whether a cell imports something from the course's package."""
    return re.search(r"^[ \t]*from[ \t]+tfcourse[ \t]+import\b", source, re.MULTILINE) is not None


def _neutralise_magics(text: str) -> str:
    """Replace every line of IPython syntax by a statement without effect."""
    return "\n".join(_plain_line(line) for line in text.split("\n"))


def _plain_line(line: str) -> str:
    # By hand: a regular expression for it can be made to take time without bound.
    stripped = line.strip(" \t")
    asks = stripped.endswith("?") and not any(sign in stripped for sign in "#'\"")
    if stripped[:1] in ("%", "!", "?") or asks:
        return line[: len(line) - len(line.lstrip(" \t"))] + "pass"
    return line


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _parse_without_magics(source: str) -> ast.Module | None:
    """Return a cell's tree without magics, or None if it cannot be parsed."""
    if cell_magic(source):
        return ast.Module(body=[], type_ignores=[])
    text = _CELL_MAGIC.sub("", source)
    tree = _cached_tree(text)
    return tree if tree is not None else _cached_tree(_ASSIGNED_MAGIC.sub(r"\1None", _neutralise_magics(text)))


def _cached_tree(text: str) -> ast.Module | None:
    try:
        return parse_text(text)
    except (UnreadableCellError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _find_bound_names(statements: list[ast.stmt], *, imports: bool) -> Iterator[str]:
    for node in _top_level_statements(statements):
        if isinstance(node, _DEFINITIONS):
            yield node.name
        elif isinstance(node, (ast.Import, ast.ImportFrom)) and imports:
            yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))


def _dump_node(node: ast.AST) -> str:
    try:
        return ast.dump(node)
    except RecursionError:
        return ""


def _find_definitions(statements: list[ast.stmt]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    return (node for node in _top_level_statements(statements) if isinstance(node, _DEFINITIONS))


def _top_level_statements(statements: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield all statements that run at a cell's top level, also in conditions, loops and attempts."""
    # Not recursive: a chain of a thousand elif is as deep as it is long.
    waiting = list(statements)[::-1]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _DEFINITIONS):
            branches = (*getattr(node, "handlers", []), *getattr(node, "cases", []))
            inner = [part for field in ("body", "orelse", "finalbody") for part in getattr(node, field, [])]
            inner += [part for branch in branches for part in branch.body]
            waiting += inner[::-1]
